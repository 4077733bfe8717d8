//! The operands of a product: files whose sizes fit together, with elements of one kind.

use super::product::{Operation, ProductTask};
use crate::error::{Error, Result};
use crate::files::{FileState, is_stream};
use crate::geometry::{Extent, Rect, Span};
use crate::kernels::{Kernel, Semiring};
use crate::matrix::{
    AnyMatrix, AnyView, BlockViews, DistributedFile, Element, LocalBlocks, Matrix, NpyHeader,
    read_matrix_transposed, read_matrix_with, read_npy_header, read_tiles, views_of,
};
use crate::plan::Shape;
use crate::run::{Monitor, World};
use std::path::{Path, PathBuf};

/// A matrix that a job takes.
#[derive(Debug, Clone)]
pub enum MatrixOperand<'a> {
    /// A file (`.npy`, `.mtx`, or a layout file, `.json`, of several `.npy` files), or its transpose.
    File {
        /// The file.
        path: PathBuf,
        /// True for the transpose of what the file holds.
        transposed: bool,
    },
    /// A matrix in memory, which every process of the world holds whole.
    Array {
        /// Its name in errors.
        name: &'static str,
        /// Its elements.
        view: AnyView<'a>,
    },
    /// A matrix in memory of which every process of the world holds its own blocks.
    Distributed {
        /// Its name in errors.
        name: &'static str,
        /// The blocks of this process.
        array: DistributedArray<'a>,
    },
}

/// The blocks that a process holds of a matrix in memory: those that the plan of a product gives it, as
/// [`OwnRects::of_layout`](crate::product::OwnRects::of_layout) names them.
#[derive(Debug, Clone)]
pub struct DistributedArray<'a> {
    size: Extent,
    element: &'static str,
    blocks: Vec<(Rect, AnyView<'a>)>,
}

impl<'a> DistributedArray<'a> {
    /// The blocks of a matrix of this size.
    ///
    /// # Panics
    /// If a block has not as many elements as its rectangle.
    pub fn new<T: Element>(size: Extent, blocks: BlockViews<'a, T>) -> Self {
        let view = |(rect, elements): (Rect, &'a [T])| {
            (rect, AnyView::new(rect.rows.len() as usize, rect.cols.len() as usize, elements))
        };
        Self { size, element: T::NAME, blocks: blocks.into_iter().map(view).collect() }
    }

    /// The elements of a rectangle that is one of the blocks.
    fn block<T: Element>(&self, rect: Rect) -> Option<&'a [T]> {
        let (_, view) = self.blocks.iter().find(|(place, _)| *place == rect)?;
        view.elements::<T>()
    }
}

impl MatrixOperand<'_> {
    /// The file, if it is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::File { path, .. } => Some(path),
            Self::Array { .. } | Self::Distributed { .. } => None,
        }
    }

    /// What errors call it.
    fn place(&self) -> String {
        match self {
            Self::File { path, .. } => path.display().to_string(),
            Self::Array { name, .. } | Self::Distributed { name, .. } => (*name).to_owned(),
        }
    }
}

/// True if a path names a layout file.
pub fn is_layout_file(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("json"))
}

/// The elements of the operands, and whether truth values are written as such.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    F32,
    F64,
    I32,
    I64,
    Truth { bool: bool },
}

impl Kind {
    /// Bytes of an element in a file.
    pub(crate) fn bytes(self) -> u64 {
        match self {
            Self::F64 | Self::I64 => 8,
            Self::F32 | Self::I32 => 4,
            Self::Truth { .. } => 1,
        }
    }
}

/// An operand of which each process reads its own parts; its sizes are those after any transposition.
pub(crate) struct Input<'a> {
    operand: &'a MatrixOperand<'a>,
    source: Source<'a>,
    /// The files that are read when their elements are needed, as they were before their headers were.
    files: Vec<(PathBuf, FileState)>,
}

/// The source of the elements.
enum Source<'a> {
    /// Rectangles of an `.npy` file.
    Npy(NpyHeader),
    /// Rectangles of the `.npy` files that a layout file names.
    Blocks(DistributedFile),
    /// A Matrix Market file, or a matrix from a stream, which only a single process reads.
    Whole(AnyMatrix),
    /// A matrix in memory.
    Memory(AnyView<'a>),
    /// This process's blocks of a matrix in memory.
    Distributed(&'a DistributedArray<'a>),
}

impl<'a> Input<'a> {
    fn open(operand: &'a MatrixOperand<'a>, semiring: Semiring, world: &World) -> Result<Self> {
        let (path, transposed) = match operand {
            MatrixOperand::File { path, transposed } => (path, *transposed),
            MatrixOperand::Array { view, .. } => {
                return Ok(Self { operand, source: Source::Memory(*view), files: Vec::new() });
            }
            MatrixOperand::Distributed { array, .. } => {
                return Ok(Self { operand, source: Source::Distributed(array), files: Vec::new() });
            }
        };
        let is = |ending: &str| path.extension().is_some_and(|e| e.eq_ignore_ascii_case(ending));
        if !is("npy") && !is_layout_file(path) && !world.is_solo() {
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
        } else if is_layout_file(path) {
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
        let input = Self { operand, source, files };
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
            Source::Memory(view) => view.name(),
            Source::Distributed(array) => array.element,
        }
    }

    fn size(&self) -> (usize, usize) {
        match &self.source {
            Source::Npy(header) => (header.rows, header.cols),
            Source::Blocks(file) => (file.rows(), file.cols()),
            Source::Whole(matrix) => (matrix.rows(), matrix.cols()),
            Source::Memory(view) => (view.rows(), view.cols()),
            Source::Distributed(array) => (array.size.rows as usize, array.size.cols as usize),
        }
    }

    /// `b.npy: is 8 x 9, but …`.
    fn misfit(&self, but: &str, remedy: &str) -> Error {
        let (turned, (rows, cols)) = (self.turned(), self.size());
        let what = format!("{turned}is {rows} x {cols}{but}");
        Error::input(self.operand.place(), what, remedy)
    }

    /// `transposed, ` if it is.
    fn turned(&self) -> &'static str {
        match self.operand {
            MatrixOperand::File { transposed: true, .. } => "transposed, ",
            _ => "",
        }
    }

    /// Some rectangles, whose elements the semiring accepts.
    pub(crate) fn read<T: Element>(&self, kernel: Kernel<T>, rects: &[Rect]) -> Result<OwnBlocks<'a, T>> {
        let place = self.operand.place();
        let path = self.operand.path().unwrap_or(Path::new(""));
        let blocks = match &self.source {
            Source::Npy(header) => read_tiles::<T>(path, header, rects)?,
            Source::Blocks(file) => file.read::<T>(rects)?,
            Source::Whole(matrix) => {
                let (rows, cols) = self.size();
                let whole = Rect::new(Span::new(0, rows as u64), Span::new(0, cols as u64));
                assert_eq!(rects, [whole], "a process alone reads a matrix whole");
                vec![(whole, elements::<T>(matrix))]
            }
            Source::Memory(view) => {
                let elements = view.elements::<T>().expect("other types were refused");
                let whole = Rect::new(Span::new(0, view.rows() as u64), Span::new(0, view.cols() as u64));
                kernel.check_tile(whole, elements, &place)?;
                return Ok(match rects {
                    [rect] if *rect == whole => OwnBlocks::Borrowed(vec![(whole, elements)]),
                    _ => OwnBlocks::Owned(
                        rects.iter().map(|rect| (*rect, cut(elements, view.cols(), *rect))).collect(),
                    ),
                });
            }
            Source::Distributed(array) => {
                let mut own = Vec::new();
                for rect in rects {
                    let elements = array.block::<T>(*rect).ok_or_else(|| {
                        let Rect { rows, cols } = *rect;
                        let what = format!(
                            "this process does not hold rows {}..{} and columns {}..{}, which the plan gives it",
                            rows.start, rows.end, cols.start, cols.end
                        );
                        Error::input(&place, what, "distribute the matrix as the plan lays it out")
                    })?;
                    kernel.check_tile(*rect, elements, &place)?;
                    own.push((*rect, elements));
                }
                return Ok(OwnBlocks::Borrowed(own));
            }
        };
        self.check_unchanged()?;
        blocks.iter().try_for_each(|(rect, block)| kernel.check_tile(*rect, block, &place))?;
        Ok(OwnBlocks::Owned(blocks))
    }
}

/// A process's blocks of a matrix: its own, or those of an array in memory.
pub(crate) enum OwnBlocks<'a, T> {
    Owned(LocalBlocks<T>),
    Borrowed(BlockViews<'a, T>),
}

impl<T: Element> OwnBlocks<'_, T> {
    pub(crate) fn views(&self) -> BlockViews<'_, T> {
        match self {
            Self::Owned(blocks) => views_of(blocks),
            Self::Borrowed(views) => views.clone(),
        }
    }

    /// The blocks of the transpose.
    pub(crate) fn transposed(&self) -> LocalBlocks<T> {
        let turned = |(rect, elements): &(Rect, &[T])| {
            let (rows, cols) = (rect.rows.len() as usize, rect.cols.len() as usize);
            (Rect::new(rect.cols, rect.rows), Matrix::from_columns(cols, rows, elements).into_elements())
        };
        self.views().iter().map(turned).collect()
    }

    pub(crate) fn into_blocks(self) -> LocalBlocks<T> {
        match self {
            Self::Owned(blocks) => blocks,
            Self::Borrowed(views) => {
                views.into_iter().map(|(rect, elements)| (rect, elements.to_vec())).collect()
            }
        }
    }
}

/// A rectangle of a matrix of `width` columns.
fn cut<T: Copy>(elements: &[T], width: usize, rect: Rect) -> Vec<T> {
    let row = |i: u64| {
        let begin = i as usize * width;
        &elements[begin + rect.cols.start as usize..begin + rect.cols.end as usize]
    };
    (rect.rows.start..rect.rows.end).flat_map(row).copied().collect()
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
pub(crate) struct Inputs<'a> {
    pub a: Input<'a>,
    pub b: Input<'a>,
    pub initial: Option<Input<'a>>,
}

/// Opens the operands of a task.
fn open_inputs<'a>(task: &'a ProductTask<'a>, world: &World) -> Result<Inputs<'a>> {
    let open = |operand| Input::open(operand, task.semiring, world);
    let a = open(&task.a)?;
    // Powers and symmetric products read their matrix once.
    let b = match &task.b {
        Some(b) => open(b)?,
        None => a.again(),
    };
    Ok(Inputs { a, b, initial: task.initial.as_ref().map(open).transpose()? })
}

/// Opens the operands of a task; they fit together.
///
/// # Errors
/// A file that cannot be read, elements of different types, sizes that do not fit.
pub(crate) fn open_operands<'a>(
    task: &'a ProductTask<'a>,
    world: &World,
) -> Result<(Inputs<'a>, Shape, Kind)> {
    let inputs = open_inputs(task, world)?;
    let kind = inputs.kind(task.semiring)?;
    let place = if task.b.is_some() { "matrices" } else { "matrix" };
    let [m, k, n] = inputs.sizes(task.operation)?.map(|size| size as u64);
    Ok((inputs, Shape::new(m, k, n, place)?, kind))
}

/// Rows and columns of the result of a task on arrays, which may be 0.
///
/// # Errors
/// Elements of different types, sizes that do not fit.
pub fn result_sizes(task: &ProductTask<'_>) -> Result<[usize; 2]> {
    let monitor = Monitor::new();
    let inputs = open_inputs(task, &World::solo(&monitor))?;
    inputs.kind(task.semiring)?;
    let [m, _, n] = inputs.sizes(task.operation)?;
    Ok([m, n])
}

impl<'a> Input<'a> {
    /// The same sizes and type, for comparison only: the file is not read again.
    fn again(&self) -> Self {
        let empty = || AnyMatrix::F64(Matrix::new(self.size().0, 0, Vec::new()));
        let source = match &self.source {
            Source::Npy(header) => Source::Npy(*header),
            Source::Blocks(file) => Source::Blocks(file.clone()),
            Source::Whole(_) => Source::Whole(empty()),
            Source::Memory(view) => Source::Memory(*view),
            Source::Distributed(array) => Source::Distributed(array),
        };
        Self { source, operand: self.operand, files: Vec::new() }
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
            let refuse = |what, remedy: &str| Err(Error::input(input.operand.place(), what, remedy));
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
                    format!("holds {dtype}, but {} holds {first}", self.a.operand.place()),
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

    /// Rows of C, inner dimension and columns of C; the operands fit together.
    fn sizes(&self, operation: Operation) -> Result<[usize; 3]> {
        let (m, k) = self.a.size();
        let (inner, n) = match operation {
            Operation::Product => self.b.size(),
            Operation::Symmetric => (k, m),
            Operation::Power(_) | Operation::Closure { .. } => {
                if m != k {
                    return Err(self.a.misfit(", not square", "give a square matrix"));
                }
                return Ok([m, m, m]);
            }
        };
        if k != inner {
            let (a, turned) = (self.a.operand.place(), self.a.turned());
            let but = format!(", but {a} {turned}is {m} x {k}");
            return Err(self.b.misfit(&but, &format!("the right factor needs {k} rows")));
        }
        match &self.initial {
            Some(c) if c.size() != (m, n) => Err(c.misfit(
                &format!(", but the product is {m} x {n}"),
                "give an initial C of the product's size",
            )),
            _ => Ok([m, k, n]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Context, MatrixJob};

    /// The product of matrices of which this process holds one block each.
    fn product(a: Rect) -> Result<Vec<f64>> {
        let block = |rect: Rect, elements| {
            let array = DistributedArray::new::<f64>(Extent { rows: 2, cols: 2 }, vec![(rect, elements)]);
            MatrixOperand::Distributed { name: "a", array }
        };
        let whole = Rect::new(Span::new(0, 2), Span::new(0, 2));
        let left = [1.0, 2.0, 3.0, 4.0];
        let task = ProductTask {
            b: Some(block(whole, &[1.0, 0.0, 1.0, 1.0])),
            ..ProductTask::new(Operation::Product, Semiring::PlusTimes, block(a, &left[..a.area() as usize]))
        };
        let monitor = Monitor::new();
        let world = World::solo(&monitor);
        let outcome = MatrixJob::open(&task, Context::silent(&world, &monitor))?.run()?;
        let blocks = outcome.result.and_then(crate::matrix::AnyBlocks::into_blocks::<f64>).unwrap();
        Ok(blocks.into_iter().flat_map(|(_, elements)| elements).collect())
    }

    #[test]
    fn a_distributed_array_has_the_blocks_of_the_plan_or_is_refused() {
        assert_eq!(product(Rect::new(Span::new(0, 2), Span::new(0, 2))).unwrap(), [3.0, 2.0, 7.0, 4.0]);
        let error = product(Rect::new(Span::new(0, 1), Span::new(0, 2))).unwrap_err();
        assert!(error.to_string().contains("does not hold rows 0..2"), "{error}");
    }
}
