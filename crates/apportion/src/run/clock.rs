//! CPU time of a thread, its cores, and the latency of its wake-ups.

use crate::platform::{Processor, discover, list_cpus};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::OnceLock;

thread_local! {
    /// What the worker's clock is ahead of the thread's.
    static AHEAD: Cell<f64> = const { Cell::new(0.0) };
}

/// CPU seconds of the calling thread as a worker: while a team computes, those of its mean thread.
pub(crate) fn worker_cpu_seconds() -> f64 {
    thread_cpu_seconds() + AHEAD.get()
}

/// Sets the calling worker's clock forward, or back.
pub(crate) fn add_worker_cpu_seconds(seconds: f64) {
    AHEAD.set(AHEAD.get() + seconds);
}

/// CPU seconds that the calling thread has used. Waiting, sleeping and being preempted do not count.
#[cfg(unix)]
pub(crate) fn thread_cpu_seconds() -> f64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
}

/// Without a per-thread clock, wall-clock time is used.
#[cfg(not(unix))]
pub(crate) fn thread_cpu_seconds() -> f64 {
    use std::sync::OnceLock;
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_secs_f64()
}

/// Pins the calling thread, and the threads that it starts, to `cores`; an empty list means not pinned.
///
/// Cores that do not exist on this machine are ignored: an emulated platform may name more than there are.
#[cfg(target_os = "linux")]
pub(crate) fn pin(cores: &[usize]) {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let mut wanted = CpuSet::new();
    for &core in cores.iter().filter(|&&c| c < CpuSet::MAX_CPU && allowed.is_set(c)) {
        wanted.set(core);
    }
    if wanted.count() > 0 {
        // Without pinning the run is only slower.
        let _ = sched_setaffinity(None, &wanted);
    }
}

/// Pins the calling thread to `cores` as [`pin`] does, until this is dropped: the thread of a program that calls the
/// library gets its cores back.
#[cfg(target_os = "linux")]
pub(crate) struct Pinned(Option<rustix::thread::CpuSet>);

#[cfg(target_os = "linux")]
impl Pinned {
    pub(crate) fn to(cores: &[usize]) -> Self {
        let before = rustix::thread::sched_getaffinity(None).ok();
        pin(cores);
        Self(before)
    }
}

#[cfg(target_os = "linux")]
impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // The thread may keep fewer cores than it had, which is only slower.
            let _ = rustix::thread::sched_setaffinity(None, before);
        }
    }
}

/// The cores of a processor of this machine that the calling thread cannot be pinned to, in words; `None` if it can be
/// pinned to all.
pub(crate) fn absent_cores_of(processor: &Processor) -> Option<String> {
    let (cores, absent) = (&processor.cores, absent_cores(processor.cores_here()));
    let list = |cores: &[usize]| match cores.len() {
        ..=8 => format!("{cores:?}"),
        _ => format!("[{}]", list_cpus(cores)),
    };
    (!absent.is_empty()).then(|| format!("cores = {}: {} cannot be used here", list(cores), list(&absent)))
}

/// The cores among `cores` that the calling thread cannot be pinned to: they do not exist here, or this
/// process may not use them. Empty where nothing is pinned.
#[cfg(target_os = "linux")]
pub(crate) fn absent_cores(cores: &[usize]) -> Vec<usize> {
    use rustix::thread::{CpuSet, sched_getaffinity};
    let Ok(allowed) = sched_getaffinity(None) else { return Vec::new() };
    cores.iter().copied().filter(|&core| core >= CpuSet::MAX_CPU || !allowed.is_set(core)).collect()
}

/// Number of threads of a processor on these cores: one for each that this process may use; where it may use none of
/// them, at most one for each that it may.
pub(crate) fn usable_threads(cores: &[usize]) -> usize {
    // What the process may use, not a thread of it that is pinned: found before any is.
    static ALLOWED: OnceLock<BTreeSet<usize>> = OnceLock::new();
    match cores.len() {
        0 | 1 => 1,
        count => {
            let allowed = ALLOWED.get_or_init(|| discover().cores.iter().map(|core| core.cpu).collect());
            match cores.iter().filter(|core| allowed.contains(core)).count() {
                0 => count.min(allowed.len().max(1)),
                usable => usable,
            }
        }
    }
}

/// Pinning is supported on Linux only.
#[cfg(not(target_os = "linux"))]
pub(crate) fn absent_cores(_cores: &[usize]) -> Vec<usize> {
    Vec::new()
}

/// Pinning is supported on Linux only.
#[cfg(not(target_os = "linux"))]
pub(crate) struct Pinned;

#[cfg(not(target_os = "linux"))]
impl Pinned {
    pub(crate) fn to(_cores: &[usize]) -> Self {
        Self
    }
}

/// Pinning is supported on Linux only; elsewhere the system places threads.
#[cfg(not(target_os = "linux"))]
pub(crate) fn pin(_cores: &[usize]) {}

/// Makes the calling thread's sleeps end on time: by default, Linux adds up to 50 us to each.
#[cfg(target_os = "linux")]
pub(crate) fn wake_promptly() {
    // Failure costs only those microseconds.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

/// Only Linux delays wake-ups by default.
#[cfg(not(target_os = "linux"))]
pub(crate) fn wake_promptly() {}

#[cfg(test)]
mod tests {
    use super::*;

    /// A platform file may name cores that no machine has.
    #[test]
    fn no_thread_is_for_a_core_that_is_not_there() {
        let allowed: Vec<usize> = discover().cores.iter().map(|core| core.cpu).collect();
        assert_eq!(usable_threads(&(0..30_000).collect::<Vec<_>>()), allowed.len());
        assert_eq!(usable_threads(&allowed), allowed.len());
        assert_eq!(usable_threads(&[allowed[0], 29_998, 29_999]), 1);
        // Unpinned.
        assert_eq!(usable_threads(&(20_000..30_000).collect::<Vec<_>>()), allowed.len());
        assert_eq!([usable_threads(&[]), usable_threads(&[29_999])], [1, 1]);
    }
}
