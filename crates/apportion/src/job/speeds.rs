//! Speeds that are measured quickly before a run: remembered, fitted to the moment, and checked by every run.

use super::Context;
use super::cache::{self, Remembered};
use crate::error::Result;
use crate::kernels::Kernel;
use crate::matrix::Element;
use crate::measure::{
    CpuShare, Effort, KernelUpdate, QuickSpeeds, TimeRange, Workload, is_exhausted, measure_availability,
    measure_more, measure_quickly, others_are_running,
};
use crate::model::{Model, Models};
use crate::platform::{Network, Platform, discover};
use crate::product::{ClosureMethod, RunReport};
use crate::run::World;
use crate::trace::Activity;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Sizes of the quick measurement: elements of C.
const SIZES: [f64; 4] = [4096.0, 65_536.0, 524_288.0, 2_097_152.0];
/// Seconds of computing below which a run is over before other programs have their turn.
const WORTH_A_LOOK: f64 = 0.01;
/// Seconds of computing of which the shortest look at what other programs leave takes 5 %.
const LONG_BESIDE_A_LOOK: f64 = 0.24;
/// The longest look at what other programs leave, in seconds.
const LOOK: f64 = 0.1;
/// Seconds of computing that are worth a warning beforehand.
const LONG: f64 = 5.0;
/// Seconds of computing below which a run is no measurement.
const TELLING: f64 = 0.05;
/// Relative error of a speed from which on it is replaced, and the difference of shares that a note names.
const OFF: f64 = 0.05;

/// What helps against speeds that vary.
const REMEASURE: &str = "--remeasure on a quiet machine";

/// Where the speeds come from by which a run is planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpeedSource {
    /// A file or a flag.
    Given,
    /// A measurement before this run.
    Measured,
    /// A measurement before an earlier run.
    Remembered,
}

impl fmt::Display for SpeedSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Given => "given",
            Self::Measured => "measured",
            Self::Remembered => "remembered",
        })
    }
}

/// Speeds of this machine, as they are and as they are at the moment.
#[derive(Debug)]
pub struct MeasuredSpeeds {
    /// Measured, or remembered.
    source: SpeedSource,
    /// Their shares are those that this run can expect.
    speeds: QuickSpeeds,
    /// Where they are remembered.
    path: Option<PathBuf>,
    /// Whether what makes them uncertain has been said.
    warned: bool,
}

/// Speed functions of the platform's processors on this machine: remembered ones, if they were measured under
/// the same conditions, or those of a quick measurement. `work` is that of the run, in elements of C times
/// its pivot blocks.
///
/// # Errors
/// Those of [`measure_quickly`], on all ranks.
pub fn measure_or_recall<T: Element>(
    kernel: Kernel<T>,
    platform: &Platform,
    block: u64,
    work: f64,
    remeasure: bool,
    context: Context<'_>,
) -> Result<MeasuredSpeeds> {
    let effort = Effort::worth(work * block as f64);
    let update = KernelUpdate { kernel, block };
    // Where memory is short, the largest sizes are left out, and the speeds are not remembered.
    let count = update.fitting_sizes(&SIZES, platform.len()) as u64;
    let sizes = &SIZES[..context.world.all_reduce(&[count], u64::min)?[0] as usize];
    let measure = || {
        context.watch("measuring", || {
            measure_quickly(&update, platform, sizes, effort, context.world, context.monitor)
        })
    };
    if !context.world.is_solo() {
        // Speeds do not depend on links, whose measured figures differ each time.
        let processors = Platform { network: Network::free(), ..platform.clone() };
        let key = format!("{} {block} {}", kernel.name(), processors.to_toml());
        let recalled = if remeasure { None } else { recall_together(&key, effort, context.world)? };
        let (speeds, source) = match recalled {
            Some(speeds) => (speeds, SpeedSource::Remembered),
            None => {
                context.detail("measuring speeds on all processes together");
                (measure()?, SpeedSource::Measured)
            }
        };
        known_together().insert(key, speeds.clone());
        return Ok(MeasuredSpeeds { source, ..MeasuredSpeeds::new(speeds, None, work, context) });
    }
    let path = cache::path(platform, &kernel.name(), block);
    if let Some(path) = path.as_ref().filter(|_| !remeasure) {
        match cache::load(path, platform) {
            Remembered::Speeds(speeds) if speeds.serves(effort) => {
                context.detail(format!("speeds: {} (--remeasure to measure again)", path.display()));
                let shares = shares_now(&speeds, platform, work, context)?;
                let speeds = QuickSpeeds { shares, ..speeds };
                let known = MeasuredSpeeds::new(speeds, Some(path.clone()), work, context);
                return Ok(MeasuredSpeeds { source: SpeedSource::Remembered, ..known });
            }
            Remembered::Elsewhere(what) => {
                context.detail(format!("speeds: measuring again, as {what} since they were measured"));
            }
            Remembered::Speeds(_) | Remembered::Nothing => (),
        }
    }
    let speeds = measure()?;
    let path = path.filter(|_| sizes.len() == SIZES.len());
    if let Some(path) = &path {
        cache::store(path, &speeds, platform);
        context.detail(format!("speeds: measured, saved to {}", path.display()));
    }
    Ok(MeasuredSpeeds::new(speeds, path, work, context))
}

/// What the processes of worlds have measured together in their life, by kernel, block and platform.
fn known_together() -> MutexGuard<'static, BTreeMap<String, QuickSpeeds>> {
    static KNOWN: Mutex<BTreeMap<String, QuickSpeeds>> = Mutex::new(BTreeMap::new());
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Speeds that all processes of the world remember; `None` if one does not.
fn recall_together(key: &str, effort: Effort, world: &World) -> Result<Option<QuickSpeeds>> {
    let known = known_together().get(key).filter(|speeds| speeds.serves(effort)).cloned();
    let all = world.all_reduce(&[u64::from(known.is_some())], u64::min)?;
    Ok(known.filter(|_| all == [1]))
}

/// The part of its time that each processor gets at the moment. A look lasts no longer than the run; before a
/// short run it is taken only if the system counts other programs that are running.
fn shares_now(
    speeds: &QuickSpeeds,
    platform: &Platform,
    work: f64,
    context: Context<'_>,
) -> Result<Vec<CpuShare>> {
    let seconds = least_seconds(speeds, work);
    if seconds < WORTH_A_LOOK || (seconds < LONG_BESIDE_A_LOOK && !others_are_running()) {
        return Ok(vec![CpuShare::WHOLE; platform.len()]);
    }
    measure_availability(platform, seconds.min(LOOK), context.monitor)
}

/// Seconds of the work if nothing else runs.
fn least_seconds(speeds: &QuickSpeeds, work: f64) -> f64 {
    work / speeds.models.models.iter().map(|model| model.speed(SIZES[3])).sum::<f64>()
}

impl MeasuredSpeeds {
    /// Before a long run, what makes the speeds uncertain is said at once; otherwise with its result.
    fn new(speeds: QuickSpeeds, path: Option<PathBuf>, work: f64, context: Context<'_>) -> Self {
        let warned = least_seconds(&speeds, work) >= LONG;
        if warned && context.world.rank() == 0 {
            warn_of_uncertainty(&speeds, REMEASURE, context);
        }
        Self { source: SpeedSource::Measured, speeds, path, warned }
    }

    /// Where the speeds come from.
    pub fn source(&self) -> SpeedSource {
        self.source
    }

    /// Says what makes the speeds uncertain, if it has not been said.
    pub fn warn(&mut self, context: Context<'_>) {
        if !std::mem::replace(&mut self.warned, true) {
            warn_of_uncertainty(&self.speeds, REMEASURE, context);
        }
    }

    /// The speeds that a run can expect now.
    ///
    /// # Errors
    /// Times beyond what a model may have.
    pub fn models(&self) -> Result<Models> {
        self.speeds.now()
    }

    /// Speed functions of another workload with a pivot block on the same processors: remembered, or measured as long
    /// as these were, and with the same parts of the processors' time left by other programs.
    ///
    /// # Errors
    /// Those of [`measure_quickly`], on all ranks.
    pub fn beside<W: Workload>(
        &self,
        workload: &W,
        name: &str,
        block: u64,
        platform: &Platform,
        sizes: &[f64],
        remeasure: bool,
        context: Context<'_>,
    ) -> Result<Models> {
        let effort = if self.speeds.windows > 1 { Effort::Thorough } else { Effort::Rough };
        let world = context.world;
        let measure = || {
            let measure = || measure_more(workload, platform, sizes, effort, world, context.monitor);
            context.watch("measuring", measure)
        };
        let shares = self.speeds.shares.clone();
        let same = |speeds: &QuickSpeeds| {
            let measured =
                |model: &Model| model.points().iter().map(|point| point.size).eq(sizes.iter().copied());
            speeds.serves(effort) && speeds.models.models.iter().all(measured)
        };
        let key =
            format!("{name} {block} {}", Platform { network: Network::free(), ..platform.clone() }.to_toml());
        let path = if world.is_solo() { cache::path(platform, name, block) } else { None };
        let known = match &path {
            _ if remeasure => None,
            Some(path) => match cache::load(path, platform) {
                Remembered::Speeds(speeds) => Some(speeds).filter(same),
                _ => None,
            },
            None if world.is_solo() => None,
            None => recall_together(&key, effort, world)?,
        };
        let speeds = match known {
            Some(speeds) => speeds,
            None => {
                let speeds = measure()?;
                match &path {
                    Some(path) => cache::store(path, &speeds, platform),
                    None => drop(known_together().insert(key, speeds.clone())),
                }
                speeds
            }
        };
        QuickSpeeds { shares, ..speeds }.now()
    }

    /// The shortest and the longest time that a run of this forecast may take, if they are far apart.
    pub fn range(&self, forecast: f64) -> Option<[f64; 2]> {
        let TimeRange { low, high } = self.speeds.range();
        (high > (1.0 + OFF) * low).then_some([low * forecast, high * forecast])
    }

    /// Compares the run with the speeds that it was planned by. Speeds that were off are replaced, and a note
    /// says what other programs or a CPU quota took.
    pub(crate) fn check(mut self, report: &RunReport, platform: &Platform, context: Context<'_>) {
        self.warn(context);
        let Some(forecast) = report.plan.forecast.as_ref().filter(|_| report.adaptation.is_none()) else {
            return;
        };
        if report.tail.is_some() || report.closure == Some(ClosureMethod::Elimination) {
            return;
        }
        let (mut off, names, expected) = (Vec::new(), platform.names(), &self.speeds.shares);
        let (mut shares, mut spread) = (expected.clone(), self.speeds.spread.clone());
        for (rank, processor) in platform.processors.iter().enumerate() {
            let lane = &report.trace.lanes[rank];
            let (wall, cpu) = (lane.seconds(Activity::Compute), lane.cpu_seconds * processor.slowdown);
            let predicted = forecast.compute[rank] * report.products as f64 * expected[rank].mean;
            if processor.device.is_some()
                || processor.slowdown_after.is_some()
                || predicted < TELLING
                || !(cpu > 0.0 && wall > 0.0)
            {
                continue;
            }
            shares[rank] = CpuShare::of([cpu / wall]);
            let ratio = cpu / predicted;
            if (ratio - 1.0).abs() > OFF {
                off.push((rank, ratio));
            }
            spread[rank] = TimeRange { low: 1.0, high: 1.0 };
        }
        let surprise = shares.iter().zip(expected).any(|(got, hoped)| (got.mean - hoped.mean).abs() > OFF);
        if let Some(taken) = disturbance(&names, &shares).filter(|_| surprise) {
            context.note(format!("apportion: during the run {taken}"));
        }
        let Some(path) = self.path.take() else { return };
        if off.is_empty() && spread == self.speeds.spread {
            return;
        }
        let changed: Vec<String> = off.iter().map(|&(rank, ratio)| slower(&names[rank], ratio)).collect();
        let mut speeds = QuickSpeeds { spread, ..self.speeds };
        for (rank, ratio) in off {
            let Ok(corrected) = speeds.corrected(rank, ratio) else { return };
            speeds = corrected;
        }
        cache::store(&path, &speeds, platform);
        if !changed.is_empty() {
            context.note(format!(
                "apportion: {} than measured before: remembered for the next run (--remeasure measures again)",
                list(&changed)
            ));
        }
    }
}

/// Says what makes shares and forecasts uncertain, and what to do about it.
pub fn warn_of_uncertainty(speeds: &QuickSpeeds, remedy: &str, context: Context<'_>) {
    let names = speeds.models.names();
    if let Some(taken) = disturbance(&names, &speeds.shares) {
        context.note(format!(
            "apportion: warning: before the run {taken}: the shares and the forecast count with that"
        ));
    }
    let varied = names
        .iter()
        .zip(&speeds.spread)
        .filter(|(_, range)| range.high - range.low > OFF)
        .map(|(name, range)| format!("that of {name} by {:.0} %", 100.0 * (range.high / range.low - 1.0)))
        .collect::<Vec<_>>();
    if !varied.is_empty() {
        context.note(format!(
            "apportion: warning: the speeds varied while they were measured, {}: the shares and the forecast \
             are less certain ({remedy})",
            list(&varied)
        ));
    }
}

/// Why processors did not get all of their time: a CPU quota or other programs; `None` if they did.
fn disturbance(names: &[String], shares: &[CpuShare]) -> Option<String> {
    let disturbed = names.iter().zip(shares).filter(|(_, share)| !share.is_whole());
    let taken: Vec<String> =
        disturbed.map(|(name, share)| format!("{:.0} % of {name}", 100.0 * (1.0 - share.mean))).collect();
    if taken.is_empty() {
        return None;
    }
    let machine = discover();
    let programs = format!("other programs took {}", list(&taken));
    Some(match machine.scarce_cores() {
        Some(quota) if is_exhausted(quota, shares.iter().map(|share| share.mean)) => {
            machine.quota_text(quota)
        }
        Some(quota) => format!("{programs} ({})", machine.quota_text(quota)),
        None => programs,
    })
}

/// At most four items, and how many more there are.
fn list(items: &[String]) -> String {
    const MOST: usize = 4;
    let more = items.len().saturating_sub(MOST);
    let some = items[..items.len() - more].join(", ");
    if more == 0 { some } else { format!("{some} and {more} more") }
}

fn slower(name: &str, ratio: f64) -> String {
    let (percent, how) =
        if ratio > 1.0 { (100.0 * (ratio - 1.0), "slower") } else { (100.0 * (1.0 / ratio - 1.0), "faster") };
    format!("{name} was {percent:.0} % {how}")
}
