//! Times and medians.

use rustix::time::{ClockId, clock_gettime};

/// CPU seconds of this thread that `work` takes.
pub fn seconds(work: impl FnOnce()) -> f64 {
    by(ClockId::ThreadCPUTime, work)
}

/// CPU seconds of all threads of this process that `work` takes.
pub fn of_all_threads(work: impl FnOnce()) -> f64 {
    by(ClockId::ProcessCPUTime, work)
}

fn by(clock: ClockId, work: impl FnOnce()) -> f64 {
    let now = || {
        let time = clock_gettime(clock);
        time.tv_sec as f64 + 1e-9 * time.tv_nsec as f64
    };
    let start = now();
    work();
    now() - start
}
