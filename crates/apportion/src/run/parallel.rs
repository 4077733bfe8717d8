//! One update on several threads.

use super::clock;
use crate::kernels::{Kernel, View, ViewMut};
use crate::matrix::Element;
use crate::threads;

/// C := C + A B on up to `count` threads, which share the rows of C. Returns the longest CPU time of the
/// started threads.
///
/// # Panics
/// If the system refuses a thread.
pub(crate) fn update<T: Element>(
    kernel: Kernel<T>,
    count: usize,
    a: View<T>,
    b: View<T>,
    c: ViewMut<T>,
) -> f64 {
    let m = a.rows();
    let count = count.min(m).max(1);
    if count == 1 {
        kernel.update(a, b, c);
        return 0.0;
    }
    threads::scope(|scope| {
        let (mut rest, mut helpers) = (c, Vec::new());
        for t in 0..count {
            let (first, end) = (t * m / count, (t + 1) * m / count);
            let (mine, others) = rest.split_at_row(end - first);
            rest = others;
            let part = a.tile(first, 0, end - first, a.cols());
            let started = threads::start(scope, move || {
                kernel.update(part, b, mine);
                clock::thread_cpu_seconds()
            });
            // Reported as the end of this processor's worker.
            helpers.push(started.unwrap_or_else(|refused| panic!("{refused}")));
        }
        helpers.into_iter().map(|h| h.join().expect("a kernel does not panic")).fold(0.0, f64::max)
    })
}

/// Carries out parts of a computation, each on a thread of its own unless there is only one. Returns the
/// longest CPU time of the started threads.
///
/// # Panics
/// If the system refuses a thread.
pub(crate) fn all<P: Send>(mut parts: Vec<P>, compute: impl Fn(P) + Sync) -> f64 {
    if parts.len() < 2 {
        parts.drain(..).for_each(compute);
        return 0.0;
    }
    let compute = &compute;
    threads::scope(|scope| {
        let one = |part| {
            let started = threads::start(scope, move || {
                compute(part);
                clock::thread_cpu_seconds()
            });
            started.unwrap_or_else(|refused| panic!("{refused}"))
        };
        let helpers: Vec<_> = parts.into_iter().map(one).collect();
        helpers.into_iter().map(|h| h.join().expect("a kernel does not panic")).fold(0.0, f64::max)
    })
}
