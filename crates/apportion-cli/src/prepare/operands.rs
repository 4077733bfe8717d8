//! The operands of a product: files whose sizes fit together, with elements of one kind.

use crate::prepare::distributed::is_layout;
use crate::prepare::task::{Job, Task};
use apportion::error::{Error, Result};
use apportion::files::{FileState, is_stream};
use apportion::geometry::{Rect, Span};
use apportion::kernels::{Kernel, Semiring};
use apportion::matrix::{
    AnyMatrix, DistributedFile, Element, LocalBlocks, Matrix, NpyHeader, read_matrix_transposed,
    read_matrix_with, read_npy_header, read_tiles,
};
use apportion::plan::Shape;
use apportion::run::World;
use std::path::{Path, PathBuf};

/// The elements of the operands, and whether truth values are written as such.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    F32,
    F64,
    I32,
    I64,
    Truth { bool: bool },
}

impl Kind {
    /// Bytes of an element in a file.
    pub fn bytes(self) -> u64 {
        match self {
            Self::F64 | Self::I64 => 8,
            Self::F32 | Self::I32 => 4,
            Self::Truth { .. } => 1,
        }
    }
}

/// A file of which each process reads its own parts; its sizes are those after any transposition.
pub struct Input<'a> {
    path: &'a Path,
    transposed: bool,
    source: Source,
    /// The files that are read when their elements are needed, as they were before their headers were.
    files: Vec<(PathBuf, FileState)>,
}

/// The source of the elements.
enum Source {
    /// Rectangles of an `.npy` file.
    Npy(NpyHeader),
    /// Rectangles of the `.npy` files that a layout file names.
    Blocks(DistributedFile),
    /// A Matrix Market file, or a matrix from a stream, which only a single process reads.
    Whole(AnyMatrix),
}

impl<'a> Input<'a> {
    fn open(path: &'a Path, transposed: bool, semiring: Semiring, world: &World) -> Result<Self> {
        let is = |ending: &str| path.extension().is_some_and(|e| e.eq_ignore_ascii_case(ending));
        if !is("npy") && !is_layout(path) && !world.is_solo() {
            return Err(Error::input(
                path.display().to_string(),
                "is not called .npy or .json: with --engine mpi each process reads its own part of the matrix",
                "give a NumPy .npy file or a layout file, or use --engine threads",
            ));
        }
        let streamed = is_stream(path);
        let mut files = Vec::new();
        let mut watch =
            |path: &Path| FileState::of(path).map(|state| files.push((path.to_path_buf(), state)));
        if !streamed {
            watch(path)?;
        }
        let source = if is("npy") && !streamed {
            let header = read_npy_header(path)?;
            Source::Npy(if transposed { header.transposed() } else { header })
        } else if is_layout(path) {
            let blocks = DistributedFile::open(path, transposed)?;
            blocks.files().try_for_each(watch)?;
            Source::Blocks(blocks)
        } else {
            let absent = semiring.zero();
            Source::Whole(if transposed {
                read_matrix_transposed(path, absent)?
            } else {
                read_matrix_with(path, absent)?
            })
        };
        let input = Self { path, transposed, source, files };
        input.check_unchanged()?;
        Ok(input)
    }

    /// Checks that the files are as they were when the input was opened.
    fn check_unchanged(&self) -> Result<()> {
        self.files.iter().try_for_each(|(path, state)| state.check(path))
    }

    /// The name of the element type; Matrix Market files hold truth values if these are requested.
    fn dtype(&self, semiring: Semiring) -> &'static str {
        match &self.source {
            Source::Npy(header) => header.dtype,
            Source::Blocks(file) => file.dtype(),
            Source::Whole(_) if semiring == Semiring::OrAnd => "bool",
            Source::Whole(matrix) => matrix.name(),
        }
    }

    fn size(&self) -> (usize, usize) {
        match &self.source {
            Source::Npy(header) => (header.rows, header.cols),
            Source::Blocks(file) => (file.rows(), file.cols()),
            Source::Whole(matrix) => (matrix.rows(), matrix.cols()),
        }
    }

    /// `b.npy: is 8 x 9, but …`.
    fn misfit(&self, but: &str, remedy: &str) -> Error {
        let turned = if self.transposed { "transposed, " } else { "" };
        let (rows, cols) = self.size();
        let what = format!("{turned}is {rows} x {cols}{but}");
        Error::input(self.path.display().to_string(), what, remedy)
    }

    /// Some rectangles, whose elements the semiring accepts.
    pub fn read<T: Element>(&self, kernel: Kernel<T>, rects: &[Rect]) -> Result<LocalBlocks<T>> {
        let blocks = match &self.source {
            Source::Npy(header) => read_tiles::<T>(self.path, header, rects)?,
            Source::Blocks(file) => file.read::<T>(rects)?,
            Source::Whole(matrix) => {
                let (rows, cols) = self.size();
                let whole = Rect::new(Span::new(0, rows as u64), Span::new(0, cols as u64));
                assert_eq!(rects, [whole], "a process alone reads a matrix whole");
                vec![(whole, elements::<T>(matrix))]
            }
        };
        let place = self.path.display().to_string();
        self.check_unchanged()?;
        blocks.iter().try_for_each(|(rect, block)| kernel.check_tile(*rect, block, &place))?;
        Ok(blocks)
    }
}

/// A whole matrix's numbers as elements; for truth values, any number but 0 is true.
fn elements<T: Element>(matrix: &AnyMatrix) -> Vec<T> {
    let truth = size_of::<T>() == 1;
    if let Some(elements) = matrix.elements::<T>() {
        return elements.to_vec();
    }
    let AnyMatrix::F64(matrix) = matrix else { unreachable!("other types were refused") };
    let element = |x: &f64| T::from_f64(if truth { f64::from(u8::from(*x != 0.0)) } else { *x });
    matrix.as_slice().iter().map(element).collect()
}

/// The operands of a product.
pub struct Inputs<'a> {
    pub a: Input<'a>,
    pub b: Input<'a>,
    pub initial: Option<Input<'a>>,
}

/// The files, the shape of the product and the kind of its elements.
///
/// # Errors
/// A file that cannot be read, elements of different types, sizes that do not fit.
pub fn inputs_of<'a>(task: &Task<'a>, world: &World) -> Result<(Inputs<'a>, Shape, Kind)> {
    let (path_a, path_b) = task.factors;
    let (turned, path_0) = match task.job {
        Job::Product(args) => {
            ([args.scaled.transpose_a, args.scaled.transpose_b], args.scaled.c_in.as_deref())
        }
        Job::Power(_) | Job::Closure(..) => ([false; 2], None),
    };
    let open = |path, turned| Input::open(path, turned, task.semiring, world);
    let a = open(path_a, turned[0])?;
    // A power reads its matrix once.
    let b = if matches!(task.job, Job::Product(_)) { open(path_b, turned[1])? } else { a.again() };
    let initial = path_0.map(|path| open(path, false)).transpose()?;
    let inputs = Inputs { a, b, initial };
    let kind = inputs.kind(task.semiring)?;
    let shape = inputs.shape(task.job)?;
    Ok((inputs, shape, kind))
}

impl<'a> Input<'a> {
    /// The same sizes and type, for comparison only: the file is not read again.
    fn again(&self) -> Self {
        let empty = || AnyMatrix::F64(Matrix::new(self.size().0, 0, Vec::new()));
        let source = match &self.source {
            Source::Npy(header) => Source::Npy(*header),
            Source::Blocks(file) => Source::Blocks(file.clone()),
            Source::Whole(_) => Source::Whole(empty()),
        };
        Self { source, path: self.path, transposed: self.transposed, files: Vec::new() }
    }
}

impl Inputs<'_> {
    fn all(&self) -> impl Iterator<Item = &Input<'_>> {
        [&self.a, &self.b].into_iter().chain(&self.initial)
    }

    fn kind(&self, semiring: Semiring) -> Result<Kind> {
        let truth = |dtype: &str| dtype == "bool" || dtype == "u8";
        let first = self.a.dtype(semiring);
        for input in self.all() {
            let dtype = input.dtype(semiring);
            let refuse =
                |what, remedy: &str| Err(Error::input(input.path.display().to_string(), what, remedy));
            let whole = dtype == "i32" || dtype == "i64";
            let takes = match semiring {
                Semiring::OrAnd if !truth(dtype) => {
                    Some(("bool or u8", "save it as numpy.bool_ or numpy.uint8"))
                }
                Semiring::OrAnd => None,
                Semiring::PlusTimes if truth(dtype) => {
                    Some(("f32 or f64", "choose --semiring or-and, or save it as numpy.float64"))
                }
                Semiring::PlusTimes if whole => Some(("f32 or f64", "save it as numpy.float64")),
                _ if truth(dtype) => {
                    Some(("f32, f64, i32 or i64", "choose --semiring or-and, or save it as numpy.float64"))
                }
                _ => None,
            };
            if let Some((takes, remedy)) = takes {
                return refuse(format!("holds {dtype}, but {semiring} takes {takes}"), remedy);
            }
            if semiring != Semiring::OrAnd && dtype != first {
                return refuse(
                    format!("holds {dtype}, but {} holds {first}", self.a.path.display()),
                    "convert one of them, so that all have the same element type",
                );
            }
        }
        Ok(match first {
            _ if semiring == Semiring::OrAnd => {
                Kind::Truth { bool: self.all().all(|input| input.dtype(semiring) == "bool") }
            }
            "f32" => Kind::F32,
            "f64" => Kind::F64,
            "i32" => Kind::I32,
            _ => Kind::I64,
        })
    }

    fn shape(&self, job: Job<'_>) -> Result<Shape> {
        let (m, k) = self.a.size();
        let Job::Product(_) = job else {
            if m != k {
                return Err(self.a.misfit(", not square", "give a square matrix"));
            }
            return Shape::new(m as u64, m as u64, m as u64, "matrix");
        };
        let (inner, n) = self.b.size();
        if k != inner {
            let turned = if self.a.transposed { "transposed, " } else { "" };
            let but = format!(", but {} {turned}is {m} x {k}", self.a.path.display());
            return Err(self.b.misfit(&but, &format!("the right factor needs {k} rows")));
        }
        match &self.initial {
            Some(c) if c.size() != (m, n) => Err(c.misfit(
                &format!(", but the product is {m} x {n}"),
                "give an initial C of the product's size",
            )),
            _ => Shape::new(m as u64, k as u64, n as u64, "matrices"),
        }
    }
}
