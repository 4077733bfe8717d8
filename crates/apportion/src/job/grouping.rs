//! Whether this machine's cores are pools, as by default, or a processor each.
//!
//! The threads of a pool work on the same block and wait for each other after each stage: another program on one of
//! the cores delays all. Processors of one core each get shares by their speeds, and wait only at the end.

use super::Context;
use crate::error::Result;
use crate::matrix::Element;
use crate::measure::{
    CpuShare, KernelUpdate, MeasureOptions, UNDISTURBED, measure_availability, measure_speeds,
    others_are_running,
};
use crate::platform::{Grouping, Platform, discover};

/// Multiply-adds for each core of a job that is worth the choice: about half a second, of which the choice takes at
/// most a third. Without other programs it takes microseconds.
const WORTHWHILE: f64 = 5e9;
/// The longest look at what other programs leave, in seconds.
const LOOK: f64 = 0.06;
/// Seconds of measuring, of the pools and of the cores.
const SECONDS: f64 = 0.06;
/// Elements of C of the measured update.
const SIZE: f64 = 524_288.0;
/// How many times as fast the cores have to be for each to be a processor: a product among more processors moves more.
const WORTH_A_CHANGE: f64 = 1.05;

/// The processors of a job for which none are named: those given, which are pools, or a processor for each core where
/// other programs make that faster. A note says which was taken, and why, if there was a choice.
///
/// # Errors
/// Those of the measurements; interrupted.
pub(super) fn choose_grouping<T: Element>(
    pools: Platform,
    update: &KernelUpdate<T>,
    multiply_adds: f64,
    context: Context<'_>,
) -> Result<Platform> {
    let cores = discover().platform(Grouping::Core);
    let is_short = multiply_adds < WORTHWHILE * cores.len() as f64;
    if is_short || cores.len() == pools.len() || !others_are_running() {
        return Ok(pools);
    }
    let left = measure_availability(&cores, LOOK, context.monitor)?;
    let Some(taken) = uneven_load(&cores.names(), &left) else { return Ok(pools) };
    let speed = |platform: &Platform| -> Result<f64> {
        let options = MeasureOptions::for_seconds(SECONDS);
        let models = measure_speeds(update, platform, &[SIZE], options, context.monitor)?;
        Ok(models.models.iter().map(|model| model.speed(SIZE)).sum())
    };
    let times_as_fast = speed(&cores)? / speed(&pools)?;
    let is_divided = is_faster_divided(times_as_fast);
    let choice =
        if is_divided { "each core is a processor" } else { "the cores stay one pool for each kind" };
    context.note(format!(
        "apportion: {taken}: {choice} (the cores are {times_as_fast:.2} times as fast one by one as together)"
    ));
    Ok(if is_divided { cores } else { pools })
}

/// Whether cores that are this many times as fast one by one as in pools are to be a processor each.
fn is_faster_divided(times_as_fast: f64) -> bool {
    times_as_fast > WORTH_A_CHANGE
}

/// What other programs take of the core that has the least left; `None` if they take nothing, or as much of all.
fn uneven_load(names: &[String], left: &[CpuShare]) -> Option<String> {
    let (name, least) = names.iter().zip(left).min_by(|a, b| a.1.mean.total_cmp(&b.1.mean))?;
    let most = left.iter().map(|share| share.mean).fold(0.0, f64::max);
    (least.mean < UNDISTURBED * most)
        .then(|| format!("other programs take {:.0} % of {name}", 100.0 * (1.0 - least.mean)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(left: &[f64]) -> Option<String> {
        let names: Vec<String> = (0..left.len()).map(|i| format!("core{i}")).collect();
        let left: Vec<CpuShare> = left.iter().map(|mean| CpuShare::of([*mean])).collect();
        uneven_load(&names, &left)
    }

    /// A quota, or a program on every core, takes as much of all: cores one by one gain nothing.
    #[test]
    fn only_uneven_load_opens_the_choice() {
        assert_eq!(load(&[1.0, 0.97]), None);
        assert_eq!(load(&[0.5, 0.5, 0.49]), None);
        assert_eq!(load(&[1.0, 0.24]).unwrap(), "other programs take 76 % of core1");
        assert_eq!(load(&[]), None);
    }

    /// As measured beside one neighbour: the pool took 1.02 s, two processors with 80.8 and 19.2 % took 0.865 s.
    #[test]
    fn cores_are_processors_where_that_is_faster() {
        assert!(is_faster_divided(1.02 / 0.865));
        assert!(!is_faster_divided(1.0) && !is_faster_divided(0.98) && !is_faster_divided(1.04));
    }
}
