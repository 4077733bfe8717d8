//! Where vertices are.

use crate::graph::MOST;
use crate::read::lines::Lines;
use apportion::error::{Error, Result};
use apportion::matrix::{AnyMatrix, Element, Matrix, read_matrix};
use std::path::Path;

/// A point for each vertex.
#[derive(Debug, Clone, PartialEq)]
pub struct Coordinates {
    axes: usize,
    values: Vec<f64>,
}

impl Coordinates {
    /// Points in one to three dimensions, the coordinates of each side by side. `place` is what errors call them.
    ///
    /// # Errors
    /// Another number of axes, an incomplete point, a coordinate that is not finite: exit code 2.
    pub fn new(axes: usize, values: Vec<f64>, place: &str) -> Result<Self> {
        if !(1..=3).contains(&axes) || !values.len().is_multiple_of(axes) {
            let what = format!("{} numbers are no points with {axes} coordinates", values.len());
            return Err(Error::input(place, what, "give each point one to three coordinates"));
        }
        if let Some(wrong) = values.iter().position(|value| !value.is_finite()) {
            let what = format!("point {} has the coordinate {}", wrong / axes, values[wrong]);
            return Err(Error::input(place, what, "give finite numbers"));
        }
        Ok(Self { axes, values })
    }

    /// Number of coordinates of a point, 1 to 3.
    pub fn axes(&self) -> usize {
        self.axes
    }

    /// Number of points.
    pub fn points(&self) -> usize {
        self.values.len() / self.axes
    }

    /// The point of a vertex.
    pub fn point(&self, vertex: usize) -> &[f64] {
        &self.values[vertex * self.axes..(vertex + 1) * self.axes]
    }
}

/// Reads the points of the vertices: `.npy` with a row for each; or text, packed by gzip or not, with a point a line,
/// as METIS and Chaco have it (`x y` or `x y z`), or as Scotch has it: the number of axes, the number of points, and
/// lines that begin with the number of a vertex, in any order.
///
/// # Errors
/// The file cannot be read or is damaged, has another number of points, or a number is not finite: exit code 2.
pub fn read_coordinates(path: &Path, vertices: usize) -> Result<Coordinates> {
    let place = path.display().to_string();
    let named_npy = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("npy"));
    let coordinates = if named_npy { read_npy(path)? } else { read_text(path, vertices)? };
    match coordinates.points() {
        points if points == vertices => Ok(coordinates),
        points => {
            let what = format!("has {points} points for {vertices} vertices");
            Err(Error::input(place, what, "give one point for each vertex, in their order"))
        }
    }
}

fn read_npy(path: &Path) -> Result<Coordinates> {
    fn doubles<T: Element>(matrix: &Matrix<T>) -> Vec<f64> {
        matrix.as_slice().iter().map(|value| value.to_f64()).collect()
    }
    let matrix = read_matrix(path)?;
    let axes = matrix.cols();
    let values = match matrix {
        AnyMatrix::F64(matrix) => matrix.into_elements(),
        AnyMatrix::F32(matrix) => doubles(&matrix),
        AnyMatrix::I32(matrix) => doubles(&matrix),
        AnyMatrix::I64(matrix) => doubles(&matrix),
        AnyMatrix::Bool(matrix) | AnyMatrix::U8(matrix) => doubles(&matrix),
    };
    Coordinates::new(axes, values, &path.display().to_string())
}

fn read_text(path: &Path, vertices: usize) -> Result<Coordinates> {
    let mut lines = Lines::open(path, b"#%")?;
    let (mut values, mut axes) = (Vec::new(), 0);
    while lines.advance_to_data()? {
        let before = values.len();
        while let Some(value) = lines.real()? {
            values.push(value);
        }
        let found = values.len() - before;
        match (axes, found) {
            (0, 1) => return read_numbered(lines, values[0], vertices),
            (0, 2 | 3) => axes = found,
            (0, _) => {
                let what = format!("has {found} numbers");
                return Err(lines.refuse(what, "write the two or three coordinates of a point on each line"));
            }
            _ if found != axes => {
                let what = format!("has {found} numbers, but the first point {axes}");
                return Err(lines.refuse(what, "write as many coordinates of each point"));
            }
            _ if values.len() > vertices * axes => {
                let what = format!("is a point after those of {vertices} vertices");
                return Err(lines.refuse(what, "give one point for each vertex"));
            }
            _ => {}
        }
    }
    Coordinates::new(axes.max(1), values, &path.display().to_string())
}

/// Reads the format of Scotch after its first line, the number of axes.
fn read_numbered(mut lines: Lines, axes: f64, vertices: usize) -> Result<Coordinates> {
    if ![1.0, 2.0, 3.0].contains(&axes) {
        let what = format!("{axes} is no number of axes");
        return Err(lines.refuse(what, "begin with 1, 2 or 3 as Scotch does, or write a point on each line"));
    }
    let (axes, largest) = (axes as usize, MOST as u32);
    let points = lines.next(0..=largest, "the number of points")? as usize;
    lines.end()?;
    if points != vertices {
        let what = format!("{points} points are for {vertices} vertices");
        return Err(lines.refuse(what, "give one point for each vertex"));
    }
    let (mut numbers, mut read) = (Vec::with_capacity(points), Vec::with_capacity(points * axes));
    for point in 0..points {
        if !lines.advance_to_data()? {
            return Err(lines.refuse(format!("ends after {point} of {points} points"), "copy the file again"));
        }
        numbers.push(lines.need(0..=largest, "the number of the vertex")?);
        for _ in 0..axes {
            let value = lines.real()?;
            read.push(value.ok_or_else(|| lines.refuse("a coordinate is missing", "complete the line"))?);
        }
        lines.end()?;
    }
    lines.end_of_file("the last point")?;
    // The first number is 0 or 1, or whatever the graph's file begins with.
    let base = numbers.iter().copied().min().unwrap_or(0);
    let mut values = vec![f64::NAN; read.len()];
    for (number, point) in numbers.iter().zip(read.chunks_exact(axes)) {
        let first = (number - base) as usize * axes;
        match values.get_mut(first..first + axes) {
            Some(place) if place[0].is_nan() => place.copy_from_slice(point),
            _ => {
                let what = format!("vertex {number} is numbered beyond the last, or twice");
                return Err(lines.refuse(what, "number vertices without gaps"));
            }
        }
    }
    let place = lines.place();
    Coordinates::new(axes, values, &place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use apportion::matrix::write_npy;
    use apportion::output::OutputFile;

    fn read(name: &str, text: &str, vertices: usize) -> Result<Coordinates> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        read_coordinates(&path, vertices)
    }

    #[test]
    fn every_format_by_hand() {
        let plain = read("a.xyz", "# two points\n0 1.5\n\n-2e3 4\n", 2).unwrap();
        assert_eq!((plain.axes(), plain.point(0), plain.point(1)), (2, &[0.0, 1.5][..], &[-2000.0, 4.0][..]));
        assert_eq!(read("a", "1 2 3\n", 1).unwrap().point(0), [1.0, 2.0, 3.0]);
        let scotch = read("a.xyz", "2\n2\n2 7 8\n1 5 6\n", 2).unwrap();
        assert_eq!((scotch.point(0), scotch.point(1)), (&[5.0, 6.0][..], &[7.0, 8.0][..]));
        assert_eq!(read("a.xyz", "1\n2\n0 4\n1 2\n", 2).unwrap().point(1), [2.0]);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.npy");
        let read_matrix = |rows, data: &[f32]| {
            let mut file = OutputFile::create(&path).unwrap();
            write_npy(&mut file, &Matrix::new(rows, data.len() / rows, data.to_vec())).unwrap();
            file.commit().unwrap();
            read_coordinates(&path, rows)
        };
        assert_eq!(read_matrix(2, &[1.0, 2.0, 3.0, 4.0]).unwrap().point(1), [3.0, 4.0]);
        assert!(read_matrix(1, &[1.0; 4]).unwrap_err().to_string().contains("with 4 coordinates"));
        assert!(read_matrix(1, &[1.0, f32::NAN]).unwrap_err().to_string().contains("the coordinate NaN"));
    }

    #[test]
    fn defects_are_refused_with_their_line() {
        for (text, word) in [
            ("1 2\n3 nan\n", ":2: \"nan\" is not a finite number"),
            ("1 2\n3 x\n", ":2: \"x\""),
            ("1 2\n3 4 5\n", ":2: has 3 numbers, but the first point 2"),
            ("1 2 3 4\n", ":1: has 4 numbers"),
            ("1 2\n3 4\n5 6\n", ":3: is a point after those of 2 vertices"),
            ("1 2\n", "has 1 points for 2 vertices"),
            ("", "has 0 points"),
            ("4\n2\n", ":1: 4 is no number of axes"),
            ("2\n3\n", ":2: 3 points are for 2 vertices"),
            ("2\n2\n1 2 3\n", ":3: ends after 1 of 2 points"),
            ("2\n2\n1 2 3\n2 4\n", ":4: a coordinate is missing"),
            ("2\n2\n1 2 3\n2 4 5 6\n", ":4: \"6\" is one entry too many"),
            ("2\n2\n1 2 3\n1 4 5\n", "vertex 1 is numbered beyond the last, or twice"),
            ("2\n2\n1 2 3\n3 4 5\n", "vertex 3 is numbered"),
        ] {
            let error = read("a.xyz", text, 2).unwrap_err().to_string();
            assert!(error.contains(word), "{error}: {word}");
        }
    }
}
