//! Work on several threads of a processor: those of the calling worker's team.

use super::team::{with_team, worker_threads};
use crate::error::Result;
use crate::kernels::{Kernel, Team, View, ViewMut};
use crate::matrix::Element;
use std::sync::{Mutex, PoisonError};

/// C := C + A B on up to `threads` threads: the same bytes as on one, unless a library computes.
///
/// # Errors
/// The system refuses a thread; nothing is done then.
///
/// # Panics
/// If the kernel panics on any of the threads.
pub(crate) fn update<T: Element>(
    kernel: Kernel<T>,
    threads: usize,
    a: View<T>,
    b: View<T>,
    c: ViewMut<T>,
) -> Result<()> {
    if threads < 2 {
        kernel.update(a, b, c);
        return Ok(());
    }
    with_team(threads, |team| team.timed(|team| kernel.update_together(a, b, c, team)))
}

/// Number of threads of the calling worker's team.
pub fn threads() -> usize {
    worker_threads()
}

/// Does something on each thread of the calling worker's team, as far as they take turns: a thread may do it twice in
/// place of another.
///
/// # Errors
/// The system refuses a thread; nothing is done then.
///
/// # Panics
/// If the work panics on any of the threads.
pub fn on_each(work: impl Fn() + Sync) -> Result<()> {
    all(vec![(); threads()], |()| work())
}

/// Carries out parts of a computation, each on a thread of its own unless there is only one. A part does not wait for
/// another.
///
/// # Errors
/// The system refuses a thread; nothing is done then.
///
/// # Panics
/// If `compute` panics on any of the threads.
pub fn all<P: Send>(mut parts: Vec<P>, compute: impl Fn(P) + Sync) -> Result<()> {
    if parts.len() < 2 {
        parts.drain(..).for_each(compute);
        return Ok(());
    }
    let parts: Vec<Mutex<Option<P>>> = parts.into_iter().map(|part| Mutex::new(Some(part))).collect();
    let take = |number: usize| parts[number].lock().unwrap_or_else(PoisonError::into_inner).take();
    with_team(parts.len(), |team| {
        team.timed(|team| team.share(parts.len(), &|numbers| numbers.filter_map(take).for_each(&compute)));
    })
}
