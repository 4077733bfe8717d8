//! One update on several threads.

use super::clock;
use crate::kernels::{Kernel, View, ViewMut};
use crate::matrix::Element;

/// C := C + A B on up to `threads` threads, which share the rows of C. Returns the longest CPU time of the
/// started threads.
pub(crate) fn update<T: Element>(
    kernel: Kernel<T>,
    threads: usize,
    a: View<T>,
    b: View<T>,
    c: ViewMut<T>,
) -> f64 {
    let m = a.rows();
    let threads = threads.min(m).max(1);
    if threads == 1 {
        kernel.update(a, b, c);
        return 0.0;
    }
    std::thread::scope(|scope| {
        let (mut rest, mut helpers) = (c, Vec::new());
        for t in 0..threads {
            let (first, end) = (t * m / threads, (t + 1) * m / threads);
            let (mine, others) = rest.split_at_row(end - first);
            rest = others;
            let part = a.tile(first, 0, end - first, a.cols());
            helpers.push(scope.spawn(move || {
                kernel.update(part, b, mine);
                clock::thread_cpu_seconds()
            }));
        }
        helpers.into_iter().map(|h| h.join().expect("a kernel does not panic")).fold(0.0, f64::max)
    })
}
