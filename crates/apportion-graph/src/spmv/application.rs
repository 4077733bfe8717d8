//! The steps of a product or a solution on a processor's rows.

use super::part::{BLOCK, Check, MatrixPart};
use crate::sparse::SparseMatrix;
use apportion::Rank;
use apportion::error::Result;
use apportion::kernels::SteadySum;
use apportion::run::parallel;
use apportion::schedule::{Application, Executable, GraphPiece, GraphSchedule, GraphWork, StepOf};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// What is done with the matrix.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SpmvMethod {
    /// x := A x in each step.
    #[default]
    Product,
    /// A x = b by Jacobi's method: x := x + D^-1 (b - A x).
    Jacobi,
    /// A x = b by conjugate gradients with one sum over all processors a step, for a symmetric positive definite A
    /// (Chronopoulos and Gear 1989).
    Cg,
    /// The norm of b - A x; x stays.
    #[serde(skip)]
    Residual,
}

impl SpmvMethod {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Product => "product",
            Self::Jacobi => "jacobi",
            Self::Cg => "cg",
            Self::Residual => "residual",
        }
    }

    /// Whether it solves a system.
    pub fn solves(self) -> bool {
        self != Self::Product
    }

    /// Sums over all elements in each step.
    pub(super) fn sums(self) -> usize {
        match self {
            Self::Product => 0,
            Self::Jacobi | Self::Residual => 1,
            Self::Cg => 2,
        }
    }

    /// Work of a row besides its entries: bytes of vectors that it reads and writes, by those of an entry; before the sums
    /// and after.
    pub(crate) fn row_work(self) -> [f64; 2] {
        match self {
            Self::Product => [3.0, 0.0],
            Self::Jacobi | Self::Residual => [4.0, 3.0],
            Self::Cg => [4.0, 6.0],
        }
    }
}

/// Numbers of the iteration, the same on all processors.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Progress {
    /// The square of the norm of the last residual that was summed up.
    pub square: f64,
    /// Those of conjugate gradients before.
    old_square: f64,
    old_alpha: f64,
    /// Steps that changed x.
    pub steps: u64,
    /// Whether the residual was small enough, so that nothing changes any more.
    pub done: bool,
    /// Whether r A r was not positive.
    pub broke_down: bool,
}

/// What a processor has between two runs of steps.
#[derive(Debug, Clone, Default)]
pub(crate) struct Vectors {
    /// The result so far, by own row.
    pub x: Vec<f64>,
    /// Of conjugate gradients: residual, direction, and A times that.
    r: Vec<f64>,
    p: Vec<f64>,
    s: Vec<f64>,
    pub progress: Progress,
}

impl Vectors {
    /// The beginning: for a product x is given, for a system 0.
    pub(crate) fn new(method: SpmvMethod, given: &[f64]) -> Self {
        let zero = vec![0.0; given.len()];
        match method {
            SpmvMethod::Product => Self { x: given.to_vec(), ..Self::default() },
            SpmvMethod::Cg => {
                Self { x: zero.clone(), r: given.to_vec(), p: zero.clone(), s: zero, ..Self::default() }
            }
            SpmvMethod::Jacobi | SpmvMethod::Residual => Self { x: zero, ..Self::default() },
        }
    }
}

/// The data of a processor between two runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Held {
    pub part: MatrixPart,
    /// The right-hand side by own row; empty for products.
    pub rhs: Vec<f64>,
    pub vectors: Vectors,
}

/// Some steps.
#[derive(Debug)]
pub(crate) struct Spmv<'a> {
    pub schedule: GraphSchedule,
    pub method: SpmvMethod,
    /// By rank, as far as they are here; without one, `source` has the rows.
    pub held: &'a [Option<Held>],
    pub source: Source<'a>,
    /// Steps of earlier runs.
    pub before: u64,
    /// The square of the norm at which x is a solution.
    pub goal: f64,
    /// What rounding may do to the sums of a check, by the sum of the magnitudes of a vector.
    pub slack: f64,
}

/// A matrix of which parts can be taken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    pub matrix: Option<&'a SparseMatrix>,
    pub parts: &'a [u32],
}

/// The data of a processor during a run.
#[derive(Debug)]
pub(crate) struct Local<'a> {
    held: Cow<'a, Held>,
    pub vectors: Vectors,
    /// What neighbours see, with what is seen of them; and what comes of it, with room as the first has.
    seen: Vec<f64>,
    out: Vec<f64>,
    sums: [SteadySum; 2],
    /// By step.
    pub checks: Vec<Check>,
}

impl Spmv<'_> {
    /// Everything that needs the elements of others: the product, the residual, and its sums. Ranges of rows with about as
    /// many entries each are computed on a thread each.
    fn neighbours(&self, local: &mut Local<'_>, threads: usize) -> Result<()> {
        if local.vectors.progress.done {
            return Ok(());
        }
        let Local { held, seen, out, sums, checks, .. } = local;
        let Held { part, rhs, .. } = &**held;
        let method = self.method;
        let mut ranges = Vec::new();
        let (mut left, mut first) = (&mut out[..part.rows.len()], 0);
        for end in ends(part, threads) {
            let (now, later) = left.split_at_mut(end - first);
            ranges.push((first, now, ([0.0; 3], [SteadySum::default(); 2])));
            (left, first) = (later, end);
        }
        let seen = &seen[..];
        parallel::all(ranges.iter_mut().collect(), |(first, out, (check, sums))| {
            let rows = *first..*first + out.len();
            *check = part.times(rows.clone(), seen, out);
            let own = &seen[rows.clone()];
            match method {
                SpmvMethod::Product => {}
                SpmvMethod::Cg => {
                    sums[0].add_products(own, own);
                    sums[1].add_products(own, out);
                }
                SpmvMethod::Jacobi | SpmvMethod::Residual => {
                    out.iter_mut().zip(&rhs[rows]).for_each(|(out, b)| *out = b - *out);
                    sums[0].add_products(out, out);
                }
            }
        })?;
        let mut all = [0.0; 3];
        for (_, _, (check, of_range)) in &ranges {
            all.iter_mut().zip(check).for_each(|(all, one)| *all += one);
            sums.iter_mut().zip(of_range).for_each(|(all, one)| all.merge(one));
        }
        checks.push(all);
        if method == SpmvMethod::Product {
            std::mem::swap(&mut local.seen, &mut local.out);
        }
        Ok(())
    }

    /// What needs the sums: the next x, a range of rows on a thread each.
    fn own(&self, local: &mut Local<'_>, threads: usize) -> Result<()> {
        let Local { held, vectors, seen, out, sums, .. } = local;
        let [square, rar] = std::mem::take(sums).map(|sum| sum.value());
        let (progress, n) = (&mut vectors.progress, held.part.rows.len());
        if progress.done {
            return Ok(());
        }
        progress.square = square;
        // A norm that is no number is not below the goal, and does not become so.
        progress.done = square <= self.goal || !square.is_finite() || self.method == SpmvMethod::Residual;
        if progress.done {
            return Ok(());
        }
        let (seen, out) = (&mut seen[..n], &out[..n]);
        let each = n.div_ceil(threads.max(1)).max(1);
        match self.method {
            SpmvMethod::Jacobi => {
                let ranges = seen.chunks_mut(each).zip(out.chunks(each)).zip(held.part.diagonal.chunks(each));
                parallel::all(ranges.collect(), |((x, r), d)| {
                    x.iter_mut().zip(r).zip(d).for_each(|((x, r), d)| *x += r / d);
                })?;
            }
            SpmvMethod::Cg => {
                let beta = if progress.steps == 0 { 0.0 } else { square / progress.old_square };
                let correction = if progress.steps == 0 { 0.0 } else { beta * square / progress.old_alpha };
                let curvature = rar - correction;
                if !curvature.is_finite() {
                    // Beyond the range of doubles: the residual that is measured last says so.
                    progress.done = true;
                    return Ok(());
                }
                progress.broke_down = curvature <= 0.0;
                if progress.broke_down {
                    progress.done = true;
                    return Ok(());
                }
                let alpha = square / curvature;
                (progress.old_square, progress.old_alpha) = (square, alpha);
                let Vectors { x, p, s, .. } = vectors;
                let ranges = seen.chunks_mut(each).zip(out.chunks(each));
                let ranges = ranges.zip(p.chunks_mut(each)).zip(s.chunks_mut(each)).zip(x.chunks_mut(each));
                parallel::all(ranges.collect(), |((((r, w), p), s), x)| {
                    for ((((r, w), p), s), x) in r.iter_mut().zip(w).zip(p).zip(s).zip(x) {
                        *p = *r + beta * *p;
                        *s = *w + beta * *s;
                        *x += alpha * *p;
                        *r -= alpha * *s;
                    }
                })?;
            }
            SpmvMethod::Product | SpmvMethod::Residual => {}
        }
        vectors.progress.steps += 1;
        Ok(())
    }

    /// The vectors of a processor after its steps.
    pub(crate) fn result(&self, local: Local<'_>) -> (Vec<u32>, Vectors) {
        let Local { held, mut vectors, mut seen, .. } = local;
        seen.truncate(held.part.rows.len());
        match self.method {
            SpmvMethod::Cg => vectors.r = seen,
            _ => vectors.x = seen,
        }
        let rows = match held {
            Cow::Borrowed(held) => held.part.rows.clone(),
            Cow::Owned(held) => held.part.rows,
        };
        (rows, vectors)
    }
}

/// Where ranges of rows end that have about as many entries each, in whole blocks.
fn ends(part: &MatrixPart, threads: usize) -> Vec<usize> {
    let n = part.rows.len();
    let all = u64::from(part.entries_before(n));
    let blocks = n.div_ceil(BLOCK);
    let end = |thread: usize| {
        let wanted = all * thread as u64 / threads as u64;
        let before = |block: usize| u64::from(part.entries_before((block * BLOCK).min(n)));
        let (mut low, mut high) = (0, blocks);
        while low < high {
            let middle = (low + high) / 2;
            if before(middle) < wanted { low = middle + 1 } else { high = middle }
        }
        (low * BLOCK).min(n)
    };
    let mut ends: Vec<usize> = (1..threads.max(1)).map(end).chain([n]).collect();
    ends.dedup();
    ends
}

impl Application for Spmv<'_> {
    type Piece = GraphPiece;
    type Work = GraphWork;

    fn processors(&self) -> usize {
        self.schedule.processors()
    }

    fn steps(&self, rank: Rank) -> Box<dyn Iterator<Item = StepOf<Self>> + '_> {
        self.schedule.steps(rank)
    }

    fn work(&self, rank: Rank) -> f64 {
        self.schedule.work(rank)
    }

    fn share(&self, rank: Rank) -> f64 {
        self.schedule.share(rank)
    }
}

impl<'a> Executable for Spmv<'a> {
    type Element = f64;
    type Local<'b>
        = Local<'a>
    where
        Self: 'b;

    fn hold(&self, rank: Rank) -> Local<'a> {
        let held = match self.held.get(rank.0) {
            Some(Some(held)) => Cow::Borrowed(held),
            // What is measured before anybody has a part.
            _ => Cow::Owned(self.source.data(rank, self.method)),
        };
        let vectors = held.vectors.clone();
        let mut seen = match self.method {
            SpmvMethod::Cg => vectors.r.clone(),
            _ => vectors.x.clone(),
        };
        seen.resize(held.part.length, 0.0);
        let out = vec![0.0; seen.len()];
        Local { held, vectors, seen, out, sums: [SteadySum::default(); 2], checks: Vec::new() }
    }

    fn pack(&self, local: &mut Local<'a>, piece: &GraphPiece, out: &mut [f64]) {
        match piece {
            GraphPiece::Values(border) => {
                let places = local.held.part.to(border.to);
                out.iter_mut().zip(places).for_each(|(out, place)| *out = local.seen[*place as usize]);
            }
            GraphPiece::Sums(_) | GraphPiece::Totals(_) => {
                let numbers = out.chunks_exact_mut(SteadySum::NUMBERS);
                numbers.zip(&local.sums).for_each(|(out, sum)| out.copy_from_slice(&sum.to_numbers()));
            }
        }
    }

    fn unpack(&self, local: &mut Local<'a>, piece: &GraphPiece, elements: &[f64]) {
        if let GraphPiece::Values(border) = piece {
            let places = local.held.part.from(border.from);
            local.seen[places].copy_from_slice(elements);
            return;
        }
        for (sum, numbers) in local.sums.iter_mut().zip(elements.chunks_exact(SteadySum::NUMBERS)) {
            let of_others = SteadySum::of_numbers(numbers.try_into().expect("it has this length"));
            match piece {
                GraphPiece::Totals(_) => *sum = of_others,
                _ => sum.merge(&of_others),
            }
        }
    }

    fn compute(&self, local: &mut Local<'a>, work: &GraphWork, threads: usize) -> Result<f64> {
        match work {
            GraphWork::Neighbours(_) => self.neighbours(local, threads)?,
            GraphWork::Own(_) => self.own(local, threads)?,
        }
        Ok(0.0)
    }

    fn peak_bytes(&self, local: &Local<'a>) -> u64 {
        let Vectors { x, r, p, s, .. } = &local.vectors;
        let vectors = [x, r, p, s, &local.held.rhs].into_iter().map(Vec::len).sum::<usize>();
        local.held.part.bytes() + 8 * (vectors + 2 * local.seen.len()) as u64
    }
}
