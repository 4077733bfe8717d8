//! Busy loops that are pinned to a core, and a neighbour who starts and stops them.

use apportion::random::Random;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The shortest and the longest visit, and so for absences, in seconds.
const SPANS: [f64; 2] = [5.0, 60.0];

/// The most loops of a visit.
pub const MOST: usize = 2;

/// Loops that run until dropped.
pub struct Loops {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Loops {
    /// Starts them; they run when this returns.
    pub fn on(core: usize, count: usize) -> Self {
        let (stop, ready) = (Arc::new(AtomicBool::new(false)), Arc::new(Barrier::new(count + 1)));
        let turn = || {
            let (stop, ready) = (stop.clone(), ready.clone());
            std::thread::spawn(move || {
                pin(core);
                ready.wait();
                while !stop.load(Ordering::Relaxed) {
                    (0..1000).for_each(|i| {
                        black_box(i);
                    });
                }
            })
        };
        let threads = (0..count).map(|_| turn()).collect();
        ready.wait();
        Self { stop, threads }
    }
}

impl Drop for Loops {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Pins this thread; a core that is not there leaves it where it may run.
pub fn pin(core: usize) {
    let mut set = CpuSet::new();
    set.set(core);
    let _ = sched_setaffinity(None, &set);
    spin_loop();
}

/// A visit: loops on the core of a worker, in seconds since the neighbour began.
#[derive(Debug, Clone, Copy)]
pub struct Visit {
    pub worker: usize,
    pub loops: usize,
    pub from: f64,
    /// Infinite while it lasts.
    pub to: f64,
}

/// Comes and goes until dropped.
pub struct Neighbour {
    begun: Instant,
    visits: Arc<Mutex<Vec<Visit>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Neighbour {
    /// Begins with an absence.
    pub fn begins(cores: &[usize], seed: u64) -> Self {
        let (begun, cores) = (Instant::now(), cores.to_vec());
        let (visits, stop) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (seen, ended) = (visits.clone(), stop.clone());
        let thread = std::thread::spawn(move || {
            let mut random = Random::new(seed);
            while !ended.load(Ordering::Relaxed) {
                let mut span = || SPANS[0] + (SPANS[1] - SPANS[0]) * random.unit();
                let [absence, presence] = [span(), span()];
                rest(absence, &ended);
                let (worker, loops) = (random.below(cores.len()), 1 + random.below(MOST));
                let running = Loops::on(cores[worker], loops);
                let visit = Visit { worker, loops, from: begun.elapsed().as_secs_f64(), to: f64::INFINITY };
                locked(&seen).push(visit);
                rest(presence, &ended);
                drop(running);
                if let Some(last) = locked(&seen).last_mut() {
                    last.to = begun.elapsed().as_secs_f64();
                }
            }
        });
        Self { begun, visits, stop, thread: Some(thread) }
    }

    /// Seconds since it began.
    pub fn now(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    /// All visits so far.
    pub fn visits(&self) -> Vec<Visit> {
        locked(&self.visits).clone()
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn locked(visits: &Mutex<Vec<Visit>>) -> std::sync::MutexGuard<'_, Vec<Visit>> {
    visits.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sleeps; not for long once the end is due.
fn rest(seconds: f64, ended: &AtomicBool) {
    let begun = Instant::now();
    while begun.elapsed().as_secs_f64() < seconds && !ended.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(20));
    }
}
