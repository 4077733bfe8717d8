//! A job of units, run once by a user's program and divided while it runs.

use crate::error::{Error, Result};
use crate::measure::command::UserCommand;
use crate::measure::joblog::JobLog;
use crate::measure::pieces::{Halt, PieceObserver, Pieces, PiecesRun, Queue, TextOrder};
use crate::measure::units::{OneEach, units_of};
use crate::plan::shares::{
    Chain, Estimate, Line, OnePass, OnePassOptions, Order, TimeRange, TimedPiece, learnt_costs, whole_lines,
};
use crate::plan::{Baselines, FastestAlone, Forecast, Plan};
use crate::platform::Platform;
use crate::run::World;
use std::ops::Range;
use std::sync::Arc;

/// What is run, and how.
#[derive(Debug, Clone, Default)]
pub struct UnitsJob {
    /// Number of units.
    pub units: u64,
    /// By rank, ratios of the processors' speeds: hints for the first pieces.
    pub hints: Option<Vec<f64>>,
    /// By rank, the times of an earlier run, where they are known.
    pub lines: Option<Vec<Option<Line>>>,
    /// Cost of each unit: pieces are sized by it, and the lines have the time of a unit of mean cost.
    pub costs: Option<Arc<[f64]>>,
    /// How often units that failed run again.
    pub retries: u32,
    /// What a piece does that has failed for good.
    pub halt: Halt,
    /// Whether what pieces print comes out when they end, and not in the order of the units.
    pub text_at_ends: bool,
    /// Whether the fastest processor runs all units once more, alone, to tell its time.
    pub measure_alone: bool,
}

impl UnitsJob {
    /// The job of a plan that knows the times of its processors; `None` if the plan does not. Of units of different
    /// cost, a plan knows the cost of each part, and within a part they count as equal.
    ///
    /// # Errors
    /// The plan is not one of units, has none, or more than 2^53, or its processors are not the platform's: exit code 2.
    pub fn of_plan(plan: &Plan, platform: &Platform) -> Result<Option<Self>> {
        let units = units_of(plan, platform)?;
        let Some(lines) = plan.lines.clone() else { return Ok(None) };
        Ok(Some(Self { units, lines: Some(lines), costs: costs_of(plan), ..Self::default() }))
    }
}

/// The mean cost of each unit's part, if the plan knows the costs of its parts.
fn costs_of(plan: &Plan) -> Option<Arc<[f64]>> {
    let parts = plan.costs.as_ref().filter(|_| plan.shares.iter().sum::<u64>() <= Chain::MOST_UNITS)?;
    let ranges = plan.ranges();
    let of_rank = |rank: usize| {
        let units = ranges[rank].end - ranges[rank].start;
        std::iter::repeat_n(parts[rank] / units as f64, units as usize)
    };
    let costs: Arc<[f64]> = plan.ranks_in_order().into_iter().flat_map(of_rank).collect();
    Some(costs).filter(|costs| costs.iter().any(|cost| *cost > 0.0))
}

/// What a processor did.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessorUnits {
    /// Its name.
    pub name: String,
    /// Units of its pieces that ended well.
    pub units: u64,
    /// Number of these pieces.
    pub pieces: u64,
    /// Seconds of all its pieces.
    pub busy: f64,
    /// What is known of its times.
    pub estimate: Option<Estimate>,
}

/// A piece that has failed for good.
#[derive(Debug)]
pub struct FailedPiece {
    /// Its number.
    pub piece: u64,
    /// Why.
    pub error: Error,
}

/// The time of all units without a division among processors.
#[derive(Debug, Clone, PartialEq)]
pub struct AloneTime {
    /// The processor.
    pub processor: String,
    /// Its time.
    pub time: TimeRange,
    /// Whether it was measured.
    pub measured: bool,
}

/// A job that has run, to its end or not.
#[derive(Debug)]
pub struct UnitsReport {
    /// Seconds from the begin to the end of the last piece.
    pub seconds: f64,
    /// Number of units that were to be run: those that the joblog did not call done.
    pub units: u64,
    /// Those of them that are done.
    pub done: u64,
    /// Number of pieces that were begun.
    pub pieces: u64,
    /// What each processor did, by rank.
    pub processors: Vec<ProcessorUnits>,
    /// What the fastest processor alone would have taken, if that is known.
    pub alone: Option<AloneTime>,
    /// What an equal piece for each processor would have taken.
    pub even: Option<TimeRange>,
    /// What the run would have taken, had all times been known.
    pub(crate) ideal: Option<TimeRange>,
    /// The pieces that failed for good.
    pub failed: Vec<FailedPiece>,
    /// Why processors were lost.
    pub lost: Vec<Error>,
    /// For the next run of as many units, if a time is known.
    pub plan: Option<Plan>,
}

impl UnitsReport {
    /// Seconds that learning and further starts have cost, if that is known.
    pub fn learning_seconds(&self) -> Option<f64> {
        let is_whole = self.done == self.units && self.units > 0;
        self.ideal.filter(|_| is_whole).map(|ideal| (self.seconds - ideal.seconds).max(0.0))
    }

    /// Seconds that the pieces of all processors took to start, by their lines.
    pub fn start_up_seconds(&self) -> f64 {
        let of = |p: &ProcessorUnits| p.estimate.map_or(0.0, |known| known.line.start_up * p.pieces as f64);
        self.processors.iter().map(of).sum()
    }

    /// The number of runs, this one included, after which learning and then following the plan has taken less time
    /// than the better of its baselines; `None` if that is never.
    pub fn pays_after_runs(&self) -> Option<u64> {
        let plan = self.plan.as_ref()?;
        let (next, without) = (plan.forecast.as_ref()?.seconds, plan.baselines.as_ref()?.best()?);
        if self.seconds <= without {
            return Some(1);
        }
        let runs = 1.0 + ((self.seconds - without) / (without - next)).ceil();
        (without > next && runs.is_finite()).then_some(runs as u64)
    }
}

impl Queue for OnePass {
    fn next(&mut self, rank: usize, now: f64) -> Order {
        Self::next(self, rank, now)
    }

    fn ended(&mut self, rank: usize, now: f64) {
        Self::ended(self, rank, now);
    }

    fn failed(&mut self, rank: usize, now: f64, again: bool) {
        Self::failed(self, rank, now, again);
    }

    fn lost(&mut self, rank: usize) {
        Self::lost(self, rank);
    }

    fn expected_end(&self, now: f64) -> Option<f64> {
        Self::expected_end(self, now)
    }
}

/// Runs all units of a job once, in pieces of `command`, and divides them among the processors while they run: pieces
/// show how long a processor takes to start and for a unit, and the next are sized by that. `log` says which units are
/// done already, and gets a line for each piece that ends.
///
/// Under a world of several ranks each runs the pieces of its own processor; log, texts and result are those of rank 0.
/// The world's monitor advances by the units that are done.
///
/// # Errors
/// More than 2^53 units or none, hints or lines that do not fit (exit code 2); texts or the joblog that cannot be
/// written; a lost rank. Failures of programs, and an interruption of a single process, are in the report.
pub fn run_units_once(
    job: &UnitsJob,
    platform: &Platform,
    command: &UserCommand,
    log: Option<JobLog>,
    observer: Arc<dyn PieceObserver>,
    world: &World,
) -> Result<Option<UnitsReport>> {
    if job.units == 0 || job.units > 1 << 53 {
        return Err(Error::input("`units`", format!("are {}", job.units), "use 1 to 2^53 units"));
    }
    let processors = platform.len();
    let remaining = gaps(log.as_ref().map_or(&[], JobLog::done), job.units);
    let options = OnePassOptions {
        processors,
        hints: job.hints.clone(),
        lines: job.lines.clone(),
        costs: job.costs.clone(),
        ..OnePassOptions::default()
    };
    let mut one_pass = OnePass::new(&remaining, options)?;
    world.monitor().begin(one_pass.remaining());
    let pieces = Pieces {
        platform,
        command,
        world,
        observer: Arc::clone(&observer),
        order: if job.text_at_ends { TextOrder::Ends } else { TextOrder::Units },
        retries: job.retries,
        halt: job.halt,
        together: false,
        first: log.as_ref().map_or(0, JobLog::next_piece),
    };
    let ran = pieces.run(&mut one_pass, log)?;
    let first = ran.as_ref().map_or(0, |ran| ran.next_piece);
    let mut report = ran.map(|ran| report_of(ran, &one_pass, &remaining, job, platform));
    if job.measure_alone {
        let mut each = OneEach(vec![0..0; processors]);
        let fastest = one_pass.fastest_alone();
        if let Some(rank) =
            fastest.filter(|_| report.as_ref().is_some_and(|report| report.done == report.units))
        {
            each.0[rank] = 0..job.units;
        }
        world.monitor().begin(job.units);
        let pieces = Pieces { observer: Arc::new(Silent(observer)), first, ..pieces };
        let ran = pieces.run(&mut each, None)?;
        if let (Some(report), Some(ran), Some(rank)) = (&mut report, ran, fastest)
            && let Some(Ok(seconds)) = ran.pieces.first().map(|piece| &piece.outcome)
        {
            let time = TimeRange { seconds: *seconds, low: *seconds, high: *seconds };
            let processor = platform.processors[rank].name.clone();
            report.alone = Some(AloneTime { processor, time, measured: true });
            if let Some(baselines) = report.plan.as_mut().and_then(|plan| plan.baselines.as_mut()) {
                let processor = platform.processors[rank].name.clone();
                baselines.fastest_alone = Some(FastestAlone { processor, seconds: *seconds });
            }
        }
    }
    Ok(report)
}

/// Drops what pieces print to stdout.
struct Silent(Arc<dyn PieceObserver>);

impl PieceObserver for Silent {
    fn line(&self, processor: &str, line: &str) {
        self.0.line(processor, line);
    }
}

/// The units of 0 to n that no range has.
fn gaps(done: &[Range<u64>], n: u64) -> Vec<Range<u64>> {
    let ends = done.iter().map(|range| range.end);
    let begins = done.iter().map(|range| range.start);
    let gaps = std::iter::once(0).chain(ends).zip(begins.chain([n]));
    gaps.map(|(from, to)| from..to).filter(|gap| !gap.is_empty()).collect()
}

fn report_of(
    ran: PiecesRun,
    one_pass: &OnePass,
    remaining: &[Range<u64>],
    job: &UnitsJob,
    platform: &Platform,
) -> UnitsReport {
    let name = |rank: usize| platform.processors[rank].name.clone();
    let of = |rank: usize| ProcessorUnits {
        name: name(rank),
        units: 0,
        pieces: 0,
        busy: 0.0,
        estimate: one_pass.estimate(rank),
    };
    let mut processors: Vec<ProcessorUnits> = (0..platform.len()).map(of).collect();
    let (mut failed, mut timed) = (Vec::new(), Vec::new());
    let pieces = ran.pieces.len() as u64;
    for piece in ran.pieces {
        let processor = &mut processors[piece.rank];
        match piece.outcome {
            Ok(seconds) => {
                timed.push(TimedPiece { rank: piece.rank, units: piece.units.clone(), seconds });
                processor.units += piece.units.end - piece.units.start;
                processor.pieces += 1;
                processor.busy += seconds;
            }
            Err(Error::Interrupted) => {}
            Err(_) if piece.again => {}
            Err(error) => failed.push(FailedPiece { piece: piece.number, error }),
        }
    }
    let alone = one_pass.fastest_alone().and_then(|rank| {
        Some(AloneTime { processor: name(rank), time: one_pass.alone(rank)?, measured: false })
    });
    let lines: Vec<_> =
        processors.iter().map(|processor| processor.estimate.map(|known| known.line)).collect();
    let lines = if job.costs.is_none() { whole_lines(&timed, &lines) } else { lines };
    // Costs that nobody has given are learnt, where they change along the range.
    let learnt = if job.costs.is_none() { learnt_costs(&timed, &lines) } else { None };
    let plan = match learnt.filter(|(costs, _)| costs.len() as u64 == job.units) {
        Some((costs, lines)) => plan_of_lines(lines, Some(costs.into()), job.units, platform),
        None => plan_of_lines(lines, job.costs.clone(), job.units, platform),
    };
    UnitsReport {
        seconds: ran.seconds,
        units: remaining.iter().map(|range| range.end - range.start).sum(),
        done: processors.iter().map(|processor| processor.units).sum(),
        pieces,
        processors,
        alone,
        even: one_pass.even_split(),
        ideal: one_pass.ideal(),
        failed,
        lost: ran.lost.into_iter().map(|lost| lost.error).collect(),
        plan,
    }
}

/// The plan that lets all processors whose times are known end together; `None` if none is.
fn plan_of_lines(
    lines: Vec<Option<Line>>,
    costs: Option<Arc<[f64]>>,
    units: u64,
    platform: &Platform,
) -> Option<Plan> {
    let options = OnePassOptions {
        processors: lines.len(),
        lines: Some(lines.clone()),
        costs: costs.clone(),
        fixed: true,
        ..OnePassOptions::default()
    };
    let mut fixed = OnePass::new(std::slice::from_ref(&(0..units)), options).ok()?;
    let known = || lines.iter().enumerate().filter_map(|(rank, line)| Some((rank, (*line)?)));
    for (rank, _) in lines.iter().enumerate().filter(|(_, line)| line.is_none()) {
        fixed.lost(rank);
    }
    let mut parts = vec![0..0; lines.len()];
    for (rank, _) in known() {
        if let Order::Run(units) = fixed.next(rank, 0.0) {
            parts[rank] = units;
        }
    }
    let shares: Vec<u64> = parts.iter().map(|units| units.end - units.start).collect();
    let chain = costs.and_then(|costs| Chain::new(&costs).ok());
    let cost = |part: &Range<u64>| match &chain {
        Some(chain) => chain.cost(part.start as usize, part.end as usize),
        None => (part.end - part.start) as f64,
    };
    let mean = chain.as_ref().map_or(1.0, |chain| chain.total() / units as f64);
    let seconds = |line: Line, part: &Range<u64>| line.start_up + line.per_unit * cost(part) / mean;
    let time = |rank: usize, part: &Range<u64>| match lines[rank] {
        Some(line) if !part.is_empty() => seconds(line, part),
        _ => 0.0,
    };
    let compute: Vec<f64> = parts.iter().enumerate().map(|(rank, part)| time(rank, part)).collect();
    let longest = compute.iter().copied().fold(0.0, f64::max);
    let working = parts.iter().zip(&compute).filter(|(part, _)| !part.is_empty());
    let speed: f64 = working.map(|(part, t)| cost(part) / mean / t).sum();
    if shares.iter().sum::<u64>() != units || !(longest > 0.0 && speed.is_finite()) {
        return None;
    }
    let all = 0..units;
    let alone = known().min_by(|a, b| seconds(a.1, &all).total_cmp(&seconds(b.1, &all)))?;
    let fastest_alone = FastestAlone {
        processor: platform.processors[alone.0].name.clone(),
        seconds: seconds(alone.1, &all),
    };
    // The first processors have the units that are left over.
    let (part, left) = (units / lines.len() as u64, units % lines.len() as u64);
    let begin = |rank: u64| rank * part + rank.min(left);
    let even = |(line, rank): (&Option<Line>, u64)| Some(seconds((*line)?, &(begin(rank)..begin(rank + 1))));
    let even_split = lines.iter().zip(0..).map(even).collect::<Option<Vec<f64>>>();
    let forecast = Forecast { seconds: longest, communicate: vec![0.0; compute.len()], compute };
    Some(Plan {
        forecast: Some(forecast),
        baselines: (lines.len() > 1).then(|| Baselines {
            fastest_alone: Some(fastest_alone),
            even_split: even_split.map(|all| all.into_iter().fold(0.0, f64::max)),
        }),
        costs: chain.as_ref().map(|_| parts.iter().map(cost).collect()),
        lines: Some(lines),
        ..Plan::of_units("one-pass", platform.names(), shares, longest * speed / units as f64)
    })
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
