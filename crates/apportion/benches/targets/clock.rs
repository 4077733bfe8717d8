//! Times and medians.

use rustix::time::{ClockId, clock_gettime};

/// CPU seconds of this thread that `work` takes.
pub fn seconds(work: impl FnOnce()) -> f64 {
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 + 1e-9 * time.tv_nsec as f64
    };
    let start = now();
    work();
    now() - start
}

/// The middle of an odd number of figures.
pub fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
