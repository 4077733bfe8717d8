//! This thread's CPU time, which does not advance while other threads have the core, and medians.

/// Seconds of work on this thread.
pub fn seconds(work: impl FnOnce()) -> f64 {
    let start = now();
    work();
    now() - start
}

#[cfg(unix)]
fn now() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + 1e-9 * time.tv_nsec as f64
}

#[cfg(not(unix))]
fn now() -> f64 {
    use std::{sync::OnceLock, time::Instant};
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_secs_f64()
}

/// The middle one.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Whether a ratio reaches its target.
pub fn verdict(ratio: f64, target: f64) -> &'static str {
    if ratio >= target { "reached" } else { "MISSED" }
}
