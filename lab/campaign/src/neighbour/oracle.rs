//! The oracle: how long the capacity that the neighbour left would have needed.
//!
//! The capacity of a core is its speed times the part of its time that is left to a thread which always wants
//! to run. The speed is in updates of C (an addition and a minimum each) per CPU second. The part is 1
//! without the neighbour, and beside it what such a thread gets of the core. Both are measured before the
//! products: the speed as the best of three products with both workers at work, the part as the largest of
//! three trials of each number of loops, and at least as its fair share. The oracle's time for a product is
//! the time in which the capacity of both cores, summed from the product's start over the visits that took
//! place, reaches the product's updates.
//!
//! A second oracle sums the speeds times the part of the time that each worker got while it computed. It
//! knows all other load, too, and is meant for machines that are not idle; where load changes within a
//! product, it knows less.
//!
//! It is fair, or too strict: nobody who only divides the work can be faster; it knows every visit, and it
//! never waits, moves or meets another process. Best values are taken, so that other load while measuring
//! hardly helps.

use super::loops::{Loops, MOST, Visit, pin};
use super::{SIZE, Workshop};
use apportion::trace::Trace;
use rustix::time::{ClockId, clock_gettime};
use std::fmt;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Trials of each measurement.
const TRIALS: usize = 3;

/// The length of a trial of the part of a core's time.
const TRIAL: Duration = Duration::from_millis(1500);

/// Speeds of the workers, and what each number of loops leaves of their cores.
pub struct Capacity {
    pub speeds: [f64; 2],
    left: [[f64; MOST]; 2],
}

impl Capacity {
    /// Measures on two cores.
    pub fn measured(cores: &[usize]) -> Result<Self, String> {
        let workshop = Workshop::new(cores, SIZE / 4)?;
        let mut speeds = [0.0_f64; 2];
        for _ in 0..TRIALS {
            let report = workshop.multiply([1.0, 1.0], None)?;
            for (speed, lane) in speeds.iter_mut().zip(&report.trace.lanes) {
                *speed = speed.max(workshop.work() / 2.0 / lane.cpu_seconds);
            }
        }
        let mut left = [[0.0; MOST]; 2];
        for (core, left) in cores.iter().zip(&mut left) {
            for (loops, left) in (1..).zip(left) {
                let _loops = Loops::on(*core, loops);
                *left = (0..TRIALS).map(|_| got(*core)).fold(1.0 / (1 + loops) as f64, f64::max);
            }
        }
        Ok(Self { speeds, left })
    }

    /// The speed of both cores without a neighbour.
    pub fn whole(&self) -> f64 {
        self.speeds.iter().sum()
    }

    /// Seconds for this work from a time on.
    pub fn seconds(&self, work: f64, from: f64, visits: &[Visit]) -> f64 {
        // The capacity grows with time.
        let (mut low, mut high) = (0.0, 100.0 * work / self.whole());
        for _ in 0..100 {
            let middle = 0.5 * (low + high);
            let enough = self.between(from, from + middle, visits) >= work;
            *(if enough { &mut high } else { &mut low }) = middle;
        }
        high
    }

    /// Updates per second by the CPU time that the workers got while they computed.
    pub fn got(&self, trace: &Trace) -> f64 {
        let parts = trace.lanes.iter().zip(trace.compute()).map(|(lane, seconds)| lane.cpu_seconds / seconds);
        parts.zip(self.speeds).map(|(part, speed)| part.min(1.0) * speed).sum()
    }

    /// Updates between two times.
    fn between(&self, from: f64, to: f64, visits: &[Visit]) -> f64 {
        let taken = |visit: &Visit| {
            let seconds = (visit.to.min(to) - visit.from.max(from)).max(0.0);
            seconds * (1.0 - self.left[visit.worker][visit.loops - 1]) * self.speeds[visit.worker]
        };
        (to - from) * self.whole() - visits.iter().map(taken).sum::<f64>()
    }
}

impl fmt::Display for Capacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [p, q] = self.speeds.map(|speed| speed / 1e9);
        let [x, y] = self.left.map(|left| left.map(|part| format!("{:.1} %", 100.0 * part)).join(" and "));
        write!(f, "{p:.2} and {q:.2} Gupdate/s, of which one loop and two loops leave {x}, and {y}")
    }
}

/// The part of a core's time that a thread gets which always wants to run.
fn got(core: usize) -> f64 {
    let trial = move || {
        pin(core);
        let cpu = || clock_gettime(ClockId::ThreadCPUTime);
        let (begun, before) = (Instant::now(), cpu());
        while begun.elapsed() < TRIAL {
            (0..1000).for_each(|i| {
                black_box(i);
            });
        }
        let (after, wall) = (cpu(), begun.elapsed().as_secs_f64());
        let seconds = (after.tv_sec - before.tv_sec) as f64 + 1e-9 * (after.tv_nsec - before.tv_nsec) as f64;
        seconds / wall
    };
    std::thread::spawn(trial).join().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oracle_knows_visits() {
        let capacity = Capacity { speeds: [3.0, 1.0], left: [[0.5, 0.25], [0.5, 0.25]] };
        let near = |x: f64, y: f64| assert!((x - y).abs() < 1e-9, "{x} is not {y}");
        near(capacity.seconds(40.0, 7.0, &[]), 10.0);
        // From second 2 to 6 two loops take three quarters of a core of speed 3: 9 of 40.
        let visit = Visit { worker: 0, loops: 2, from: 9.0, to: 13.0 };
        near(capacity.seconds(40.0, 7.0, &[visit]), 12.25);
        // Half of a core of speed 1, from second 5 on: 20 + 3.5 t.
        let visit = Visit { worker: 1, loops: 1, from: 12.0, to: f64::INFINITY };
        near(capacity.seconds(40.0, 7.0, &[visit]), 5.0 + 20.0 / 3.5);
    }
}
