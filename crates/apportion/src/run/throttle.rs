//! Emulation of another processor: computing takes `slowdown` times the thread's own CPU time, or a given
//! time.
//!
//! The thread works at full speed and then sleeps until the elapsed wall-clock time is slowdown x CPU time
//! (or the given time). CPU time does not advance while a thread is preempted. A thread that shares its core
//! therefore still meets its target, as long as the sum of 1 / slowdown over the threads stays below the
//! number of cores: each thread needs its core only for 1 / slowdown of the time, and it sleeps less by the
//! time that it lost to others. Oversleeping is made up for in the same way at the next piece of work.

use crate::error::Result;
use crate::platform::{Emulated, Processor, SlowdownAfter};
use crate::run::clock::worker_cpu_seconds;
use crate::run::mailboxes::StopSignal;
use std::time::{Duration, Instant};

/// Maximum debt of a late thread in seconds; a larger one would let the thread run unslowed for a while.
const LARGEST_DEBT: f64 = 0.25;

/// Slows one processor's computing for the duration of a job.
#[derive(Debug)]
pub(crate) struct Throttle {
    debt: Debt,
    turn: Option<SlowdownAfter>,
    /// The processor's speed function, if it is given.
    emulated: Option<Emulated>,
}

impl Throttle {
    /// Creates a throttle; `slowdown` is at least 1; 1 never sleeps.
    pub(crate) fn new(slowdown: f64) -> Self {
        Self { debt: Debt { slowdown, late: 0.0 }, turn: None, emulated: None }
    }

    /// Creates the throttle of a platform's processor.
    pub(crate) fn of(processor: &Processor) -> Self {
        let (turn, emulated) = (processor.slowdown_after, processor.emulated.clone());
        Self { turn, emulated, ..Self::new(processor.slowdown) }
    }

    /// Reports the fraction of the job that is done: a processor that slows down after that fraction does so
    /// now.
    pub(crate) fn reached(&mut self, fraction: f64) {
        if let Some(turn) = self.turn.take_if(|turn| fraction >= turn.work) {
            self.debt.slowdown = turn.slowdown;
        }
    }

    /// Current slowdown of the processor.
    #[cfg(test)]
    pub(crate) fn slowdown(&self) -> f64 {
        self.debt.slowdown
    }

    /// Seconds that this much work should take, before slowdown, for a share of this size; `None` if the
    /// processor's own time counts.
    pub(crate) fn given_seconds(&self, share: f64, work: f64) -> Option<f64> {
        self.emulated.as_ref().map(|function| work / function.speed(share))
    }

    /// Does the work, which returns the CPU seconds of threads that it started (0 if none): the longest one
    /// counts. Then sleeps until slowdown x the CPU time, or slowdown x the given seconds, has passed.
    /// Returns the CPU seconds.
    pub(crate) fn compute(
        &mut self,
        stop: &StopSignal<'_>,
        seconds: Option<f64>,
        work: impl FnOnce() -> f64,
    ) -> Result<f64> {
        self.try_compute(stop, seconds, || Ok(work()))
    }

    /// The same for work that may fail.
    pub(crate) fn try_compute(
        &mut self,
        stop: &StopSignal<'_>,
        seconds: Option<f64>,
        work: impl FnOnce() -> Result<f64>,
    ) -> Result<f64> {
        let mut work = Some(work);
        self.paced(stop, seconds, &mut || work.take().map_or(Ok(0.0), |work| work()))
    }

    /// Compiled once for all kinds of work.
    fn paced(
        &mut self,
        stop: &StopSignal<'_>,
        seconds: Option<f64>,
        work: &mut dyn FnMut() -> Result<f64>,
    ) -> Result<f64> {
        let (start, cpu) = (Instant::now(), worker_cpu_seconds());
        let others = work()?;
        let cpu = (worker_cpu_seconds() - cpu).max(others);
        let seconds = match seconds {
            Some(seconds) => seconds,
            None if self.debt.slowdown <= 1.0 => return Ok(cpu),
            None => cpu,
        };
        stop.sleep_until(start, self.debt.target(seconds))?;
        self.debt.took(seconds, start.elapsed().as_secs_f64());
        Ok(cpu)
    }
}

/// The arithmetic of slowing down, without a clock.
#[derive(Debug)]
struct Debt {
    slowdown: f64,
    /// Seconds that the thread is behind its target; never negative.
    late: f64,
}

impl Debt {
    /// Target duration of a piece of work of `seconds` unslowed seconds, less the debt that can be made up
    /// for.
    fn target(&self, seconds: f64) -> f64 {
        self.slowdown * seconds - self.late
    }

    /// Records that the work took `wall` seconds, sleep included.
    fn took(&mut self, seconds: f64, wall: f64) {
        self.late = (wall - self.target(seconds)).clamp(0.0, LARGEST_DEBT);
    }
}

impl StopSignal<'_> {
    /// Sleeps until `seconds` after `start`, and wakes up at intervals to check for a stop.
    pub(crate) fn sleep_until(&self, start: Instant, seconds: f64) -> Result<()> {
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
    use super::super::session::Monitor;
    use super::*;
    /// Pieces of 3 ms of CPU time on a core that gives this thread only every other slice of 5 ms, with a
    /// sleep that always lasts 0.1 ms too long: in the long run everything takes slowdown x CPU time.
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

    /// A long preemption cannot be made up for without running unslowed: the debt is bounded.
    #[test]
    fn debt_is_bounded() {
        let mut pace = Debt { slowdown: 2.0, late: 0.0 };
        pace.took(0.01, 60.0);
        assert_eq!(pace.late, LARGEST_DEBT);
    }

    /// Emulated work takes the given wall-clock time, whatever smaller CPU time it needs.
    #[test]
    fn emulated_work_takes_no_less_than_was_given() {
        let monitor = Monitor::new();
        let (stop, mut throttle) = (StopSignal::new(&monitor), Throttle::new(1.0));
        throttle.turn = Some(SlowdownAfter { work: 0.5, slowdown: 3.0 });
        let start = Instant::now();
        for _ in 0..4 {
            throttle.reached(0.49);
            throttle.compute(&stop, Some(0.005), || 0.0).unwrap();
        }
        assert!(start.elapsed().as_secs_f64() >= 0.02);
        throttle.reached(0.5);
        let start = Instant::now();
        throttle.compute(&stop, Some(0.3), || 0.0).unwrap();
        assert!(start.elapsed().as_secs_f64() >= 0.9 - LARGEST_DEBT);
    }

    /// A processor slows down once in a job: the fraction that was reached never decreases.
    #[test]
    fn a_turn_happens_once() {
        let mut throttle = Throttle::new(1.0);
        throttle.turn = Some(SlowdownAfter { work: 0.5, slowdown: 9.0 });
        let slowdowns = [0.2, 0.5, 0.1, 1.0].map(|fraction| {
            throttle.reached(fraction);
            throttle.slowdown()
        });
        assert_eq!(slowdowns, [1.0, 9.0, 9.0, 9.0]);
    }

    #[test]
    fn a_stopped_run_does_not_sleep_on() {
        let monitor = Monitor::new();
        monitor.stop();
        let halt = StopSignal::new(&monitor);
        assert!(halt.sleep_until(Instant::now(), 1e6).is_err());
    }
}
