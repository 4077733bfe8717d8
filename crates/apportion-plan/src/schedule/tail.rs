//! The dynamic tail: most tiles of C are computed by their owners, the last ones by whoever has time.
//!
//! Source: Donfack, Grigori, Gropp and Kale 2012, "Hybrid static/dynamic scheduling for already optimized
//! dense matrix factorization" (IPDPS). A static part keeps data where they are used; a dynamic part of about
//! a tenth takes up what noise delays.

use crate::geometry::{Rank, Rect, Span};
use std::collections::VecDeque;

/// The shortest side that a rectangle needs for a tail.
const LEAST_SIDE: u64 = 256;
/// A BLAS may sum products with both sides up to this size in another order than larger ones: no cut makes
/// such a product of a larger one.
const SMALL: u64 = 64;
/// The sides of a tile, between which its area follows from the number of tiles.
const SIDES: [f64; 2] = [160.0, 512.0];
/// Tiles of each processor, if they can be small enough.
const TILES: u64 = 8;

/// A rectangle of C whose last part is left to the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TailCut {
    /// The part that its owner computes.
    pub kept: Rect,
    /// Disjoint tiles of the rest.
    pub tiles: Vec<Rect>,
}

impl TailCut {
    /// Cuts the last `fraction` off a rectangle, across its longer side, and divides it into tiles. `None`
    /// for a rectangle that is too small: the owner then computes all of it. No piece has fewer than `least`
    /// rows or columns, unless the rectangle has: kernels may sum a single row in another order.
    pub fn of(rect: Rect, fraction: f64, least: u64) -> Option<Self> {
        let least = least.max(2);
        let along_rows = rect.rows.len() >= rect.cols.len();
        let (long, short) = if along_rows { (rect.rows, rect.cols) } else { (rect.cols, rect.rows) };
        let tail = (fraction * long.len() as f64).round() as u64;
        if !(long.len() >= LEAST_SIDE
            && short.len() >= least
            && tail >= least
            && long.len() >= tail + LEAST_SIDE / 2)
        {
            return None;
        }
        let cut = long.end - tail;
        let turned = |along: Span, across: Span| {
            if along_rows { Rect::new(along, across) } else { Rect::new(across, along) }
        };
        let strip = Span::new(cut, long.end);
        let side = ((tail * short.len()) as f64 / TILES as f64).sqrt().clamp(SIDES[0], SIDES[1]) as u64;
        let across: Vec<Span> = evenly(short, side);
        let tiles =
            evenly(strip, side).iter().flat_map(|&s| across.iter().map(move |&a| turned(s, a))).collect();
        let cut = Self { kept: turned(Span::new(long.start, cut), short), tiles };
        let large = |piece: &Rect| Size::of(*piece, least) == Size::Large;
        std::iter::once(&cut.kept).chain(&cut.tiles).all(large).then_some(cut)
    }

    /// True if this cut of a rectangle changes no order of sums in an update of `part` of the rectangle,
    /// whichever processor computes a piece: all pieces of the update keep at least `least` rows and columns,
    /// and are as small or large as the part is.
    pub fn respects(&self, part: Rect, least: u64) -> bool {
        let whole = Size::of(part, least);
        let fits = |piece: Rect| {
            let thin = |piece: Span, whole: Span| piece.len() < least.max(2).min(whole.len());
            let alike = whole == Size::Small || (whole, Size::of(piece, least)) == (Size::Large, Size::Large);
            piece.is_empty() || (alike && !thin(piece.rows, part.rows) && !thin(piece.cols, part.cols))
        };
        std::iter::once(&self.kept).chain(&self.tiles).all(|piece| fits(piece.intersect(part)))
    }
}

/// How a product of a rectangle sums long inner dimensions, on one to `least / 2` threads that share its
/// rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Size {
    /// As small products do, on any number of threads.
    Small,
    /// It depends on the number of threads.
    Either,
    /// As large products do, on any number of threads.
    Large,
}

impl Size {
    fn of(rect: Rect, least: u64) -> Self {
        let (rows, cols) = (rect.rows.len(), rect.cols.len());
        if rows.max(cols) <= SMALL {
            Self::Small
        } else if cols > SMALL || rows / (least / 2).max(1) > SMALL {
            Self::Large
        } else {
            Self::Either
        }
    }
}

/// Divides a span into the fewest nearly equal pieces of at most `side`.
fn evenly(span: Span, side: u64) -> Vec<Span> {
    let count = span.len().div_ceil(side.max(1));
    let at = |i: u64| span.start + (u128::from(span.len()) * u128::from(i) / u128::from(count)) as u64;
    (0..count).map(|i| Span::new(at(i), at(i + 1))).collect()
}

/// The tiles that are left, by owner. A processor takes its own tiles first, whose operands are in its
/// caches, then one of the processor that has most left.
///
/// # Guarantee
/// No processor stops while a tile is left (list scheduling, Graham 1969): all processors that take part end
/// within the duration of one tile of each other.
#[derive(Debug, Clone)]
pub struct TailQueue {
    left: Vec<VecDeque<usize>>,
}

impl TailQueue {
    /// The queue of tiles 0, 1, … of these owners, among this number of processors.
    ///
    /// # Panics
    /// If an owner is no processor.
    pub fn new(processors: usize, owners: &[Rank]) -> Self {
        let mut left = vec![VecDeque::new(); processors];
        owners.iter().enumerate().for_each(|(tile, owner)| left[owner.0].push_back(tile));
        Self { left }
    }

    /// The next tile for a processor; `None` when all are taken.
    pub fn take(&mut self, rank: Rank) -> Option<usize> {
        if let Some(own) = self.left[rank.0].pop_front() {
            return Some(own);
        }
        // Of equals the first, so that a simulation can be repeated.
        let most = self.left.iter().map(VecDeque::len).max().filter(|&most| most > 0)?;
        let victim = self.left.iter().position(|tiles| tiles.len() == most)?;
        self.left[victim].pop_back()
    }

    /// When each processor ends, if it comes to the queue at `arrivals[rank]` and a tile takes `seconds(rank,
    /// tile)`: the rule of the engine on a virtual clock.
    #[cfg(test)]
    fn finish(mut self, arrivals: &[f64], seconds: impl Fn(usize, usize) -> f64) -> Vec<f64> {
        let mut clocks = arrivals.to_vec();
        let mut active: Vec<usize> = (0..clocks.len()).collect();
        while let Some(&rank) = active.iter().min_by(|&&x, &&y| clocks[x].total_cmp(&clocks[y])) {
            match self.take(Rank(rank)) {
                Some(tile) => clocks[rank] += seconds(rank, tile),
                None => active.retain(|&other| other != rank),
            }
        }
        clocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use proptest::prelude::*;

    fn rect(rows: [u64; 2], cols: [u64; 2]) -> Rect {
        Rect::new(Span::new(rows[0], rows[1]), Span::new(cols[0], cols[1]))
    }

    proptest! {
        /// Kept part and tiles cover the rectangle once; no piece is thin, and none is small.
        #[test]
        fn a_cut_covers_its_rectangle(
            top in 0u64..9, left in 0u64..9, high in 1u64..3000, wide in 1u64..3000, fraction in 0.01f64..0.5, least in 1u64..9,
        ) {
            let whole = rect([top, top + high], [left, left + wide]);
            if let Some(cut) = TailCut::of(whole, fraction, least) {
                let mut pieces = cut.tiles.clone();
                pieces.push(cut.kept);
                prop_assert_eq!(pieces.iter().map(|piece| piece.area()).sum::<u64>(), whole.area());
                prop_assert_eq!(crate::geometry::first_overlap(&pieces), None);
                for piece in &pieces {
                    prop_assert_eq!(piece.intersect(whole), *piece);
                    prop_assert!(piece.rows.len().min(piece.cols.len()) >= least.max(2));
                    // On any number of threads, whose least part is this.
                    let rows = piece.rows.len() / (least.max(2) / 2);
                    prop_assert!(rows.max(piece.cols.len()) > SMALL);
                }
                prop_assert!(cut.respects(whole, least.max(2)));
                let off = (whole.area() - cut.kept.area()) as f64 / whole.area() as f64 - fraction;
                prop_assert!(off.abs() <= 0.5 / high.max(wide) as f64 + 1e-12);
            }
        }

        /// Any durations: no processor waits while a tile is left, and each tile is taken once.
        #[test]
        fn all_end_within_one_tile(
            seed: u64, processors in 1usize..9, tiles in 0usize..60,
        ) {
            let mut random = Random::new(seed);
            let owners: Vec<Rank> = (0..tiles).map(|_| Rank(random.below(processors))).collect();
            let arrivals: Vec<f64> = (0..processors).map(|_| 10.0 * random.unit()).collect();
            let durations: Vec<Vec<f64>> =
                (0..processors).map(|_| (0..tiles).map(|_| 0.1 + random.unit()).collect()).collect();
            let taken = std::cell::RefCell::new(vec![0; tiles]);
            let ends = TailQueue::new(processors, &owners).finish(&arrivals, |rank, tile| {
                taken.borrow_mut()[tile] += 1;
                durations[rank][tile]
            });
            prop_assert!(taken.borrow().iter().all(|&times| times == 1));
            let last = ends.iter().copied().fold(0.0, f64::max);
            let longest = durations.iter().flatten().copied().fold(0.0, f64::max);
            // If the last to end computed a tile, the others were busy when it began.
            if last > arrivals.iter().copied().fold(0.0, f64::max) {
                let first = ends.iter().copied().fold(f64::INFINITY, f64::min);
                prop_assert!(first >= last - longest - 1e-12, "{ends:?} {arrivals:?} {longest}");
            }
        }
    }

    /// By hand: two processors, ten units of work each, of which 0, 2 or 4 are left to the queue. The second
    /// loses 4 seconds to a neighbour.
    #[test]
    fn a_tail_takes_up_what_noise_delays() {
        let ends = |tail: usize| {
            let owners: Vec<Rank> = (0..2 * tail).map(|tile| Rank(tile / tail)).collect();
            let alone = (10 - tail) as f64;
            TailQueue::new(2, &owners).finish(&[alone, alone + 4.0], |_, _| 1.0)
        };
        assert_eq!(ends(0), [10.0, 14.0]);
        assert_eq!(ends(2), [12.0, 12.0]);
        assert_eq!(ends(4), [12.0, 12.0]);
    }

    /// Sixteen processors with noise of up to a fifth, a tenth in the mean: efficiency with and without a
    /// tail.
    #[test]
    fn efficiency_under_ten_percent_noise_rises_from_90_to_97_percent() {
        let (processors, units, tail) = (16, 100, 15);
        let mut random = Random::new(3);
        let mut efficiency = [0.0; 2];
        for _ in 0..50 {
            // Each processor loses this part of its time to its neighbours.
            let speed: Vec<f64> = (0..processors).map(|_| 1.0 - 0.2 * random.unit()).collect();
            let ideal = (processors * units) as f64 / speed.iter().sum::<f64>();
            for (efficiency, tail) in efficiency.iter_mut().zip([0, tail]) {
                let owners: Vec<Rank> = (0..processors * tail).map(|tile| Rank(tile / tail)).collect();
                let arrivals: Vec<f64> = speed.iter().map(|s| (units - tail) as f64 / s).collect();
                let ends = TailQueue::new(processors, &owners).finish(&arrivals, |rank, _| 1.0 / speed[rank]);
                *efficiency += ideal / ends.iter().copied().fold(0.0, f64::max) / 50.0;
            }
        }
        assert!(efficiency[0] < 0.915 && efficiency[1] > 0.97, "{efficiency:?}");
    }

    #[test]
    fn small_rectangles_have_no_tail() {
        for (whole, fraction, least) in [
            (rect([0, 255], [0, 255]), 0.1, 2),
            (rect([0, 1000], [0, 1]), 0.1, 2),
            (rect([0, 1000], [0, 7]), 0.1, 8),
            (rect([0, 256], [0, 64]), 0.1, 2),
            // Four threads would have 25 rows each of a tile, and have 250 without a tail.
            (rect([0, 1000], [0, 50]), 0.1, 8),
            (rect([0, 1000], [0, 1000]), 0.0, 2),
            (rect([5, 5], [0, 1000]), 0.1, 2),
        ] {
            assert_eq!(TailCut::of(whole, fraction, least), None, "{whole:?}");
        }
        let flat = TailCut::of(rect([3, 103], [0, 1000]), 0.1, 2).unwrap();
        assert_eq!(flat.kept, rect([3, 103], [0, 900]));
        assert_eq!(flat.tiles, [rect([3, 103], [900, 1000])]);
        // An update whose last column alone would be in the tail is not cut.
        assert!(!flat.respects(rect([3, 103], [0, 901]), 2));
        assert!(flat.respects(rect([3, 103], [0, 902]), 2));
    }
}
