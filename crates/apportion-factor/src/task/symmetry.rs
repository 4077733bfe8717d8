//! Whether a matrix is symmetric: factorisations of symmetric matrices read its lower triangle only.

use super::Input;
use apportion::error::{Error, Result};
use apportion::geometry::{Rect, Span};
use apportion::kernels::Real;
use apportion::run::World;

/// Rows and columns that are compared together.
const TILE: u64 = 512;

/// What two triangles have shown.
#[derive(Debug, Clone, Copy)]
struct Triangles {
    /// The largest magnitude of an element.
    largest: f64,
    /// The largest difference of two elements that should be equal.
    difference: f64,
    /// The row and column of the lower one of these, and both elements.
    worst: [f64; 4],
    /// Whether elements below and above the diagonal are not 0.
    filled: [bool; 2],
}

impl Triangles {
    fn and(self, other: Self) -> Self {
        let worse = if other.difference > self.difference { other } else { self };
        let filled = std::array::from_fn(|side| self.filled[side] || other.filled[side]);
        Self { largest: self.largest.max(other.largest), filled, ..worse }
    }

    /// Compares an element below the diagonal with its mirror image.
    fn add(&mut self, place: [u64; 2], [below, above]: [f64; 2]) {
        self.filled = [self.filled[0] || below != 0.0, self.filled[1] || above != 0.0];
        if below == above || !below.is_finite() {
            return;
        }
        let difference = if above.is_finite() { (below - above).abs() } else { f64::INFINITY };
        if difference > self.difference {
            self.difference = difference;
            self.worst = [place[0] as f64, place[1] as f64, below, above];
        }
    }
}

/// Compares the triangles of a matrix of n rows, in O(n^2) on all ranks together. Differences by rounding, up to n eps
/// times the largest element, pass. Returns a note if there is nothing above the diagonal.
///
/// # Errors
/// The matrix is not symmetric, with the pair that differs most: exit code 2, on all ranks; the file cannot be read.
pub(super) fn check<T: Real>(
    input: &mut Input,
    n: u64,
    place: &str,
    world: &World,
) -> Result<Option<String>> {
    let nothing = Triangles { largest: 0.0, difference: 0.0, worst: [0.0; 4], filled: [false; 2] };
    let spans: Vec<Span> = Span::new(0, n).blocks(TILE).collect();
    let pairs =
        spans.iter().enumerate().flat_map(|(i, rows)| spans[..=i].iter().map(move |cols| (*rows, *cols)));
    let own = pairs.skip(world.rank()).step_by(world.size());
    let seen = world.all_ok(own.map(|(rows, cols)| compare::<T>(input, rows, cols)).try_fold(
        nothing,
        |all, one| {
            if world.monitor().is_stopped() {
                return Err(Error::Interrupted);
            }
            Ok(all.and(one?))
        },
    ))?;
    let Triangles { largest, difference, worst, filled } = seen;
    let mine = [
        largest,
        difference,
        f64::from(filled[0]),
        f64::from(filled[1]),
        worst[0],
        worst[1],
        worst[2],
        worst[3],
    ];
    let of = |[largest, difference, below, above, i, j, x, y]: [f64; 8]| Triangles {
        largest,
        difference,
        worst: [i, j, x, y],
        filled: [below, above].map(|x| x > 0.0),
    };
    let all = world.all_gather(bytemuck::cast_slice(&mine))?;
    let all = all.iter().map(|bytes| of(bytemuck::pod_read_unaligned(bytes)));
    let Triangles { largest, difference, worst: [i, j, below, above], filled } =
        all.fold(nothing, Triangles::and);
    if filled == [true, false] {
        return Ok(Some(format!(
            "{place}: holds only zeros above its diagonal: A is the symmetric matrix of its lower triangle, also in residuals"
        )));
    }
    if difference <= n as f64 * T::EPSILON * largest {
        return Ok(None);
    }
    let [below, above] = [below, above].map(T::from_f64);
    let what = format!(
        "is not symmetric: element ({i}, {j}), counted from 0, is {below}, and ({j}, {i}) is {above}"
    );
    let remedy =
        "choose `kind = lu`, or fill what is above the diagonal with zeros if the lower triangle is meant";
    Err(Error::input(place, what, remedy))
}

/// Compares a tile on or below the diagonal with its mirror image.
fn compare<T: Real>(input: &mut Input, rows: Span, cols: Span) -> Result<Triangles> {
    let mut seen = Triangles { largest: 0.0, difference: 0.0, worst: [0.0; 4], filled: [false; 2] };
    let below: Vec<T> = tile(input, Rect::new(rows, cols))?;
    let above: Vec<T> = if rows == cols { below.clone() } else { tile(input, Rect::new(cols, rows))? };
    for x in below.iter().chain(&above).map(|x| x.to_f64().abs()).filter(|x| x.is_finite()) {
        seen.largest = seen.largest.max(x);
    }
    for (i, row) in below.chunks_exact(cols.len() as usize).enumerate() {
        for (j, x) in row.iter().enumerate() {
            let place = [rows.start + i as u64, cols.start + j as u64];
            if place[1] < place[0] {
                seen.add(place, [x.to_f64(), above[j * rows.len() as usize + i].to_f64()]);
            }
        }
    }
    Ok(seen)
}

fn tile<T: Real>(input: &mut Input, rect: Rect) -> Result<Vec<T>> {
    match input {
        Input::Npy(file) => file.read_into(rect, Vec::new()),
        Input::Whole(matrix) => {
            let elements = matrix.elements::<T>().expect("other types were refused");
            let rows = (rect.rows.start..rect.rows.end).map(|i| i as usize * matrix.cols());
            let cols = rect.cols.start as usize..rect.cols.end as usize;
            Ok(rows.flat_map(|first| &elements[first + cols.start..first + cols.end]).copied().collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apportion::matrix::{AnyMatrix, Matrix, npy_header};
    use apportion::run::Monitor;
    use std::sync::Arc;

    /// In memory, in a file, and on ranks: rounding passes, one triangle alone is told or refused, and of other
    /// differences the largest is named.
    #[test]
    fn only_symmetric_matrices_pass() {
        let n = 1100_usize;
        let value = |i: usize, j: usize| ((i.max(j) * 7 + i.min(j) * 13) % 29) as f64 - 14.0;
        let with = |change: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
            (0..n * n).map(|at| value(at / n, at % n) + change(at / n, at % n)).collect()
        };
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.npy");
        let seen = |elements: &[f64]| {
            let bytes = [npy_header::<f64>(&[n, n], false), bytemuck::cast_slice(elements).to_vec()];
            std::fs::write(&path, bytes.concat()).unwrap();
            let open = || Input::open(&path.as_path().into(), &World::solo(&Monitor::new())).unwrap();
            let whole = Arc::new(AnyMatrix::F64(Matrix::new(n, n, elements.to_vec())));
            let check = |mut input: Input, world: &World| {
                check::<f64>(&mut input, n as u64, "a.npy", world).map_err(|error| error.to_string())
            };
            let world = World::solo(&Monitor::new());
            let found = check(open(), &world);
            assert_eq!(check(Input::Whole(whole), &world), found);
            let ranks = World::threads(3, &Monitor::new(), |world| Ok(check(open(), world))).unwrap();
            assert!(ranks.iter().all(|rank| *rank == found));
            found
        };
        assert_eq!(seen(&with(&|_, _| 0.0)), Ok(None));
        assert_eq!(seen(&with(&|i, j| if i < j { 1e-14 } else { 0.0 })), Ok(None), "rounding");
        let note = seen(&with(&|i, j| if i < j { -value(i, j) } else { 0.0 })).unwrap().unwrap();
        assert!(note.contains("a.npy") && note.contains("lower triangle"), "{note}");
        let said = seen(&with(&|i, j| if i > j { -value(i, j) } else { 0.0 })).unwrap_err();
        assert!(said.contains("is not symmetric") && said.contains("kind = lu"), "{said}");
        let at =
            |i: usize, j: usize| if [(3, 20), (700, 5)].contains(&(i, j)) { (i + j) as f64 } else { 0.0 };
        let said = seen(&with(&at)).unwrap_err();
        assert!(said.contains("element (700, 5)") && said.contains("(5, 700)"), "{said}");
    }
}
