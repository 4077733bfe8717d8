//! The steps of [`recursive`](super::recursive()): the ways to divide a rectangle among a run of processors.

use super::tiling::Total;

/// Up to this number of processors every cut of both sides is tried.
pub(super) const FEW: usize = 8;

/// Up to this number of processors all groups are tried for the first cut.
const FEWEST: usize = 6;

/// Up to this number of processors one more grouping is tried.
const MOST_REGROUPED: usize = 1000;

/// A run of the sorted processors on a rectangle of the given height; the width follows from their areas.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) high: f64,
}

/// A way to divide a run.
#[derive(Debug, Clone, Copy)]
pub(super) enum Choice {
    /// Optimal columns, or optimal rows.
    Columns { turned: bool },
    /// A cut into two runs, one below the other or side by side.
    Cut { rows: bool, at: usize },
    /// The first around a block of all others, of this height over width.
    Block { ratio: f64 },
    /// The first around two square blocks.
    TwoBlocks { at: usize },
    /// The first around squares on the diagonal.
    Squares,
}

/// Other orders to cut runs from: processors in two groups, each sorted. All groups for few processors;
/// otherwise the two that dealing in turn makes.
pub(super) fn regrouped(weights: &[f64], order: &[usize]) -> Vec<Vec<usize>> {
    let p = order.len();
    let deal = |first: &dyn Fn(usize) -> bool| {
        let pick = |wanted| (0..p).filter(move |&i| first(i) == wanted).map(|i| order[i]);
        pick(true).chain(pick(false)).collect::<Vec<usize>>()
    };
    if p <= FEWEST {
        // The fastest is always in the first group.
        let groups = (1..1usize << p).step_by(2).map(|mask| deal(&|i| mask >> i & 1 == 1));
        return groups.filter(|group| group != order).collect();
    }
    if p > MOST_REGROUPED {
        return Vec::new();
    }
    let mut lead = 0.0;
    let first: Vec<bool> = order
        .iter()
        .map(|&i| {
            let here = lead <= 0.0;
            lead += if here { weights[i] } else { -weights[i] };
            here
        })
        .collect();
    vec![deal(&|i| first[i])]
}

/// Areas of the processors, fastest first, and their sums over runs.
pub(super) struct Areas {
    pub(super) total: Total,
    /// Areas from each place to the end: differences of runs stay exact for the smallest.
    sums: Vec<f64>,
    /// Square roots of the areas from each place to the end.
    roots: Vec<f64>,
}

impl Areas {
    /// Sums over the processors of `order`, whose areas make up `whole`.
    pub(super) fn new(weights: &[f64], order: &[usize], whole: f64, total: Total) -> Self {
        let scale = whole / order.iter().rev().map(|&i| weights[i]).sum::<f64>();
        let mut sums = vec![0.0; order.len() + 1];
        let mut roots = sums.clone();
        for i in (0..order.len()).rev() {
            let area = weights[order[i]] * scale;
            sums[i] = sums[i + 1] + area;
            roots[i] = roots[i + 1] + area.sqrt();
        }
        Self { total, sums, roots }
    }

    /// Area of a run.
    pub(super) fn area(&self, from: usize, to: usize) -> f64 {
        self.sums[from] - self.sums[to]
    }

    /// Lower bound of the cost of a run: that of squares.
    pub(super) fn bound(&self, run: Run) -> f64 {
        2.0 * match self.total {
            Total::Sum => self.roots[run.from] - self.roots[run.to],
            Total::Largest => self.area(run.from, run.from + 1).sqrt(),
        }
    }

    /// The two parts of a cut.
    pub(super) fn cut(&self, run: Run, rows: bool, at: usize) -> [Run; 2] {
        let Run { from, to, high } = run;
        let all = self.area(from, to);
        let part = |from, to| {
            let high = if rows { high * (self.area(from, to) / all) } else { high };
            Run { from, to, high }
        };
        [part(from, at), part(at, to)]
    }

    /// A run on a block of the given height over width.
    pub(super) fn block(&self, from: usize, to: usize, ratio: f64) -> Run {
        Run { from, to, high: (self.area(from, to) * ratio).sqrt() }
    }

    /// The steps to consider.
    pub(super) fn choices(&self, run: Run) -> Vec<Choice> {
        let Run { from, to, high } = run;
        let wide = self.area(from, to) / high;
        let count = to - from;
        let mut choices = Vec::new();
        let rows = high > wide;
        if count <= FEW {
            for at in from + 1..to {
                choices.extend([Choice::Cut { rows, at }, Choice::Cut { rows: !rows, at }]);
            }
        } else {
            let half = self.place(from, to, 0.5);
            let mut cuts = vec![half, half - 1, from + 1, self.place(from, to, 1.0 / 3.0)];
            cuts.retain(|&at| at > from && at < to);
            cuts.sort_unstable();
            cuts.dedup();
            choices.extend(cuts.into_iter().map(|at| Choice::Cut { rows, at }));
        }
        let others = self.area(from + 1, to);
        let n = (count - 1) as f64;
        let mut ratios = vec![1.0, n, 1.0 / n, 2.0, 0.5];
        ratios.truncate(if count == 2 { 1 } else { 5 });
        for ratio in ratios {
            let side = (others * ratio).sqrt();
            if side < high && others / side < wide {
                choices.push(Choice::Block { ratio });
            }
        }
        if count > 2 {
            let fits = |length: f64| length <= high.min(wide);
            if fits(self.roots[from + 1] - self.roots[to]) {
                choices.push(Choice::Squares);
            }
            let half = self.place(from + 1, to, 0.5);
            let mut cuts = vec![from + 2, half];
            cuts.dedup();
            for at in cuts.into_iter().filter(|&at| at < to) {
                if fits(self.area(from + 1, at).sqrt() + self.area(at, to).sqrt()) {
                    choices.push(Choice::TwoBlocks { at });
                }
            }
        }
        choices
    }

    /// The first place in (from, to) with at least a given fraction of the run's area before it.
    fn place(&self, from: usize, to: usize, part: f64) -> usize {
        let wanted = self.sums[from] - self.area(from, to) * part;
        let inside = &self.sums[from + 1..to];
        (from + 1 + inside.partition_point(|&rest| rest > wanted)).min(to - 1)
    }
}
