//! The matrices of a claim as this rank holds them, and passes over their elements.

use crate::error::Result;
use crate::geometry::{Rect, Span};
use crate::kernels::{Loop, prefetch, widest};
use crate::matrix::{BlockViews, Element, Matrix, Scaling};
use crate::plan::Shape;
use crate::run::World;
use crate::threads::share_out;

/// A row and a column of C.
pub(super) type Place = (usize, usize);

/// Rectangles of one matrix with their elements, row by row.
pub(super) type Blocks<'a, T> = BlockViews<'a, T>;

/// A [`Claim`](super::Claim) whose blocks are borrowed, with the sizes of the matrices.
pub(crate) struct Parts<'a, T> {
    pub a: Blocks<'a, T>,
    pub b: Blocks<'a, T>,
    pub c: Blocks<'a, T>,
    pub initial: Option<Blocks<'a, T>>,
    pub scaling: Scaling<T>,
    pub shape: Shape,
}

/// A matrix as one block.
pub(super) fn whole<T: Element>(matrix: &Matrix<T>) -> Blocks<'_, T> {
    let rect = Rect::new(Span::new(0, matrix.rows() as u64), Span::new(0, matrix.cols() as u64));
    vec![(rect, matrix.as_slice())]
}

/// Rows processed together, so that the data of a group of columns stay in the first-level cache.
const TALL: usize = 64;
/// Columns processed together, at most.
pub(super) const WIDE: usize = 128;
/// Rows whose pieces are fetched before they are needed.
const AHEAD: usize = 4;
/// Bytes of a cache line.
const LINE: usize = 64;
/// Elements per thread, at least: tens of milliseconds of work. Each further thread keeps some memory of the
/// allocator.
pub(super) const WORTH_A_THREAD: u64 = 1 << 22;
/// Maximum number of threads.
const THREADS: usize = 8;

/// Threads that a pass may use: a single process has its cores to itself, ranks share them.
pub(super) fn threads(world: &World) -> usize {
    if !world.is_solo() {
        return 1;
    }
    std::thread::available_parallelism().map_or(1, usize::from).min(THREADS)
}

/// What a pass over a matrix adds to each row's entry. Implementations mark it `#[inline(always)]`, so that
/// it is compiled for the registers of [`widest`].
pub(super) trait Pass<T, S>: Sync {
    /// Adds consecutive elements of row `i` that begin at column `j`, [`WIDE`] at most.
    fn add(&self, i: usize, j: usize, row: &[T], sum: &mut S);
}

/// Adds every element to its row's entry in `sums`, which has one for each row of the matrix. Threads divide
/// the rows of a block; each row is summed in a fixed order.
pub(super) fn each_piece<T: Sync, S: Send>(
    blocks: &Blocks<'_, T>,
    sums: &mut [S],
    threads: usize,
    pass: &impl Pass<T, S>,
) {
    for (rect, elements) in blocks.iter().filter(|(rect, _)| !rect.is_empty()) {
        let (first, left) = (rect.rows.start as usize, rect.cols.start as usize);
        let (height, width) = (rect.rows.len() as usize, rect.cols.len() as usize);
        let sums = &mut sums[first..first + height];
        let threads = threads.min((rect.area() / WORTH_A_THREAD) as usize).max(1);
        let rows = height.div_ceil(threads);
        let shares = elements.chunks(rows * width).zip(sums.chunks_mut(rows)).zip((first..).step_by(rows));
        share_out(shares.collect(), threads, |((elements, sums), first)| {
            widest(Walk { elements, width, sums, first, left, pass });
        });
    }
}

/// The rows of a block, in tiles that stay in the first-level cache.
struct Walk<'a, T, S, P> {
    elements: &'a [T],
    width: usize,
    sums: &'a mut [S],
    first: usize,
    left: usize,
    pass: &'a P,
}

impl<T, S, P: Pass<T, S>> Loop for Walk<'_, T, S, P> {
    #[inline(always)]
    fn run(self) {
        let Self { elements, width, sums, first, left, pass } = self;
        let tiles = elements.chunks(TALL * width).zip(sums.chunks_mut(TALL));
        for ((rows, sums), top) in tiles.zip((first..).step_by(TALL)) {
            for from in (0..width).step_by(WIDE) {
                let to = (from + WIDE).min(width);
                for ((row, sum), i) in rows.chunks_exact(width).zip(sums.iter_mut()).zip(top..) {
                    // Pieces of rows are too short for the processor to see ahead.
                    let ahead = row[from..to].as_ptr().wrapping_add(AHEAD * width);
                    (0..to - from)
                        .step_by(LINE / size_of::<T>())
                        .for_each(|at| prefetch(ahead.wrapping_add(at)));
                    pass.add(i, left + from, &row[from..to], sum);
                }
            }
        }
    }
}

/// A matrix's elements at these places, on every rank; `T::ZERO` where none holds one.
pub(super) fn elements_at<T: Element>(
    blocks: &Blocks<'_, T>,
    places: impl Iterator<Item = Place>,
    world: &World,
) -> Result<Vec<T>> {
    let held = |(i, j): Place| {
        let holds = |(rect, _): &&(Rect, &[T])| {
            let within = |span: Span, at: usize| (span.start..span.end).contains(&(at as u64));
            within(rect.rows, i) && within(rect.cols, j)
        };
        let (rect, elements) = blocks.iter().find(holds)?;
        let row = (i as u64 - rect.rows.start) * rect.cols.len();
        Some(elements[(row + j as u64 - rect.cols.start) as usize])
    };
    let mine: Vec<Option<T>> = places.map(held).collect();
    let mut bytes = vec![0u8; mine.len() * size_of::<T>()];
    for (target, element) in bytes.chunks_exact_mut(size_of::<T>()).zip(&mine) {
        if let Some(element) = element {
            target.copy_from_slice(bytemuck::bytes_of(element));
        }
    }
    // Each element is on one rank; the others contribute zeros.
    let bytes = world.all_reduce(&bytes, |x, y| x | y)?;
    Ok(bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect())
}
