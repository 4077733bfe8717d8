//! Every order in which a worker and its helpers can meet: no number is lost or done twice, nobody waits forever, and a
//! helper is in no job that is over.

use super::*;
use loom::sync::Arc;
use loom::thread;
use std::sync::atomic::AtomicUsize;

fn share(shared: &Shared, done: &[AtomicUsize]) {
    let work = |numbers: Range<usize>| {
        numbers.for_each(|i| {
            done[i].fetch_add(1, Ordering::Relaxed);
        });
    };
    let work: &(dyn Fn(Range<usize>) + Sync) = &work;
    // SAFETY: nobody calls it after `close`.
    let work: &'static (dyn Fn(Range<usize>) + Sync) = unsafe { std::mem::transmute(work) };
    let job = Job { work, count: done.len() };
    shared.post(job);
    shared.try_work(job).unwrap();
    assert!(shared.close().is_none());
    assert!(done.iter().all(|count| count.load(Ordering::Relaxed) == 1));
}

#[test]
fn a_helper_joins_jobs_or_misses_them() {
    loom::model(|| {
        let shared = Arc::new(Shared::new(2, false));
        let helper = {
            let shared = shared.clone();
            thread::spawn(move || shared.help())
        };
        let done: [AtomicUsize; 3] = Default::default();
        share(&shared, &done);
        shared.end();
        helper.join().unwrap();
    });
}
