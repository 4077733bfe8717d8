//! The arrays of an advection: opened, compared with each other, and read by parts.

use super::{AdvectTask, ArraySource, CourantSource, file_place};
use crate::{AdvectProblem, AdvectSchedule, Courant, Plane, needed_faces, own_cells};
use apportion::error::{Error, Result};
use apportion::files::FileState;
use apportion::geometry::{Rect, Span};
use apportion::kernels::mpdata::{Advectable, Boundary, Place};
use apportion::matrix::{AnyView, LocalBlocks, NpyArray, NpyHeader, read_npy_array, read_tiles};
use apportion::run::World;
use std::path::PathBuf;

/// A file whose header has been read.
pub(crate) struct ArrayFile {
    pub path: PathBuf,
    pub header: NpyHeader,
    /// The file as it was before its header was read.
    pub state: FileState,
}

/// An array that is open.
pub(crate) enum Input<'a> {
    File(ArrayFile),
    Array { name: &'static str, view: AnyView<'a> },
}

/// Courant numbers along an axis.
pub(crate) enum CourantInput<'a> {
    Constant(f64),
    Faces(Input<'a>),
}

/// The arrays of an advection, whose sizes fit together.
pub(crate) struct Inputs<'a> {
    pub problem: AdvectProblem,
    pub field: Input<'a>,
    pub courant: Vec<CourantInput<'a>>,
}

fn show(sizes: &[usize]) -> String {
    sizes.iter().map(usize::to_string).collect::<Vec<_>>().join(" x ")
}

impl<'a> Input<'a> {
    /// Opens an array; returns its sizes.
    fn open(source: &ArraySource<'a>) -> Result<(Self, Vec<usize>)> {
        match source {
            ArraySource::File(path) => {
                let state = FileState::of(path)?;
                let NpyArray { header, sizes } = read_npy_array(path)?;
                Ok((Self::File(ArrayFile { path: path.clone(), header, state }), sizes))
            }
            ArraySource::Array { name, sizes, view } => {
                let matches = sizes.iter().product::<usize>() == view.rows() * view.cols();
                if !(1..=3).contains(&sizes.len()) || sizes.contains(&0) || !matches {
                    let what =
                        format!("is {}", if sizes.is_empty() { "a number".into() } else { show(sizes) });
                    return Err(Error::input(*name, what, "give one to three dimensions with elements"));
                }
                Ok((Self::Array { name, view: *view }, sizes.clone()))
            }
        }
    }

    /// What errors call it.
    pub(crate) fn place(&self) -> String {
        match self {
            Self::File(file) => file_place(&file.path),
            Self::Array { name, .. } => (*name).to_owned(),
        }
    }

    /// `"f32"`, `"f64"` or another type.
    pub(crate) fn element(&self) -> &'static str {
        match self {
            Self::File(file) => file.header.dtype,
            Self::Array { view, .. } => view.name(),
        }
    }

    /// Number of elements.
    pub(crate) fn len(&self) -> u128 {
        let [rows, cols] = match self {
            Self::File(ArrayFile { header, .. }) => [header.rows, header.cols],
            Self::Array { view, .. } => [view.rows(), view.cols()],
        };
        rows as u128 * cols as u128
    }

    /// The file, where slabs and checkpoints have one.
    ///
    /// # Errors
    /// It is in memory.
    pub(crate) fn file(&self) -> Result<&ArrayFile> {
        match self {
            Self::File(file) => Ok(file),
            Self::Array { name, .. } => {
                let what = "is in memory, but slabs and checkpoints are of files";
                Err(Error::input(
                    *name,
                    what,
                    "leave out `memory`, `checkpoint` and `resume`, or give a file",
                ))
            }
        }
    }

    /// Rectangles of the array as a matrix.
    fn read<T: Advectable>(&self, rects: &[Rect]) -> Result<LocalBlocks<T>> {
        match self {
            Self::File(file) => file.read(rects),
            Self::Array { view, .. } => {
                let elements = view.elements::<T>().expect("other types were refused");
                let rows = elements.chunks_exact(view.cols());
                let cut = |rect: &Rect| {
                    let [rows_of, cols] =
                        [rect.rows, rect.cols].map(|span| span.start as usize..span.end as usize);
                    let rows = rows.clone().skip(rows_of.start).take(rows_of.len());
                    (*rect, rows.flat_map(|row| &row[cols.clone()]).copied().collect())
                };
                Ok(rects.iter().map(cut).collect())
            }
        }
    }

    /// Checks that a file is as it was when its header was read.
    fn check_unchanged(&self) -> Result<()> {
        match self {
            Self::File(file) => file.state.check(&file.path),
            Self::Array { .. } => Ok(()),
        }
    }
}

impl ArrayFile {
    fn read<T: Advectable>(&self, rects: &[Rect]) -> Result<LocalBlocks<T>> {
        read_tiles::<T>(&self.path, &self.header, rects)
    }
}

impl<'a> Inputs<'a> {
    /// Opens the arrays of a task.
    ///
    /// # Errors
    /// A file that cannot be read, elements of other types, sizes that do not fit.
    pub(crate) fn open(task: &AdvectTask<'a>) -> Result<Self> {
        let (field, sizes) = Input::open(&task.field)?;
        if !["f64", "f32"].contains(&field.element()) {
            let what = format!("holds {}, but a field is f32 or f64", field.element());
            return Err(Error::input(field.place(), what, "save it as numpy.float64"));
        }
        let problem = AdvectProblem::new(sizes, &task.boundary, task.scheme)?;
        let axes = problem.sizes.len();
        if task.courant.len() != axes {
            let what = format!("{} entries for a field of {axes} dimensions", task.courant.len());
            return Err(Error::input("`courant`", what, "give a number or a file for each axis"));
        }
        let mut inputs = Self { problem, field, courant: Vec::new() };
        for (axis, source) in task.courant.iter().enumerate() {
            let input = match source {
                CourantSource::Constant(value) if !value.is_finite() => {
                    let what = format!("{value} along axis {axis} is not finite");
                    return Err(Error::input("`courant`", what, "give a number such as 0.25"));
                }
                CourantSource::Constant(value) => CourantInput::Constant(*value),
                CourantSource::Faces(source) => CourantInput::Faces(inputs.open_faces(source, axis)?),
            };
            inputs.courant.push(input);
        }
        if task.memory.is_some() || task.directory().is_some() {
            inputs.all().try_for_each(|input| input.file().map(drop))?;
        }
        Ok(inputs)
    }

    /// Opens the Courant numbers along an axis.
    fn open_faces(&self, source: &ArraySource<'a>, axis: usize) -> Result<Input<'a>> {
        let sizes = &self.problem.sizes;
        let (faces, shape) = Input::open(source)?;
        let mut wanted = sizes.clone();
        wanted[axis] += 1;
        if shape != wanted {
            return Err(Error::input(
                faces.place(),
                format!(
                    "is {}, but Courant numbers along axis {axis} of a field of {} are on {} faces",
                    show(&shape),
                    show(sizes),
                    show(&wanted)
                ),
                "save values on the faces: one more along their own axis",
            ));
        }
        if faces.element() != self.field.element() {
            let (own, theirs) = (self.field.place(), self.field.element());
            let what = format!("holds {}, but {own} holds {theirs}", faces.element());
            return Err(Error::input(faces.place(), what, "convert one of them to the other's type"));
        }
        Ok(faces)
    }

    /// The arrays of the Courant numbers.
    pub(crate) fn faces(&self) -> impl Iterator<Item = &Input<'a>> {
        self.courant.iter().filter_map(|input| match input {
            CourantInput::Faces(faces) => Some(faces),
            CourantInput::Constant(_) => None,
        })
    }

    fn all(&self) -> impl Iterator<Item = &Input<'a>> {
        [&self.field].into_iter().chain(self.faces())
    }

    /// Checks that the files are as they were when their headers were read.
    ///
    /// # Errors
    /// One has changed.
    pub(crate) fn check_unchanged(&self) -> Result<()> {
        self.all().try_for_each(Input::check_unchanged)
    }

    /// Checks that the first and the last faces of periodic axes are the same, a line of the files at a time.
    ///
    /// # Errors
    /// They differ; a file cannot be read.
    pub(crate) fn check_periodic<T: Advectable>(&self) -> Result<()> {
        let domain = self.problem.domain();
        let plane = Plane::of(&self.problem.sizes);
        for (number, input) in self.courant.iter().enumerate() {
            let CourantInput::Faces(faces) = input else { continue };
            let (axis, n) = (domain.axes()[number], self.problem.sizes[number]);
            if self.problem.boundary[number] != Boundary::Periodic {
                continue;
            }
            let place = Place::Face(axis);
            let (rows, cols) = plane.matrix(place);
            let refuse = || {
                Err(Error::input(
                    faces.place(),
                    format!("its first and last faces along axis {number} differ, but the axis is periodic"),
                    format!("make face {n} equal to face 0, or choose another `boundary`"),
                ))
            };
            let read = |rect: Rect| -> Result<Vec<T>> { Ok(faces.read(&[rect])?.remove(0).1) };
            let (all, row) = (Span::new(0, cols), |i: u64| Span::new(i, i + 1));
            if axis == 0 {
                if read(Rect::new(row(0), all))? != read(Rect::new(row(n as u64), all))? {
                    return refuse();
                }
                continue;
            }
            if axis == 2 && self.problem.sizes.len() < 3 {
                // Such a line may be all of the file.
                for i in 0..rows {
                    let one = |at: u64| Rect::new(row(i), Span::new(at, at + 1));
                    if read(one(0))? != read(one(n as u64))? {
                        return refuse();
                    }
                }
                continue;
            }
            // The distance between the first and the last face in a row of the matrix, and how often.
            let (apart, width, every) = if axis == 1 {
                let deep = cols / (n as u64 + 1);
                (n as u64 * deep, deep, cols)
            } else {
                (n as u64, 1, n as u64 + 1)
            };
            for i in 0..rows {
                let line = read(Rect::new(row(i), all))?;
                for start in (0..cols).step_by(every as usize) {
                    let part = |from: u64| &line[from as usize..(from + width) as usize];
                    if part(start) != part(start + apart) {
                        return refuse();
                    }
                }
            }
        }
        Ok(())
    }

    /// This process's cells of the field, or of one in a file of the same sizes.
    ///
    /// # Errors
    /// A value that is not finite or too large.
    pub(crate) fn read_field<T: Advectable>(
        &self,
        kept: Option<&ArrayFile>,
        schedule: &AdvectSchedule,
        world: &World,
    ) -> Result<LocalBlocks<T>> {
        let own = own_cells(schedule, world);
        let blocks = kept.map_or_else(|| self.field.read(&own), |file| file.read(&own))?;
        let place = kept.map_or_else(|| self.field.place(), |file| file_place(&file.path));
        blocks.iter().try_for_each(|block| self.check_values(&place, block))?;
        Ok(blocks)
    }

    /// Checks a block of a field.
    ///
    /// # Errors
    /// A value that is not finite or too large, with its place.
    pub(crate) fn check_values<T: Advectable>(
        &self,
        place: &str,
        (rect, elements): &(Rect, Vec<T>),
    ) -> Result<()> {
        let fits = |x: &T| x.to_f64().abs() <= T::LIMIT;
        let Some(bad) = elements.iter().position(|x| !fits(x)) else { return Ok(()) };
        let levels = if self.problem.sizes.len() == 3 { self.problem.sizes[2] as u64 } else { 1 };
        let (i, col) = (bad as u64 / rect.cols.len(), rect.cols.start + bad as u64 % rect.cols.len());
        let at = match self.problem.sizes.len() {
            1 => format!("({col})"),
            2 => format!("({}, {col})", rect.rows.start + i),
            _ => format!("({}, {}, {})", rect.rows.start + i, col / levels, col % levels),
        };
        Err(Error::input(
            format!("{place}: element {at}"),
            format!("is {}, not a finite number of at most {:e}", elements[bad], T::LIMIT),
            "replace it, or rescale the field",
        ))
    }

    /// The faces that this process needs.
    pub(crate) fn read_courant<T: Advectable>(
        &self,
        schedule: &AdvectSchedule,
        world: &World,
    ) -> Result<Vec<LocalBlocks<T>>> {
        let one = |(number, input): (usize, &CourantInput<'_>)| match input {
            CourantInput::Constant(_) => Ok(LocalBlocks::new()),
            CourantInput::Faces(faces) => faces.read(&needed_faces(schedule, number, world)),
        };
        self.courant.iter().enumerate().map(one).collect()
    }

    /// The Courant numbers, from the faces that were read.
    pub(crate) fn courant<'b, T: Advectable>(&self, faces: &'b [LocalBlocks<T>]) -> Vec<Courant<'b, T>> {
        let one = |(input, blocks): (&CourantInput<'_>, &'b LocalBlocks<T>)| match input {
            CourantInput::Constant(value) => Courant::Constant(T::from_f64(*value)),
            CourantInput::Faces(_) => Courant::Faces(blocks),
        };
        self.courant.iter().zip(faces).map(one).collect()
    }
}
