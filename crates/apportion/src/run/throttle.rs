//! Emulates another processor: computing takes `slowdown` times the thread's own CPU time, or as long as is said.
//!
//! The thread works at full speed and then sleeps until the work has taken slowdown x CPU time (or the time that was
//! said) of the day's time. Because CPU time does not run while a thread is preempted, a thread that shares its core still meets its
//! target, as long as the sum of 1 / slowdown over the threads stays below the cores: each needs its core for
//! 1 / slowdown of the time only, and what it lost to others it sleeps less. Oversleeping is made up for at the
//! next piece of work in the same way.

use crate::error::Result;
use crate::run::clock::thread_cpu_seconds;
use crate::run::mailboxes::StopSignal;
use std::time::{Duration, Instant};

/// Most seconds that a late thread may make up for: more would let it run unslowed for a while.
const LARGEST_DEBT: f64 = 0.25;

/// Slows one thread's computing.
#[derive(Debug)]
pub(crate) struct Throttle {
    pace: Debt,
}

impl Throttle {
    /// `slowdown` is at least 1; 1 never sleeps.
    pub fn new(slowdown: f64) -> Self {
        Self { pace: Debt { slowdown, late: 0.0 } }
    }

    /// From now on this many times slower than the CPU.
    pub fn turn(&mut self, slowdown: f64) {
        self.pace.slowdown = slowdown;
    }

    /// Does the work, which returns CPU seconds spent by threads at this one's side (0 if none): the longest of
    /// them counts. Then sleeps as long as it takes. Returns the CPU seconds.
    pub fn compute(&mut self, halt: &StopSignal<'_>, work: impl FnOnce() -> f64) -> Result<f64> {
        self.pass(halt, None, work)
    }

    /// Does work that takes an emulated processor so many seconds before its slowdown; as [`Self::compute`] otherwise.
    pub fn emulate(
        &mut self,
        halt: &StopSignal<'_>,
        seconds: f64,
        work: impl FnOnce() -> f64,
    ) -> Result<f64> {
        self.pass(halt, Some(seconds), work)
    }

    fn pass(
        &mut self,
        halt: &StopSignal<'_>,
        seconds: Option<f64>,
        work: impl FnOnce() -> f64,
    ) -> Result<f64> {
        let (start, cpu) = (Instant::now(), thread_cpu_seconds());
        let others = work();
        let cpu = (thread_cpu_seconds() - cpu).max(others);
        let seconds = match seconds {
            Some(seconds) => seconds,
            None if self.pace.slowdown <= 1.0 => return Ok(cpu),
            None => cpu,
        };
        halt.sleep_until(start, self.pace.target(seconds))?;
        self.pace.took(seconds, start.elapsed().as_secs_f64());
        Ok(cpu)
    }
}

/// The arithmetic of slowing, without a clock.
#[derive(Debug)]
struct Debt {
    slowdown: f64,
    /// Seconds by which the thread is behind its target so far; never negative.
    late: f64,
}

impl Debt {
    /// Seconds that a piece of work of so many unslowed seconds should take in all, less what is to be made up for.
    fn target(&self, seconds: f64) -> f64 {
        self.slowdown * seconds - self.late
    }

    /// It took `wall` seconds, sleep included.
    fn took(&mut self, seconds: f64, wall: f64) {
        self.late = (wall - self.target(seconds)).clamp(0.0, LARGEST_DEBT);
    }
}

impl StopSignal<'_> {
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
    /// Pieces of 3 ms of CPU time on a core that gives this thread only every other slice of 5 ms, and a sleep that
    /// always lasts 0.1 ms too long: in the long run all takes slowdown x CPU time.
    #[test]
    fn preemption_and_oversleeping_are_made_up_for() {
        for slowdown in [4.0, 9.0, 25.0] {
            let mut pace = Debt { slowdown, late: 0.0 };
            let (cpu, mut wall) = (0.003_f64, 0.0);
            for i in 0..1000 {
                let preempted = if i % 2 == 0 { 0.005 } else { 0.0 };
                let took = (cpu + preempted).max(pace.target(cpu) + 0.0001);
                pace.took(cpu, took);
                wall += took;
            }
            let error = wall / (slowdown * cpu * 1000.0) - 1.0;
            assert!(error.abs() < 1e-3, "{slowdown}: {error}");
        }
    }

    /// A core that is taken away for long cannot be made up for without running unslowed: the debt is bounded.
    #[test]
    fn debt_is_bounded() {
        let mut pace = Debt { slowdown: 2.0, late: 0.0 };
        pace.took(0.01, 60.0);
        assert_eq!(pace.late, LARGEST_DEBT);
    }

    /// The day's time that emulated work takes is what was said, whatever CPU time it needs below that.
    #[test]
    fn emulated_work_takes_no_less_than_was_said() {
        let monitor = Monitor::new();
        let (halt, mut governor) = (StopSignal::new(&monitor), Throttle::new(1.0));
        let start = Instant::now();
        for _ in 0..4 {
            governor.emulate(&halt, 0.005, || 0.0).unwrap();
        }
        assert!(start.elapsed().as_secs_f64() >= 0.02);
        governor.turn(3.0);
        let start = Instant::now();
        governor.emulate(&halt, 0.3, || 0.0).unwrap();
        assert!(start.elapsed().as_secs_f64() >= 0.9 - LARGEST_DEBT);
    }

    #[test]
    fn a_stopped_run_does_not_sleep_on() {
        let monitor = Monitor::new();
        monitor.stop();
        let halt = StopSignal::new(&monitor);
        assert!(halt.sleep_until(Instant::now(), 1e6).is_err());
    }
}
