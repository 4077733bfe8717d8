//! How much of the processors' time other programs leave to a run that is about to begin.

use crate::error::Result;
use crate::measure::processor_threads::{all_values, run_on_processors};
use crate::measure::repetition::{Sampler, StoppingRule};
use crate::model::median;
use crate::platform::{Platform, Processor, discover};
use crate::run::Monitor;
use crate::run::clock::{thread_cpu_seconds, usable_threads};
use crate::run::mailboxes::StopSignal;
use crate::run::throttle::Throttle;
use std::hint::spin_loop;
use std::time::Instant;

/// CPU seconds of a piece of idle work.
const PIECE: f64 = 0.000_5;
/// Seconds after which a machine on which nothing was missed counts as quiet: longer than a time slice.
const GLANCE: f64 = 0.012;
/// Parts of a longer look.
const PARTS: usize = 4;
/// A processor that gets nothing would never end.
const LEAST: f64 = 1e-3;
/// A part below this fraction of the median is no observation of other programs: the process was stopped, or
/// the machine slept.
const STOPPED: f64 = 0.1;
/// Fraction of its CPU quota that a group must use for the quota to be what limits it.
const EXHAUSTED: f64 = 0.9;
/// Fraction of a processor's time that it must get to count as undisturbed.
pub const UNDISTURBED: f64 = 0.95;

/// What other programs leave of a processor's time, as a fraction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CpuShare {
    /// On average.
    pub mean: f64,
    /// In the worst part of the observation.
    pub least: f64,
    /// In the best part.
    pub most: f64,
}

impl CpuShare {
    /// All of the time.
    pub(crate) const WHOLE: Self = Self { mean: 1.0, least: 1.0, most: 1.0 };

    /// The summary of equal parts of an observation; all of the time if there are none. Parts during which
    /// the process was stopped are left out.
    pub(crate) fn of(parts: impl IntoIterator<Item = f64>) -> Self {
        let mut parts: Vec<f64> = parts.into_iter().map(|share| share.clamp(LEAST, 1.0)).collect();
        if parts.is_empty() {
            return Self::WHOLE;
        }
        let usual = median(&parts);
        parts.retain(|share| *share >= STOPPED * usual);
        let mean = parts.iter().sum::<f64>() / parts.len() as f64;
        let least = parts.iter().copied().fold(1.0, f64::min);
        Self { mean, least, most: parts.iter().copied().fold(0.0, f64::max) }
    }

    /// Whether others take so little that it is not worth a word.
    pub(crate) fn is_whole(&self) -> bool {
        self.mean >= UNDISTURBED
    }
}

/// True if some program other than this one is running or waits for a core at this moment, or if the system does
/// not say. Takes microseconds, where [`measure_availability`] takes milliseconds; it misses programs that sleep just now.
pub(crate) fn others_are_running() -> bool {
    // "0.00 0.01 0.05 1/123 4567": the tasks that can run, of all; this one runs.
    let runnable = |text: String| text.split_whitespace().nth(3)?.split('/').next()?.parse::<u64>().ok();
    std::fs::read_to_string("/proc/loadavg").ok().and_then(runnable).is_none_or(|tasks| tasks > 1)
}

/// What each processor gets while all compute: all of its time where nothing else runs, about half beside
/// another program on the same core. By rank.
///
/// Takes 12 ms where all get at least [`UNDISTURBED`], and `seconds` otherwise: a shorter look at a neighbour
/// is a matter of luck. Only processors' CPU time is looked at; memory and caches are not. Together the
/// processors get no more than the CPU quota of the control groups, which a short look may not have used up.
///
/// # Errors
/// The system refuses a thread; interrupted.
pub fn measure_availability(platform: &Platform, seconds: f64, monitor: &Monitor) -> Result<Vec<CpuShare>> {
    let mut shares = observe(platform, GLANCE.min(seconds), 1, monitor)?;
    if seconds > GLANCE && !shares.iter().all(CpuShare::is_whole) {
        shares = observe(platform, seconds, PARTS, monitor)?;
    }
    let cores = |p: &Processor| threads_of(p) as f64 / p.slowdown;
    let used = shares.iter().zip(&platform.processors).map(|(share, p)| share.mean * cores(p)).sum();
    Ok(match discover().scarce_cores() {
        Some(quota) => within_quota(shares, used, quota),
        None => shares,
    })
}

/// The shares of processors that together use `used` CPU seconds per second, of which `quota` are allowed.
fn within_quota(shares: Vec<CpuShare>, used: f64, quota: f64) -> Vec<CpuShare> {
    if used <= quota {
        return shares;
    }
    let less = |share: f64| (share * quota / used).max(LEAST);
    let limited = |s: CpuShare| CpuShare { mean: less(s.mean), least: less(s.least), most: less(s.most) };
    shares.into_iter().map(limited).collect()
}

/// Whether a CPU quota of so many cores is what limits processors with these mean shares of a core's time:
/// together they use it up.
pub fn is_exhausted(quota: f64, shares: impl IntoIterator<Item = f64>) -> bool {
    shares.into_iter().sum::<f64>() >= EXHAUSTED * quota
}

/// Number of threads of a processor.
fn threads_of(processor: &Processor) -> usize {
    usable_threads(&processor.cores)
}

/// The mean of the shares of threads.
fn mean_share(shares: &[CpuShare]) -> CpuShare {
    let mean = |of: fn(&CpuShare) -> f64| shares.iter().map(of).sum::<f64>() / shares.len() as f64;
    CpuShare {
        mean: mean(|share| share.mean),
        least: mean(|share| share.least),
        most: mean(|share| share.most),
    }
}

/// What each processor gets, with as many threads as it has cores.
fn observe(platform: &Platform, seconds: f64, parts: usize, monitor: &Monitor) -> Result<Vec<CpuShare>> {
    let each = |p: &Processor| std::iter::repeat_n(p.clone(), threads_of(p));
    let threads =
        Platform { processors: platform.processors.iter().flat_map(each).collect(), ..platform.clone() };
    let mut of_threads = &observe_threads(&threads, seconds, parts, monitor)?[..];
    let mut next = |processor: &Processor| {
        let (own, others) = of_threads.split_at(threads_of(processor));
        of_threads = others;
        mean_share(own)
    };
    Ok(platform.processors.iter().map(&mut next).collect())
}

/// What single threads get, each pinned to all cores of its processor.
fn observe_threads(
    platform: &Platform,
    seconds: f64,
    parts: usize,
    monitor: &Monitor,
) -> Result<Vec<CpuShare>> {
    let halt = StopSignal::new(monitor);
    // A device has nothing of its host's cores to share.
    let on_cores: Vec<u64> = platform.processors.iter().map(|p| u64::from(p.device.is_none())).collect();
    let outcomes = run_on_processors(platform, &on_cores, &halt, None, |_, processor| {
        let mut throttle = Throttle::new(processor.slowdown);
        let part = || {
            let (begin, mut cpu) = (Instant::now(), 0.0);
            loop {
                cpu += throttle.compute(&halt, None, piece)?;
                let elapsed = begin.elapsed().as_secs_f64();
                if elapsed >= seconds / parts as f64 {
                    return Ok(cpu * processor.slowdown / elapsed);
                }
            }
        };
        Sampler::new(StoppingRule::times(parts)).run(|_| false, part).map(CpuShare::of)
    });
    all_values(outcomes, CpuShare::WHOLE)
}

/// Uses half a millisecond of CPU time.
fn piece() -> f64 {
    let begin = thread_cpu_seconds();
    while thread_cpu_seconds() - begin < PIECE {
        spin_loop();
    }
    0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_the_mean_of_its_parts() {
        let share = CpuShare::of([0.5, 0.7]);
        assert_eq!((share.mean, share.least, share.most), (0.6, 0.5, 0.7));
        assert_eq!(CpuShare::of([1.3, 1.0]), CpuShare::WHOLE);
        assert_eq!(CpuShare::of([]), CpuShare::WHOLE);
        assert!(CpuShare::of([0.0]).mean > 0.0);
    }

    /// A pool gets what its threads get, and uses up a quota with all of them.
    #[test]
    fn a_pool_is_looked_at_with_all_of_its_threads() {
        let share = |mean: f64| CpuShare { mean, least: mean / 2.0, most: 1.0 };
        let CpuShare { mean, least, most } = mean_share(&[share(1.0), share(0.5)]);
        assert_eq!((mean, least, most), (0.75, 0.375, 1.0));
        let mut platform = Platform::from_speeds(&[1.0, 1.0]).unwrap();
        platform.processors[0].cores = vec![0, 0, 0];
        let shares = measure_availability(&platform, 0.02, &Monitor::new()).unwrap();
        assert_eq!(shares.len(), 2);
        // Three threads on one core.
        assert!(cfg!(not(target_os = "linux")) || shares[0].mean < 0.7, "{shares:?}");
    }

    /// A stop of 20 s says nothing about the time that other programs take.
    #[test]
    fn a_part_in_which_the_process_was_stopped_does_not_count() {
        assert_eq!(CpuShare::of([1.0, 0.007, 1.0, 1.0]), CpuShare::WHOLE);
        let busy = CpuShare::of([0.5, 0.02, 0.25]);
        assert_eq!((busy.mean, busy.least, busy.most), (0.375, 0.25, 0.5));
    }

    #[test]
    fn a_quota_limits_all_processors_together() {
        let half = CpuShare { mean: 0.5, least: 0.4, most: 0.6 };
        assert_eq!(within_quota(vec![CpuShare::WHOLE, half], 1.5, 1.5), [CpuShare::WHOLE, half]);
        let shares = within_quota(vec![CpuShare::WHOLE; 2], 2.0, 1.2);
        assert!(shares.iter().all(|share| (share.mean - 0.6).abs() < 1e-12 && share.most == share.least));
        assert!(is_exhausted(1.2, [0.58, 0.59]) && !is_exhausted(1.2, [0.3, 0.3]));
    }

    /// Three on one core at most: none can have it alone. A slowed one needs a third of the time, and has it.
    #[test]
    fn processors_on_one_core_share_it() {
        let mut platform = Platform::from_speeds(&[1.0, 1.0, 1.0]).unwrap();
        // The first core that this process may use, which need not be number 0.
        let core = discover().cores[0].cpu;
        for processor in &mut platform.processors {
            processor.cores = vec![core];
        }
        let shares = measure_availability(&platform, 0.3, &Monitor::new()).unwrap();
        assert!(shares.iter().map(|share| share.mean).sum::<f64>() <= 1.2, "{shares:?}");
        assert!(shares.iter().all(|s| !s.is_whole() && s.least <= s.mean && s.mean <= s.most), "{shares:?}");
        let monitor = Monitor::new();
        monitor.stop();
        assert!(measure_availability(&platform, 0.3, &monitor).is_err());
    }
}
