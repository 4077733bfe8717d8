//! The Monte Carlo study of cost over lower bound: how close layouts of random areas come to 2 sum
//! sqrt(area).
//!
//! Source: Beaumont et al. 2001 (columns), Becker 2010, sections 4.2.4 and 6.1.3 (square corners; Figures
//! 4.4, 4.5).

use crate::error::{Error, Result};
use crate::model::{Machine, WorkUnit};
use crate::plan::shapes::{Boxes, LayoutMethod, LeastCost};
use crate::plan::{Metrics, Shape, volume_bound};
use crate::platform::parse_platform;
use crate::random::Random;
use crate::run::Monitor;
use crate::select::{PlanOptions, plan_matmul};
use crate::threads::share_out;
use serde::Serialize;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::Mutex;

/// Number of draws that share a seed: small enough that a stop takes effect soon, large enough that
/// scheduling is free.
const BLOCK: u64 = 1 << 13;

/// Number of draws in one task of the search, each of which costs thousands of times as much.
const SEARCH_BLOCK: u64 = 8;

/// Cost of one searched draw in ordinary draws; for progress only.
const SEARCH_COST: u64 = 10_000;

/// Number of draws in one task of subsets, and the cost of one in ordinary draws; for progress only.
const SUBSET_BLOCK: u64 = 4;
const SUBSET_COST: u64 = 100_000;

/// The same of boxes.
const BOX_BLOCK: u64 = 4;
const BOX_COST: u64 = 20_000;

/// Maximum number of processors of a study.
const MOST_PROCESSORS: usize = 1000;

/// The setup of a study.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Study {
    /// Numbers of processors, each with its own draws.
    #[serde(skip)]
    pub processors: RangeInclusive<usize>,
    /// Draws of areas for each number of processors, at least 1.
    pub draws: u64,
    /// The number of draws, from the first, that are also laid out by the portfolio of methods, which
    /// includes `recursive`.
    pub searched: u64,
    /// The number of draws of machines with a network of two levels, for which `auto` may leave processors
    /// out.
    pub subsets: u64,
    /// The number of draws of products with a long inner dimension, which boxes may cut.
    pub boxes: u64,
    /// How speeds are drawn; areas are in proportion to them.
    pub distribution: Distribution,
    /// The largest ratio of the fastest to the slowest speed; draws with a larger ratio are dropped.
    pub most_unequal: Option<f64>,
    /// Equal seeds give equal results on any number of threads.
    pub seed: u64,
}

/// One row per number of processors: mean and minimum of cost / lower bound on the unit square, in real
/// arithmetic, for the optimal columns, for squares on the diagonal where they cost less, for the better of
/// the two, and for the best layout that the portfolio finds; what leaving processors out gains on random
/// networks; and the volume of boxes over its bound where the inner dimension is long.
///
/// Every block of draws has its own seed and sums are added in the order of blocks, so that the result does
/// not depend on `threads`. About 0.1 us per processor and draw, and milliseconds per searched draw.
///
/// # Errors
/// No draws, an empty range or more than 1,000 processors, a `most_unequal` below 1 (exit code 2); no draw
/// within `most_unequal`; [`Error::Interrupted`] if the monitor is told to stop.
pub fn study(study: &Study, threads: usize, monitor: &Monitor) -> Result<Vec<StudyRow>> {
    check(study)?;
    let tasks = tasks(study);
    monitor.begin(tasks.iter().map(Task::cost).sum());
    let done: Mutex<Vec<(usize, Tally)>> = Mutex::new(Vec::with_capacity(tasks.len()));
    // The most expensive tasks are last in the list. They are taken first, so that no thread is left with one
    // at the end.
    share_out(tasks.iter().rev().collect(), threads, |task| {
        if !monitor.is_stopped() {
            let tally = task.run(study);
            monitor.advance(task.cost());
            done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((task.number, tally));
        }
    });
    if monitor.is_stopped() {
        return Err(Error::Interrupted);
    }
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_unstable_by_key(|(number, _)| *number);
    let mut rows: Vec<(usize, Tally)> = study.processors.clone().map(|p| (p, Tally::default())).collect();
    for (number, tally) in done {
        rows[tasks[number].processors - study.processors.start()].1.add(&tally);
    }
    rows.into_iter().map(|(p, tally)| tally.row(p, study)).collect()
}

fn check(study: &Study) -> Result<()> {
    let (first, last) = (*study.processors.start(), *study.processors.end());
    if first < 1 || first > last || last > MOST_PROCESSORS {
        return Err(Error::input(
            "`processors`",
            format!("{first}..{last} is not a range within 1..{MOST_PROCESSORS}"),
            "write a number or a range, such as 1..40",
        ));
    }
    if study.draws == 0 {
        return Err(Error::input("`draws`", "the number of draws must be at least 1", "give 1 or more"));
    }
    match study.most_unequal {
        Some(most) if most.is_nan() || most < 1.0 => Err(Error::input(
            "`most_unequal`",
            format!("{most} is less than 1, the ratio of equal speeds"),
            "give a ratio of at least 1, such as 100",
        )),
        _ => Ok(()),
    }
}

/// What is done with a draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Price,
    Search,
    Subsets,
    Boxes,
}

/// A block of draws for one number of processors.
struct Task {
    number: usize,
    processors: usize,
    block: u64,
    draws: u64,
    kind: Kind,
}

fn tasks(study: &Study) -> Vec<Task> {
    let mut tasks = Vec::new();
    for processors in study.processors.clone() {
        let searched = study.searched.min(study.draws);
        for (draws, size, kind) in [
            (study.draws, BLOCK, Kind::Price),
            (searched, SEARCH_BLOCK, Kind::Search),
            (study.subsets, SUBSET_BLOCK, Kind::Subsets),
            (study.boxes, BOX_BLOCK, Kind::Boxes),
        ] {
            for block in 0..draws.div_ceil(size) {
                let draws = size.min(draws - block * size);
                tasks.push(Task { number: tasks.len(), processors, block, draws, kind });
            }
        }
    }
    tasks
}

impl Task {
    fn cost(&self) -> u64 {
        let weight = match self.kind {
            Kind::Price => 1,
            Kind::Search => SEARCH_COST,
            Kind::Subsets => SUBSET_COST,
            Kind::Boxes => BOX_COST,
        };
        self.processors as u64 * self.draws * weight
    }

    fn run(&self, study: &Study) -> Tally {
        let bits = match self.kind {
            Kind::Price => 0,
            Kind::Search => 1 << 47,
            Kind::Subsets => 1 << 46,
            Kind::Boxes => 1 << 45,
        };
        let stream = (self.processors as u64) << 48 | bits | self.block;
        // The output function of SplitMix64, from the state that it steps on to.
        let mix = |state: u64| Random::new(state.wrapping_sub(0x9e37_79b9_7f4a_7c15)).word();
        let seed = mix(study.seed) ^ mix(!stream);
        let mut draws = Draws::new(seed, study.distribution);
        let mut prices = Prices::new(self.processors);
        let mut networks = Random::new(!seed);
        let mut tally = Tally::default();
        let mut areas = vec![0.0; self.processors];
        for _ in 0..self.draws {
            draws.ascending(&mut areas);
            let (slowest, fastest) = (areas[0], areas[self.processors - 1]);
            if study.most_unequal.is_some_and(|most| fastest > most * slowest) {
                continue;
            }
            match self.kind {
                Kind::Search => {
                    tally.search(prices.columns(&areas), prices.searched(&areas), prices.bound(&areas));
                }
                Kind::Price => {
                    tally.take(prices.columns(&areas), prices.corner(&areas), prices.bound(&areas));
                }
                Kind::Subsets => tally.machine(price_subsets(&areas, &mut networks)),
                Kind::Boxes => tally.depth(price_boxes(&areas, &mut networks)),
            }
        }
        tally
    }
}

/// How the speeds of a draw are distributed; areas are speeds over their sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Distribution {
    /// Each speed uniform between 0 and 1: the sampling that gives the figures of Becker 2010.
    Uniform,
    /// Each speed exponential, so that every division of the square is as likely as any other.
    Simplex,
    /// Each speed's logarithm uniform, over two decades.
    LogUniform,
    /// Each speed from a Pareto law, P(speed > x) = x^-0.8: a few are far faster than the rest.
    Pareto,
}

impl Distribution {
    const NAMES: [(Self, &'static str); 4] = [
        (Self::Uniform, "uniform"),
        (Self::Simplex, "simplex"),
        (Self::LogUniform, "log-uniform"),
        (Self::Pareto, "pareto"),
    ];

    /// The speed at the quantile `u`; it increases with `u`.
    fn quantile(self, u: f64) -> f64 {
        match self {
            Self::Uniform => u,
            Self::Simplex => -(-u).ln_1p(),
            Self::LogUniform => 100f64.powf(u),
            Self::Pareto => (1.0 - u).powf(-1.0 / 0.8),
        }
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES.iter().find(|(d, _)| d == self).map_or("", |(_, name)| name);
        f.pad(name)
    }
}

impl FromStr for Distribution {
    type Err = String;
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        Self::NAMES.into_iter().find(|(_, name)| *name == text).map(|(d, _)| d).ok_or_else(|| {
            let names: Vec<&str> = Self::NAMES.iter().map(|(_, name)| *name).collect();
            format!("unknown distribution \"{text}\" (use {})", names.join(", "))
        })
    }
}

/// A stream of draws.
struct Draws {
    random: Random,
    distribution: Distribution,
    bits: Vec<u64>,
}

impl Draws {
    fn new(seed: u64, distribution: Distribution) -> Self {
        Self { random: Random::new(seed), distribution, bits: Vec::new() }
    }

    /// Fills in areas that sum to 1, the smallest first.
    fn ascending(&mut self, areas: &mut [f64]) {
        self.bits.clear();
        for _ in 0..areas.len() {
            self.bits.push(self.random.word() >> 12);
        }
        // Whole numbers sort faster than floating-point ones, and the quantile keeps their order.
        self.bits.sort_unstable();
        let mut total = 0.0;
        for (area, &bits) in areas.iter_mut().zip(&self.bits) {
            // Strictly between 0 and 1.
            *area = self.distribution.quantile((bits as f64 + 0.5) / (1u64 << 52) as f64);
            total += *area;
        }
        areas.iter_mut().for_each(|area| *area /= total);
    }
}

/// Side of the matrix that the portfolio lays out: rounding to elements changes costs by less than 1e-6.
const UNIT_SIDE: u64 = 1 << 26;

/// The costs of layouts of the unit square in real arithmetic, without laying anything out, with memory for
/// the draws of one number of processors.
struct Prices {
    prefix: Vec<f64>,
    best: Vec<f64>,
}

impl Prices {
    fn new(processors: usize) -> Self {
        Self { prefix: vec![0.0; processors + 1], best: vec![0.0; processors + 1] }
    }

    /// 2 sum sqrt(area): no layout costs less.
    fn bound(&self, areas: &[f64]) -> f64 {
        2.0 * areas.iter().map(|a| a.sqrt()).sum::<f64>()
    }

    /// The sum of half-perimeters of the optimal columns of ascending areas that sum to 1. O(p^2) at most.
    ///
    /// A column of q processors and width w costs 1 + q w. The last column of the cheapest prefix never
    /// begins further left than that of a shorter prefix (the quadrangle inequality of `shapes::columns`), so
    /// that few beginnings have to be tried.
    fn columns(&mut self, areas: &[f64]) -> f64 {
        let mut start = 0;
        for (j, area) in areas.iter().enumerate() {
            self.prefix[j + 1] = self.prefix[j] + area;
            let end = j + 1;
            let price =
                |i: usize| self.best[i] + 1.0 + (end - i) as f64 * (self.prefix[end] - self.prefix[i]);
            let (mut least, mut from) = (price(start), start);
            for i in start + 1..end {
                let other = price(i);
                if other < least {
                    (least, from) = (other, i);
                }
            }
            self.best[end] = least;
            start = from;
        }
        self.best[areas.len()]
    }

    /// The sum of half-perimeters with the slower processors in squares on the diagonal; infinite where these
    /// would overlap.
    fn corner(&self, areas: &[f64]) -> f64 {
        let sides: f64 = areas[..areas.len() - 1].iter().map(|a| a.sqrt()).sum();
        if sides <= 1.0 { 2.0 + 2.0 * sides } else { f64::INFINITY }
    }

    /// The sum of half-perimeters of the best layout that the portfolio finds.
    fn searched(&self, areas: &[f64]) -> f64 {
        let shape = Shape { m: UNIT_SIDE, k: 1, n: UNIT_SIDE };
        let layout = LeastCost::default().choose(shape, areas).layout;
        Metrics::of_layout(&layout, 1.0).sum_half_perimeters.unwrap_or(f64::INFINITY)
    }
}

/// Rows and columns of C in products with a long inner dimension.
const FACE: u64 = 4096;

/// The largest ratio of the inner dimension to the others.
const DEEPEST: f64 = 64.0;

/// Volume over the least volume of any plan with these shares.
#[derive(Debug, Clone, Copy, PartialEq)]
struct BoxVolumes {
    /// Of boxes.
    pub(crate) boxes: f64,
    /// Of the best layout of C alone.
    pub(crate) flat: f64,
}

/// Lays out a product of m : k : n = 1 : d : 1 on processors of these relative speeds; the logarithm of d is
/// uniform from 1 to 64.
fn price_boxes(speeds: &[f64], random: &mut Random) -> BoxVolumes {
    let depth = (FACE as f64 * DEEPEST.powf(random.unit())).round() as u64;
    let shape = Shape { m: FACE, k: depth, n: FACE };
    let deep = Boxes.layout(shape, speeds).expect("boxes serve every shape");
    let flat = LeastCost::default().choose(shape, speeds).layout;
    let whole = shape.elements() as f64 * shape.k as f64;
    let bound = volume_bound(shape, deep.work().into_iter().map(|work| work as f64 / whole));
    // One processor alone moves nothing, and need not.
    let over = |volume: u64| if volume == 0 { 1.0 } else { volume as f64 / bound.max(1) as f64 };
    BoxVolumes { boxes: over(deep.volume()), flat: over(flat.volume()) }
}

/// Side of the product on random machines, and its pivot block: eight blocks.
const SIDE: u64 = 2048;
const PIVOT_BLOCK: u64 = 256;

/// Multiply-adds per second of all processors together, for each of them.
const SPEED: f64 = 1e9;

/// What leaving processors out gains on a random machine of two levels.
#[derive(Debug, Clone, Copy, PartialEq)]
struct SubsetGain {
    /// True if `auto` leaves processors out.
    pub(crate) left_out: bool,
    /// The time of the best plan for all processors over that of `auto`.
    pub(crate) gain: f64,
    /// The forecast over the bound that no plan can beat.
    pub(crate) over_bound: f64,
}

/// Plans a product on processors of these relative speeds, in two clusters. The bandwidth between the
/// clusters is 1 MB/s to 1 GB/s, its logarithm uniform; inside it is ten times as high.
fn price_subsets(speeds: &[f64], random: &mut Random) -> SubsetGain {
    let machine = machine(speeds, 1e6 * 1e3f64.powf(random.unit()), random);
    let shape = Shape { m: SIDE, k: SIDE, n: SIDE };
    let best = |keep_all| {
        let options = PlanOptions { keep_all, ..PlanOptions::open(PIVOT_BLOCK, 8) };
        let choices = plan_matmul(shape, &machine, &options);
        choices.expect("columns serve every machine").remove(0)
    };
    let (all, open) = (best(true), best(false));
    SubsetGain {
        left_out: open.left_out.is_some(),
        gain: all.rank.unwrap_or(1.0) / open.rank.unwrap_or(1.0),
        over_bound: open.plan.metrics.forecast_over_bound.unwrap_or(1.0),
    }
}

fn machine(speeds: &[f64], bandwidth: f64, random: &mut Random) -> Machine {
    let total: f64 = speeds.iter().sum();
    let mut text = String::new();
    let mut present = [false; 2];
    for (i, speed) in speeds.iter().enumerate() {
        let cluster = random.below(2);
        present[cluster] = true;
        let flops = 2.0 * SPEED * (speed / total * speeds.len() as f64).max(1e-6);
        text += &format!(
            "[[processor]]\nname = \"p{i}\"\ncluster = \"c{cluster}\"\nspeed = \"{flops} flop/s\"\n"
        );
    }
    text += &format!("[network]\nlatency = \"50 us\"\nbandwidth = {bandwidth}\n");
    for cluster in (0..2).filter(|&cluster| present[cluster]) {
        let inside = 10.0 * bandwidth;
        text +=
            &format!("[[network.link]]\nbetween = [\"c{cluster}\", \"c{cluster}\"]\nbandwidth = {inside}\n");
    }
    let platform = parse_platform(&text, "two levels").expect("a sound platform file");
    Machine::from_platform(platform, WorkUnit::MultiplyAdd).expect("every processor has a speed")
}

/// Ratios of cost to lower bound.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StudyRatio {
    /// Their mean.
    pub mean: f64,
    /// Half the width of the mean's 95 % confidence interval.
    pub ci: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

/// The draws for which squares on the diagonal cost less than columns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StudyCorner {
    /// Number of these draws.
    pub draws: u64,
    /// The squares' ratios on these draws.
    pub ratio: StudyRatio,
    /// The columns' ratios on the same draws.
    pub columns: StudyRatio,
}

/// The study of one number of processors.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StudyRow {
    /// Number of processors.
    pub processors: usize,
    /// Number of draws counted, without those that are too unequal.
    pub draws: u64,
    /// Optimal columns.
    pub columns: StudyRatio,
    /// Squares on the diagonal, where they cost less; `None` if they never do.
    pub corner: Option<StudyCorner>,
    /// The cheaper of columns and squares.
    pub best: StudyRatio,
    /// The best layout that the portfolio finds, on the searched draws, and the columns' ratios on these.
    pub searched: Option<StudySearched>,
    /// Plans on random networks, if any were drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subsets: Option<StudySubsets>,
    /// Products with a long inner dimension, if any were drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boxes: Option<StudyDepth>,
}

/// Volume over the least volume of any plan with the same shares, on products with m : k : n from 1:1:1 to
/// 1:64:1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StudyDepth {
    /// Number of products.
    pub(crate) draws: u64,
    /// Layouts that may cut the inner dimension.
    pub boxes: StudyRatio,
    /// The best layouts that do not.
    pub flat: StudyRatio,
}

/// Plans of a product on random machines of two levels, where `auto` may leave processors out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StudySubsets {
    /// Number of machines.
    pub draws: u64,
    /// Number of machines on which some processors stay out.
    pub left_out: u64,
    /// The time of the best plan for all processors over that of `auto`.
    pub gain: StudyRatio,
    /// The forecast over the time that no plan can beat.
    pub over_bound: StudyRatio,
}

/// The draws that the portfolio laid out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StudySearched {
    /// Number of these draws.
    pub draws: u64,
    /// The portfolio's ratios.
    pub ratio: StudyRatio,
    /// The columns' ratios on the same draws.
    pub columns: StudyRatio,
}

/// Sums of ratios minus 1, which keeps rounding errors small.
#[derive(Debug, Clone, Copy)]
struct Ratios {
    count: u64,
    sum: f64,
    squares: f64,
    min: f64,
    max: f64,
}

impl Default for Ratios {
    fn default() -> Self {
        Self { count: 0, sum: 0.0, squares: 0.0, min: f64::INFINITY, max: 0.0 }
    }
}

impl Ratios {
    fn take(&mut self, ratio: f64) {
        self.count += 1;
        self.sum += ratio - 1.0;
        self.squares += (ratio - 1.0) * (ratio - 1.0);
        self.min = self.min.min(ratio);
        self.max = self.max.max(ratio);
    }

    fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares += other.squares;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    fn summary(&self) -> Option<StudyRatio> {
        let n = self.count as f64;
        let mean = self.sum / n;
        let variance = (self.squares / n - mean * mean).max(0.0) * n / (n - 1.0).max(1.0);
        let ci = 1.96 * (variance / n).sqrt();
        (self.count > 0).then_some(StudyRatio { mean: 1.0 + mean, ci, min: self.min, max: self.max })
    }
}

/// The sums of some draws.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    columns: Ratios,
    best: Ratios,
    corner: Ratios,
    columns_at_corner: Ratios,
    searched: Ratios,
    columns_at_searched: Ratios,
    gain: Ratios,
    over_bound: Ratios,
    left_out: u64,
    boxes: Ratios,
    flat: Ratios,
}

impl Tally {
    /// Adds a product with a long inner dimension.
    fn depth(&mut self, volumes: BoxVolumes) {
        self.boxes.take(volumes.boxes);
        self.flat.take(volumes.flat);
    }

    /// Adds a machine.
    fn machine(&mut self, gain: SubsetGain) {
        self.gain.take(gain.gain);
        self.over_bound.take(gain.over_bound);
        self.left_out += u64::from(gain.left_out);
    }

    /// Adds a draw, given its costs and its bound.
    fn take(&mut self, columns: f64, corner: f64, bound: f64) {
        self.columns.take(columns / bound);
        self.best.take(columns.min(corner) / bound);
        if corner < columns {
            self.corner.take(corner / bound);
            self.columns_at_corner.take(columns / bound);
        }
    }

    /// Adds a searched draw.
    fn search(&mut self, columns: f64, searched: f64, bound: f64) {
        self.searched.take(searched / bound);
        self.columns_at_searched.take(columns / bound);
    }

    fn add(&mut self, other: &Self) {
        self.columns.add(&other.columns);
        self.best.add(&other.best);
        self.corner.add(&other.corner);
        self.columns_at_corner.add(&other.columns_at_corner);
        self.searched.add(&other.searched);
        self.columns_at_searched.add(&other.columns_at_searched);
        self.gain.add(&other.gain);
        self.over_bound.add(&other.over_bound);
        self.left_out += other.left_out;
        self.boxes.add(&other.boxes);
        self.flat.add(&other.flat);
    }

    fn row(&self, processors: usize, study: &Study) -> Result<StudyRow> {
        let (Some(columns), Some(best)) = (self.columns.summary(), self.best.summary()) else {
            let most = study.most_unequal.unwrap_or(f64::INFINITY);
            return Err(Error::infeasible(
                format!("no draw of {processors} speeds has a ratio of at most {most}"),
                "raise `most_unequal` or `draws`",
            ));
        };
        let corner = self.corner.summary().zip(self.columns_at_corner.summary());
        let searched = self.searched.summary().zip(self.columns_at_searched.summary());
        Ok(StudyRow {
            processors,
            draws: self.columns.count,
            columns,
            corner: corner.map(|(ratio, columns)| StudyCorner { draws: self.corner.count, ratio, columns }),
            best,
            searched: searched.map(|(ratio, columns)| StudySearched {
                draws: self.searched.count,
                ratio,
                columns,
            }),
            subsets: self.gain.summary().zip(self.over_bound.summary()).map(|(gain, over_bound)| {
                StudySubsets { draws: self.gain.count, left_out: self.left_out, gain, over_bound }
            }),
            boxes: self.boxes.summary().zip(self.flat.summary()).map(|(boxes, flat)| StudyDepth {
                draws: self.boxes.count,
                boxes,
                flat,
            }),
        })
    }
}

#[cfg(test)]
mod tests;
