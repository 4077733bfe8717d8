//! Emulates a slower processor: computing takes `slowdown` times the thread's own CPU time.
//!
//! The thread works at full speed and then sleeps until the work has taken slowdown x CPU time of the day's
//! time. Because CPU time does not run while a thread is preempted, a thread that shares its core still meets its
//! target, as long as the sum of 1 / slowdown over the threads stays below the cores: each needs its core for
//! 1 / slowdown of the time only, and what it lost to others it sleeps less. Oversleeping is made up for at the
//! next piece of work in the same way.

use super::clock::thread_cpu_seconds;
use super::post::Halt;
use crate::error::Result;
use std::time::{Duration, Instant};

/// Most seconds that a late thread may make up for: more would let it run unslowed for a while.
const LARGEST_DEBT: f64 = 0.25;

/// Slows one thread's computing.
#[derive(Debug)]
pub(super) struct Governor {
    slowdown: f64,
    /// Seconds by which the thread is late (positive) against its target so far.
    late: f64,
}

impl Governor {
    /// `slowdown` is at least 1; 1 never sleeps.
    pub fn new(slowdown: f64) -> Self {
        Self { slowdown, late: 0.0 }
    }

    /// Does the work, which returns CPU seconds spent by threads other than this one at its side (0 if none):
    /// the longest of them counts. Then sleeps as long as it takes.
    pub fn compute(&mut self, halt: &Halt<'_>, work: impl FnOnce() -> f64) -> Result<()> {
        if self.slowdown <= 1.0 {
            work();
            return Ok(());
        }
        let (start, cpu) = (Instant::now(), thread_cpu_seconds());
        let others = work();
        let cpu = (thread_cpu_seconds() - cpu).max(others);
        let target = self.slowdown * cpu;
        halt.sleep_until(start, target - self.late)?;
        self.late = (self.late + start.elapsed().as_secs_f64() - target).clamp(0.0, LARGEST_DEBT);
        Ok(())
    }
}

impl Halt<'_> {
    /// Sleeps until `seconds` after `start`, waking up to see whether the run was stopped.
    pub fn sleep_until(&self, start: Instant, seconds: f64) -> Result<()> {
        loop {
            self.check()?;
            let left = seconds - start.elapsed().as_secs_f64();
            if left <= 0.0 {
                return Ok(());
            }
            std::thread::sleep(Duration::from_secs_f64(left.min(0.05)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::monitor::Monitor;
    use super::*;
    use std::sync::Barrier;

    fn spin(cpu_seconds: f64) -> f64 {
        let start = thread_cpu_seconds();
        while thread_cpu_seconds() - start < cpu_seconds {
            std::hint::black_box((0..1000).sum::<u64>());
        }
        0.0
    }

    /// Four workers on one core, slowed so that the core could be busy 90 % of the time: each must take slowdown x
    /// its CPU time within 2 %.
    #[test]
    fn holds_with_more_workers_than_cores() {
        let slowdowns = [4.0, 4.0, 5.0, 5.0];
        let barrier = Barrier::new(slowdowns.len());
        let monitor = Monitor::new();
        let halt = Halt::new(&monitor);
        let errors: Vec<f64> = std::thread::scope(|scope| {
            let threads: Vec<_> = slowdowns
                .iter()
                .map(|&slowdown| {
                    let (barrier, halt) = (&barrier, &halt);
                    scope.spawn(move || {
                        super::super::clock::pin(&[0]);
                        barrier.wait();
                        let (start, cpu) = (Instant::now(), thread_cpu_seconds());
                        let mut governor = Governor::new(slowdown);
                        for _ in 0..40 {
                            governor.compute(halt, || spin(0.003)).unwrap();
                        }
                        let (wall, cpu) = (start.elapsed().as_secs_f64(), thread_cpu_seconds() - cpu);
                        (wall / (slowdown * cpu) - 1.0).abs()
                    })
                })
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        // The median: another user of this machine may take the core away from one of them.
        let mut sorted = errors.clone();
        sorted.sort_by(f64::total_cmp);
        assert!(sorted[1] < 0.02, "{errors:?}");
    }

    #[test]
    fn a_stopped_run_does_not_sleep_on() {
        let monitor = Monitor::new();
        monitor.stop();
        let halt = Halt::new(&monitor);
        assert!(halt.sleep_until(Instant::now(), 1e6).is_err());
    }
}
