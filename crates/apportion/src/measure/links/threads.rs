//! Messages between two threads of this machine, sent as the threads engine does: an announcement through its
//! mailbox (on emulated wires, if the platform requests them), then a copy from the sender's memory.

use super::Probe;
use crate::error::Result;
use crate::geometry::Rank;
use crate::platform::{Direction, Load, Platform};
use crate::process_memory::require_memory;
use crate::run::Monitor;
use crate::run::clock;
use crate::run::mailboxes::{Mailboxes, StartBarrier, StopOnPanic, StopSignal};
use crate::schedule::Posting;
use crate::threads;
use std::hint::black_box;
use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Bytes of one stretch of a horizontal message: one cache line.
const STRETCH: usize = 64;
/// Distance between the starts of stretches in bytes: the same columns of consecutive rows.
const STRIDE: usize = 1024;

/// A transport for probes between two threads that are pinned to their processors' cores. The sender's data
/// are rewritten before each message.
///
/// # Errors
/// Errors of the returned closure: messages that need more memory than is free; a refused thread (exit
/// code 1); [`Error::Interrupted`](crate::error::Error::Interrupted).
///
/// # Panics
/// If a probe names a processor that the platform does not have, or names one processor twice.
pub(super) fn threads_probe<'a>(
    platform: &'a Platform,
    monitor: &'a Monitor,
) -> impl FnMut(&Probe) -> Result<Vec<f64>> + 'a {
    move |probe| {
        let source = vec_of(extent(probe))?;
        let target = vec_of(probe.bytes as usize)?;
        let exchange = Exchange {
            probe,
            platform,
            post: Mailboxes::new(platform.len(), &platform.network, &|_| None),
            halt: StopSignal::new(monitor),
            gate: StartBarrier::new(2),
            epoch: Instant::now(),
            source: Mutex::new(source),
        };
        // The two do not wait for messages of others.
        (0..platform.len()).map(Rank).for_each(|rank| exchange.post.suspend(rank));
        std::thread::scope(|scope| {
            let asking = threads::start(scope, || exchange.ask())?;
            // The sender waits for the receiver.
            let answering =
                threads::start(scope, || exchange.answer(target)).inspect_err(|_| exchange.halt.fail())?;
            let (answered, asked) = (answering.join(), asking.join());
            // A panic takes precedence over the interruption of the thread that waited for it.
            let answered = answered.unwrap_or_else(|panic| resume_unwind(panic));
            let asked = asked.unwrap_or_else(|panic| resume_unwind(panic));
            answered.and(asked)
        })
    }
}

/// Bytes of memory that the sender's data are spread over.
fn extent(probe: &Probe) -> usize {
    let bytes = probe.bytes as usize;
    match probe.direction {
        Direction::Vertical => bytes,
        Direction::Horizontal => bytes.div_ceil(STRETCH).saturating_mul(STRIDE),
    }
}

fn vec_of(bytes: usize) -> Result<Vec<u8>> {
    // Its sender and its receiver have one.
    let what = format!("a message spread over {bytes} bytes, held twice,");
    require_memory("message sizes", &what, 2 * bytes as u128, "leave out the largest sizes")?;
    Ok(vec![1; bytes])
}

/// State that the two threads share.
struct Exchange<'a> {
    probe: &'a Probe,
    platform: &'a Platform,
    post: Mailboxes<'a>,
    halt: StopSignal<'a>,
    gate: StartBarrier,
    epoch: Instant,
    source: Mutex<Vec<u8>>,
}

impl Exchange<'_> {
    /// The sender. Returns the seconds from each message to its answer.
    fn ask(&self) -> Result<Vec<f64>> {
        let Probe { from, to, times, .. } = *self.probe;
        let _ends_both = StopOnPanic(&self.halt);
        self.begin(from.0)?;
        (0..times as u64)
            .map(|i| {
                self.write(i as u8);
                let sent = self.now();
                self.send(from, to, 2 * i, self.load(), sent);
                self.post.receive(from, to, 2 * i + 1, self.epoch, &self.halt)?;
                Ok(self.now() - sent)
            })
            .collect()
    }

    /// The receiver: copies the data and answers.
    fn answer(&self, mut target: Vec<u8>) -> Result<()> {
        let Probe { from, to, times, .. } = *self.probe;
        let _ends_both = StopOnPanic(&self.halt);
        self.begin(to.0)?;
        for i in 0..times as u64 {
            self.post.receive(to, from, 2 * i, self.epoch, &self.halt)?;
            self.copy(&mut target);
            self.send(to, from, 2 * i + 1, Load::default(), self.now());
        }
        Ok(())
    }

    fn send(&self, from: Rank, to: Rank, tag: u64, load: Load, at: f64) {
        self.post.post(Posting { from, tag, to: vec![(to, load)], once: None, at });
    }

    fn begin(&self, rank: usize) -> Result<()> {
        clock::pin(&self.platform.processors[rank].cores);
        clock::wake_promptly();
        self.gate.pass(&self.halt)
    }

    fn now(&self) -> f64 {
        self.epoch.elapsed().as_secs_f64()
    }

    fn load(&self) -> Load {
        let bytes = self.probe.bytes as f64;
        match self.probe.direction {
            Direction::Horizontal => Load { horizontal: bytes, vertical: 0.0 },
            Direction::Vertical => Load { horizontal: 0.0, vertical: bytes },
        }
    }

    /// Writes new data, so that they come from the sender's cache or memory, not from the receiver's.
    fn write(&self, value: u8) {
        let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        match self.probe.direction {
            Direction::Vertical => source.fill(value),
            Direction::Horizontal => source.chunks_mut(STRIDE).for_each(|row| row[..STRETCH].fill(value)),
        }
    }

    fn copy(&self, target: &mut [u8]) {
        let source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        match self.probe.direction {
            Direction::Vertical => target.copy_from_slice(&source),
            Direction::Horizontal => {
                for (stretch, row) in target.chunks_mut(STRETCH).zip(source.chunks(STRIDE)) {
                    stretch.copy_from_slice(&row[..stretch.len()]);
                }
            }
        }
        black_box(target);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Rank;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    /// If the platform does not have the sender or the receiver, one thread panics: the other must not wait
    /// for it.
    #[test]
    fn a_panic_of_one_thread_ends_the_other() {
        for (from, to) in [(0, 7), (7, 0)] {
            let (give, ended) = channel();
            std::thread::spawn(move || {
                let platform = Platform::from_speeds(&[1.0; 2]).unwrap();
                let probe = Probe {
                    from: Rank(from),
                    to: Rank(to),
                    bytes: 8,
                    direction: Direction::Vertical,
                    times: 1,
                };
                let outcome = std::panic::catch_unwind(|| threads_probe(&platform, &Monitor::new())(&probe));
                give.send(outcome.is_err()).unwrap();
            });
            assert_eq!(
                ended.recv_timeout(Duration::from_secs(60)),
                Ok(true),
                "{from} to {to} panics and ends"
            );
        }
    }
}
