//! One update on several threads.

use super::clock;
use crate::error::Result;
use crate::kernels::{Kernel, View, ViewMut};
use crate::matrix::Element;
use crate::threads;

/// C := C + A B on up to `count` threads, which share the rows of C. Returns the longest CPU time of the
/// started threads.
///
/// # Errors
/// The system refuses a thread; C is then incomplete.
pub(crate) fn update<T: Element>(
    kernel: Kernel<T>,
    count: usize,
    a: View<T>,
    b: View<T>,
    c: ViewMut<T>,
) -> Result<f64> {
    let m = a.rows();
    let count = count.min(m).max(1);
    let (mut rest, mut parts) = (c, Vec::with_capacity(count));
    for t in 0..count {
        let (first, end) = (t * m / count, (t + 1) * m / count);
        let (mine, others) = rest.split_at_row(end - first);
        rest = others;
        parts.push((a.tile(first, 0, end - first, a.cols()), mine));
    }
    all(parts, |(a, c)| kernel.update(a, b, c))
}

/// Carries out parts of a computation, each on a thread of its own unless there is only one. Returns the
/// longest CPU time of the started threads.
///
/// # Errors
/// The system refuses a thread; some parts are then not done.
pub fn all<P: Send>(mut parts: Vec<P>, compute: impl Fn(P) + Sync) -> Result<f64> {
    if parts.len() < 2 {
        parts.drain(..).for_each(compute);
        return Ok(0.0);
    }
    let compute = &compute;
    threads::scope(|scope| {
        let one = |part| {
            threads::start(scope, move || {
                compute(part);
                clock::thread_cpu_seconds()
            })
        };
        // Helpers that were started before a refusal are waited for by the scope.
        let helpers: Vec<_> = parts.into_iter().map(one).collect::<Result<_>>()?;
        Ok(helpers.into_iter().map(|h| h.join().expect("a kernel does not panic")).fold(0.0, f64::max))
    })
}
