//! What the processes of a world read, as far as the headers tell: sizes that fit together, elements of one kind.

use super::{Job, Task};
use crate::prepare::product::not_numbers;
use apportion::error::{Error, Result};
use apportion::geometry::Rect;
use apportion::kernels::Kernel;
use apportion::kernels::Semiring;
use apportion::matrix::{AnyMatrix, Element, LocalBlocks, Matrix, NpyHeader, read_npy_header, read_tiles};
use apportion::plan::Shape;
use std::path::Path;

/// The elements of the factors, and whether truth values are written as such.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    F32,
    F64,
    I32,
    I64,
    Truth { bool: bool },
}

/// A file of which each process reads its own parts; its header is as transposed.
pub(super) struct Input<'a> {
    path: &'a Path,
    header: NpyHeader,
    transposed: bool,
}

impl<'a> Input<'a> {
    fn open(path: &'a Path, transposed: bool) -> Result<Self> {
        if !path.extension().is_some_and(|e| e.eq_ignore_ascii_case("npy")) {
            return Err(Error::input(
                path.display().to_string(),
                "is not called .npy: with --engine mpi each process reads its own part of the file",
                "give a NumPy .npy file, or use --engine threads",
            ));
        }
        let header = read_npy_header(path)?;
        Ok(Self { path, header: if transposed { header.transposed() } else { header }, transposed })
    }

    fn dtype(&self) -> &'static str {
        self.header.dtype
    }

    fn size(&self) -> (usize, usize) {
        (self.header.rows, self.header.cols)
    }

    /// `b.npy: is 8 x 9, but …`.
    fn misfit(&self, but: &str, remedy: &str) -> Error {
        let turned = if self.transposed { "transposed, " } else { "" };
        let what = format!("{turned}is {} x {}{but}", self.header.rows, self.header.cols);
        Error::input(self.path.display().to_string(), what, remedy)
    }

    pub(super) fn read<T: Element>(&self, kernel: Kernel<T>, rects: &[Rect]) -> Result<LocalBlocks<T>> {
        let tiles = read_tiles::<T>(self.path, &self.header, rects)?;
        let place = self.path.display().to_string();
        tiles.iter().try_for_each(|(rect, tile)| kernel.check_tile((*rect, tile), &place))?;
        Ok(tiles)
    }
}

/// What a product reads.
pub(super) struct Inputs<'a> {
    pub a: Input<'a>,
    pub b: Input<'a>,
    pub initial: Option<Input<'a>>,
}

/// The files, the shape of the product and the kind of its elements.
pub(super) fn inputs_of<'a>(task: &Task<'a>) -> Result<(Inputs<'a>, Shape, Kind)> {
    let (path_a, path_b) = task.factors;
    let (turned, path_0) = match task.job {
        Job::Product(scaled) => ([scaled.transpose_a, scaled.transpose_b], scaled.c_in.as_deref()),
        Job::Power(_) | Job::Closure(_) => ([false; 2], None),
    };
    let a = Input::open(path_a, turned[0])?;
    let b = Input::open(path_b, turned[1])?;
    let initial = path_0.map(|path| Input::open(path, false)).transpose()?;
    let inputs = Inputs { a, b, initial };
    let kind = inputs.kind(task.semiring)?;
    let shape = inputs.shape(task.job)?;
    Ok((inputs, shape, kind))
}

impl Inputs<'_> {
    fn all(&self) -> impl Iterator<Item = &Input<'_>> {
        [&self.a, &self.b].into_iter().chain(&self.initial)
    }

    fn kind(&self, semiring: Semiring) -> Result<Kind> {
        let truth = |dtype: &str| dtype == "bool" || dtype == "u8";
        for input in self.all() {
            let dtype = input.dtype();
            if semiring == Semiring::OrAnd && !truth(dtype) {
                let what = format!("holds {dtype}, but or-and takes bool or u8");
                let remedy = "save it as numpy.bool_ or numpy.uint8";
                return Err(Error::input(input.path.display().to_string(), what, remedy));
            }
            let whole = dtype == "i32" || dtype == "i64";
            if semiring != Semiring::OrAnd && truth(dtype) || semiring == Semiring::PlusTimes && whole {
                return Err(not_numbers(&none(dtype), semiring, input.path));
            }
            if semiring != Semiring::OrAnd && dtype != self.a.dtype() {
                return Err(Error::input(
                    input.path.display().to_string(),
                    format!("holds {dtype}, but {} holds {}", self.a.path.display(), self.a.dtype()),
                    "convert one of them, so that all have the same element type",
                ));
            }
        }
        Ok(match self.a.dtype() {
            _ if semiring == Semiring::OrAnd => Kind::Truth { bool: self.all().all(|i| i.dtype() == "bool") },
            "f32" => Kind::F32,
            "f64" => Kind::F64,
            "i32" => Kind::I32,
            _ => Kind::I64,
        })
    }

    fn shape(&self, job: Job<'_>) -> Result<Shape> {
        let ((m, k), (inner, n)) = (self.a.size(), self.b.size());
        if k != inner {
            let left =
                format!("{} {}", self.a.path.display(), if self.a.transposed { "transposed, " } else { "" });
            return Err(match job {
                Job::Product(_) => self.b.misfit(
                    &format!(", but {left}is {m} x {k}"),
                    &format!("the right factor needs {k} rows"),
                ),
                Job::Power(_) | Job::Closure(_) => self.a.misfit(", not square", "give a square matrix"),
            });
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

/// A matrix of this type, for a message about it.
fn none(dtype: &str) -> AnyMatrix {
    match dtype {
        "i32" => AnyMatrix::I32(Matrix::new(0, 0, Vec::new())),
        "i64" => AnyMatrix::I64(Matrix::new(0, 0, Vec::new())),
        "bool" => AnyMatrix::Bool(Matrix::new(0, 0, Vec::new())),
        _ => AnyMatrix::U8(Matrix::new(0, 0, Vec::new())),
    }
}
