//! The matrices of a claim as this rank holds them, and passes over their elements.

use crate::error::{Error, Result};
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

/// The claim that C = alpha A B + beta C0: the blocks of each matrix that this process holds. The ranks of a
/// world together hold each element once; a single process holds whole matrices.
pub(crate) struct Parts<'a, T> {
    pub(crate) a: Blocks<'a, T>,
    pub(crate) b: Blocks<'a, T>,
    pub(crate) c: Blocks<'a, T>,
    pub(crate) initial: Option<Blocks<'a, T>>,
    pub(crate) scaling: Scaling<T>,
    pub(crate) shape: Shape,
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

// Whether the factors are still what they were: a library computes where they lie, and what it writes there
// would be believed by every check that reads them afterwards.

/// Digests of the rows of A and of B, as this rank holds them. One changed element changes a digest for
/// certain. Time O(elements), a few bytes of memory for each row.
pub(crate) struct Digests([Vec<u64>; 2]);

impl Digests {
    /// Those of the factors now.
    pub(crate) fn of<T: Element>(a: &BlockViews<'_, T>, b: &BlockViews<'_, T>, world: &World) -> Self {
        let of = |blocks: &Blocks<'_, T>| {
            let rows = blocks.iter().map(|(rect, _)| rect.rows.end).max().unwrap_or(0);
            let mut digests = vec![0; rows as usize];
            each_piece(blocks, &mut digests, threads(world), &Digest);
            digests
        };
        Self([of(a), of(b)])
    }

    /// Compares them with those of the factors `now`.
    ///
    /// # Errors
    /// [`Error::WrongResult`] names the first row that has changed.
    pub(crate) fn check(&self, now: &Self) -> Result<()> {
        for (name, (before, after)) in ["A", "B"].into_iter().zip(self.0.iter().zip(&now.0)) {
            if let Some(row) = before.iter().zip(after).position(|(x, y)| x != y) {
                let what = format!(
                    "the library has written into row {row} of {name}, counted from 0, which it was to read"
                );
                return Err(Error::WrongResult { what });
            }
        }
        Ok(())
    }
}

/// Adds the digest of a piece to that of its row.
struct Digest;

impl<T: Element> Pass<T, u64> for Digest {
    #[inline(always)]
    fn add(&self, _: usize, _: usize, row: &[T], sum: &mut u64) {
        const LANES: usize = 8;
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        // Sums, and sums of sums, which tell places apart (Fletcher 1982, doi:10.1109/TCOM.1982.1095369).
        let mut sums = [[0u64; LANES]; 2];
        let (whole, rest) = bytemuck::cast_slice::<T, u8>(row).as_chunks::<{ 8 * LANES }>();
        for chunk in whole {
            for (lane, word) in chunk.as_chunks::<8>().0.iter().enumerate() {
                sums[0][lane] = sums[0][lane].wrapping_add(u64::from_le_bytes(*word));
                sums[1][lane] = sums[1][lane].wrapping_add(sums[0][lane]);
            }
        }
        let add = |digest: u64, word: u64| digest.wrapping_add(word).wrapping_mul(ODD).rotate_left(29);
        let digest = sums.into_iter().flatten().fold(*sum, add);
        *sum = rest.iter().fold(digest, |digest, byte| add(digest, u64::from(*byte)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{Rect, Span};
    use crate::run::Monitor;

    #[test]
    fn any_change_of_an_element_is_noticed_with_its_row() {
        let (m, n) = (5, 300);
        let matrix: Vec<f32> = (0..m * n).map(|i| (i % 7) as f32).collect();
        let halves = |matrix: &[f32]| -> Vec<(Rect, Vec<f32>)> {
            let half = |cols: Span| {
                let row = |i: usize| &matrix[i * n + cols.start as usize..i * n + cols.end as usize];
                (Rect::new(Span::new(0, m as u64), cols), (0..m).flat_map(row).copied().collect())
            };
            vec![half(Span::new(0, 131)), half(Span::new(131, n as u64))]
        };
        let world = World::solo(&Monitor::new());
        let digests = |matrix: &[f32]| {
            let blocks = halves(matrix);
            let views = crate::matrix::views_of(&blocks);
            Digests::of(&views, &views, &world)
        };
        let before = digests(&matrix);
        before.check(&digests(&matrix)).unwrap();
        for at in 0..m * n {
            let mut changed = matrix.clone();
            changed[at] = f32::from_bits(changed[at].to_bits() ^ 1 << (at % 32));
            let error = before.check(&digests(&changed)).unwrap_err().to_string();
            assert!(error.contains(&format!("row {} of A", at / n)), "{at}: {error}");
            // Exchanged with a neighbour.
            changed.copy_from_slice(&matrix);
            changed.swap(at, (at + 1) % (m * n));
            assert_eq!(before.check(&digests(&changed)).is_err(), changed != matrix, "{at}");
        }
    }
}
