//! Every order in which workers can meet: no message is lost, no worker waits forever.

use super::*;
use loom::sync::Arc;
use loom::thread;

/// What threads of loom share: it takes no borrows.
struct All {
    boxes: Mailboxes<'static>,
    barrier: StartBarrier,
    stop: StopSignal<'static>,
}

fn all(workers: usize, emulate: bool) -> Arc<All> {
    let monitor: &'static Monitor = Box::leak(Box::new(Monitor::new()));
    let network: &'static mut Network = Box::leak(Box::new(Network::free()));
    network.emulate = emulate;
    let (boxes, barrier) = (Mailboxes::new(workers, network, &|_| None), StartBarrier::new(workers));
    Arc::new(All { boxes, barrier, stop: StopSignal::new(monitor) })
}

fn post(all: &All, from: usize, to: usize, tag: u64) {
    let to = vec![(Rank(to), crate::platform::Load { horizontal: 1.0, vertical: 0.0 })];
    all.boxes.post(Posting { from: Rank(from), tag, to, once: None, at: 0.0 });
}

fn receive(all: &All, at: usize, from: usize, tag: u64) {
    all.boxes.receive(Rank(at), Rank(from), tag, Instant::now(), &all.stop).unwrap();
}

#[test]
fn two_workers_exchange() {
    exchange(false);
}

/// Messages wait until no earlier one can come.
#[test]
fn two_workers_exchange_on_emulated_links() {
    exchange(true);
}

fn exchange(emulate: bool) {
    loom::model(move || {
        let all = all(2, emulate);
        let other = {
            let all = all.clone();
            thread::spawn(move || {
                all.barrier.pass(&all.stop).unwrap();
                post(&all, 1, 0, 7);
                receive(&all, 1, 0, 3);
                receive(&all, 1, 0, 4);
                all.boxes.flush(Rank(1), Instant::now(), &all.stop).unwrap();
                all.boxes.suspend(Rank(1));
            })
        };
        all.barrier.pass(&all.stop).unwrap();
        post(&all, 0, 1, 3);
        post(&all, 0, 1, 4);
        receive(&all, 0, 1, 7);
        all.boxes.suspend(Rank(0));
        other.join().unwrap();
    });
}

#[test]
fn three_workers_pass_a_message_on() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let all = all(3, false);
        let others: Vec<_> = [1, 2]
            .map(|rank| {
                let all = all.clone();
                thread::spawn(move || {
                    receive(&all, rank, rank - 1, 0);
                    if rank == 1 {
                        post(&all, 1, 2, 0);
                    }
                })
            })
            .into();
        post(&all, 0, 1, 0);
        others.into_iter().for_each(|other| other.join().unwrap());
    });
}

/// A worker that fails opens the barrier for those that wait there, if each looks at the stop signal after a
/// notification.
#[test]
fn a_stop_is_seen_by_who_comes_later() {
    loom::model(|| {
        let all = all(2, false);
        let other = {
            let all = all.clone();
            thread::spawn(move || {
                all.stop.fail();
                all.barrier.pass(&all.stop).is_err()
            })
        };
        // This one arrives first, last, or after the failure: it passes or ends, and never waits forever.
        let _ = all.barrier.pass(&all.stop);
        let _ = other.join().unwrap();
        assert!(all.stop.check().is_err());
    });
}
