//! The files of an advection: opened, compared with each other, and read by parts.

use super::{AdvectTask, CourantSource, file_place};
use crate::{AdvectProblem, AdvectSchedule, Courant, Plane, needed_faces, own_cells};
use apportion::error::{Error, Result};
use apportion::files::FileState;
use apportion::geometry::{Rect, Span};
use apportion::kernels::mpdata::{Advectable, Boundary, Place};
use apportion::matrix::{LocalBlocks, NpyArray, NpyHeader, read_npy_array, read_tiles};
use apportion::run::World;
use std::path::{Path, PathBuf};

/// A file whose header has been read.
pub struct ArrayFile {
    pub path: PathBuf,
    pub header: NpyHeader,
    /// The file as it was before its header was read.
    pub state: FileState,
}

/// Courant numbers along an axis.
pub enum CourantInput {
    Constant(f64),
    File(ArrayFile),
}

/// The files of an advection, whose sizes fit together.
pub struct Inputs {
    pub problem: AdvectProblem,
    pub field: ArrayFile,
    pub courant: Vec<CourantInput>,
}

fn show(sizes: &[usize]) -> String {
    sizes.iter().map(usize::to_string).collect::<Vec<_>>().join(" x ")
}

impl Inputs {
    /// Opens the files of a task.
    ///
    /// # Errors
    /// A file that cannot be read, elements of other types, sizes that do not fit.
    pub fn open(task: &AdvectTask<'_>) -> Result<Self> {
        let state = FileState::of(&task.field)?;
        let NpyArray { header, sizes } = read_npy_array(&task.field)?;
        if header.dtype != "f64" && header.dtype != "f32" {
            let what = format!("holds {}, but a field is f32 or f64", header.dtype);
            return Err(Error::input(file_place(&task.field), what, "save it as numpy.float64"));
        }
        let problem = AdvectProblem::new(sizes, &task.boundary, task.scheme)?;
        let axes = problem.sizes.len();
        if task.courant.len() != axes {
            let what = format!("{} entries for a field of {axes} dimensions", task.courant.len());
            return Err(Error::input("`courant`", what, "give a number or a file for each axis"));
        }
        let field = ArrayFile { path: task.field.clone(), header, state };
        let mut inputs = Self { problem, field, courant: Vec::new() };
        for (axis, source) in task.courant.iter().enumerate() {
            let input = match source {
                CourantSource::Constant(value) if !value.is_finite() => {
                    let what = format!("{value} along axis {axis} is not finite");
                    return Err(Error::input("`courant`", what, "give a number such as 0.25"));
                }
                CourantSource::Constant(value) => CourantInput::Constant(*value),
                CourantSource::File(path) => CourantInput::File(inputs.open_faces(path, axis)?),
            };
            inputs.courant.push(input);
        }
        Ok(inputs)
    }

    /// Opens the Courant numbers along an axis.
    fn open_faces(&self, path: &Path, axis: usize) -> Result<ArrayFile> {
        let sizes = &self.problem.sizes;
        let state = FileState::of(path)?;
        let NpyArray { header, sizes: shape } = read_npy_array(path)?;
        let mut wanted = sizes.clone();
        wanted[axis] += 1;
        if shape != wanted {
            return Err(Error::input(
                file_place(path),
                format!(
                    "is {}, but Courant numbers along axis {axis} of a field of {} are on {} faces",
                    show(&shape),
                    show(sizes),
                    show(&wanted)
                ),
                "save values on the faces: one more along their own axis",
            ));
        }
        if header.dtype != self.field.header.dtype {
            let (own, theirs) = (file_place(&self.field.path), self.field.header.dtype);
            let what = format!("holds {}, but {own} holds {theirs}", header.dtype);
            return Err(Error::input(file_place(path), what, "convert one of them to the other's type"));
        }
        Ok(ArrayFile { path: path.to_path_buf(), header, state })
    }

    /// The files of the Courant numbers.
    pub fn face_files(&self) -> impl Iterator<Item = &ArrayFile> {
        self.courant.iter().filter_map(|input| match input {
            CourantInput::File(file) => Some(file),
            CourantInput::Constant(_) => None,
        })
    }

    /// Checks that the files are as they were when their headers were read.
    ///
    /// # Errors
    /// One has changed.
    pub fn check_unchanged(&self) -> Result<()> {
        self.face_files().chain([&self.field]).try_for_each(|file| file.state.check(&file.path))
    }

    /// Checks that the first and the last faces of periodic axes are the same, a line of the files at a time.
    ///
    /// # Errors
    /// They differ; a file cannot be read.
    pub fn check_periodic<T: Advectable>(&self) -> Result<()> {
        let domain = self.problem.domain();
        let plane = Plane::of(&self.problem.sizes);
        for (number, input) in self.courant.iter().enumerate() {
            let CourantInput::File(file) = input else { continue };
            let (axis, n) = (domain.axes()[number], self.problem.sizes[number]);
            if self.problem.boundary[number] != Boundary::Periodic {
                continue;
            }
            let place = Place::Face(axis);
            let (rows, cols) = plane.matrix(place);
            let refuse = || {
                Err(Error::input(
                    file_place(&file.path),
                    format!("its first and last faces along axis {number} differ, but the axis is periodic"),
                    format!("make face {n} equal to face 0, or choose another `boundary`"),
                ))
            };
            let read = |rect: Rect| -> Result<Vec<T>> {
                Ok(read_tiles::<T>(&file.path, &file.header, &[rect])?.remove(0).1)
            };
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

    /// This process's cells of a field in a file of the problem's sizes.
    ///
    /// # Errors
    /// A value that is not finite or too large.
    pub fn read_field<T: Advectable>(
        &self,
        file: &ArrayFile,
        schedule: &AdvectSchedule,
        world: &World,
    ) -> Result<LocalBlocks<T>> {
        let blocks = read_tiles::<T>(&file.path, &file.header, &own_cells(schedule, world))?;
        blocks.iter().try_for_each(|block| self.check_values(&file.path, block))?;
        Ok(blocks)
    }

    /// Checks a block of a field.
    ///
    /// # Errors
    /// A value that is not finite or too large, with its place.
    pub fn check_values<T: Advectable>(&self, file: &Path, (rect, elements): &(Rect, Vec<T>)) -> Result<()> {
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
            format!("{}: element {at}", file.display()),
            format!("is {}, not a finite number of at most {:e}", elements[bad], T::LIMIT),
            "replace it, or rescale the field",
        ))
    }

    /// The faces that this process needs.
    pub fn read_courant<T: Advectable>(
        &self,
        schedule: &AdvectSchedule,
        world: &World,
    ) -> Result<Vec<LocalBlocks<T>>> {
        let one = |(number, input): (usize, &CourantInput)| match input {
            CourantInput::Constant(_) => Ok(LocalBlocks::new()),
            CourantInput::File(file) => {
                read_tiles::<T>(&file.path, &file.header, &needed_faces(schedule, number, world))
            }
        };
        self.courant.iter().enumerate().map(one).collect()
    }

    /// The Courant numbers, from the faces that were read.
    pub fn courant<'a, T: Advectable>(&self, faces: &'a [LocalBlocks<T>]) -> Vec<Courant<'a, T>> {
        let one = |(input, blocks): (&CourantInput, &'a LocalBlocks<T>)| match input {
            CourantInput::Constant(value) => Courant::Constant(T::from_f64(*value)),
            CourantInput::File(_) => Courant::Faces(blocks),
        };
        self.courant.iter().zip(faces).map(one).collect()
    }
}
