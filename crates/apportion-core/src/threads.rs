//! Threads that may be refused: a limit on processes must end in an error, never in a hang.

use crate::error::{Error, Result};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

/// As [`std::thread::scope`], which is compiled once here instead of once for each use.
pub fn scope<'env, R>(work: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R) -> R {
    let (mut work, mut outcome) = (Some(work), None);
    in_scope(&mut |scope| outcome = work.take().map(|work| work(scope)));
    outcome.expect("a scope runs its work")
}

fn in_scope<'env>(work: &mut dyn for<'scope> FnMut(&'scope Scope<'scope, 'env>)) {
    std::thread::scope(|scope| work(scope));
}

/// A thread of a scope.
pub struct Started<'scope, R> {
    thread: ScopedJoinHandle<'scope, ()>,
    result: Arc<Mutex<Option<R>>>,
}

impl<R> Started<'_, R> {
    /// Waits for the thread.
    ///
    /// # Errors
    /// Its panic.
    pub fn join(self) -> std::thread::Result<R> {
        self.thread.join()?;
        let result = self.result.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(result.expect("a thread that has not panicked has a result"))
    }
}

/// Starts a thread in a scope.
///
/// # Errors
/// The system refuses another thread: exit code 1.
pub fn start<'scope, R: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> R + Send + 'scope,
) -> Result<Started<'scope, R>> {
    start_by(scope, Builder::new(), work)
}

/// [`start`] with a stack of this many bytes.
///
/// # Errors
/// As [`start`].
pub fn start_with_stack<'scope, R: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    bytes: usize,
    work: impl FnOnce() -> R + Send + 'scope,
) -> Result<Started<'scope, R>> {
    start_by(scope, Builder::new().stack_size(bytes), work)
}

fn start_by<'scope, R: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    builder: Builder,
    work: impl FnOnce() -> R + Send + 'scope,
) -> Result<Started<'scope, R>> {
    let result = Arc::new(Mutex::new(None));
    let place = result.clone();
    let work = move || {
        let value = work();
        *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
    };
    Ok(Started { thread: start_boxed(scope, builder, Box::new(work))?, result })
}

/// What does not depend on the work is compiled once.
fn start_boxed<'scope>(
    scope: &'scope Scope<'scope, '_>,
    builder: Builder,
    work: Box<dyn FnOnce() + Send + 'scope>,
) -> Result<ScopedJoinHandle<'scope, ()>> {
    builder.spawn_scoped(scope, work).map_err(refused)
}

/// Starts a thread that may outlive the caller.
///
/// # Errors
/// As [`start`].
pub fn start_free(work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    Builder::new().spawn(work).map_err(refused)
}

/// The error of a thread that the system refused.
pub(crate) fn refused(error: std::io::Error) -> Error {
    refused_another("thread", &error)
}

/// The error of a thread or process that the system refused.
pub fn refused_another(what: &str, error: &std::io::Error) -> Error {
    Error::infeasible(
        format!("the system refuses another {what}: {error}"),
        "raise the limit on processes (ulimit -u, or pids.max of the container), or use fewer processors",
    )
}

/// Does `work` for each item on up to `threads` threads, this one included. Threads that the system refuses
/// are done without. A panic in `work` is passed on.
pub fn share_out<T: Send>(items: Vec<T>, threads: usize, work: impl Fn(T) + Sync) {
    let helpers = threads.min(items.len()).saturating_sub(1);
    let items = Mutex::new(items.into_iter());
    let drain = || {
        // The lock is released before the work: a `while let` on the locked iterator would hold it.
        let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
        while let Some(item) = next() {
            work(item);
        }
    };
    scope(|scope| {
        for _ in 0..helpers {
            if start(scope, drain).is_err() {
                break;
            }
        }
        drain();
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn every_item_is_done_once_however_many_threads_there_are() {
        for threads in [0, 1, 2, 7] {
            let done: Vec<AtomicUsize> = (0..5).map(|_| AtomicUsize::new(0)).collect();
            share_out((0..5).collect(), threads, |i: usize| {
                done[i].fetch_add(1, Ordering::Relaxed);
            });
            assert!(done.iter().all(|count| count.load(Ordering::Relaxed) == 1), "{threads}");
        }
        share_out(Vec::new(), 3, |_: usize| panic!("there is no item"));
    }

    #[test]
    fn a_refusal_names_the_limit() {
        let error = refused(std::io::Error::from(std::io::ErrorKind::WouldBlock));
        assert_eq!(error.exit_code(), 1);
        assert!(error.to_string().contains("ulimit -u"), "{error}");
    }
}
