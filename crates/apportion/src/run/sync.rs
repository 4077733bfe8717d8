//! Locks of mailboxes, barriers and teams. In tests with `--cfg loom` they are those of loom, which tries every order in
//! which threads can meet (Lerch et al., after Norris and Demsky's CDSChecker, OOPSLA 2013).

#[cfg(all(test, loom))]
pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
#[cfg(not(all(test, loom)))]
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};

use std::sync::PoisonError;
use std::time::Duration;

/// Locks, ignoring poisoning: each critical section is one operation on a map or a number, so a panic leaves
/// the data whole.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for a notification, but not long: a stop from outside sends none. Under loom it waits without an
/// end, so that a notification that is missing shows as a deadlock.
pub(crate) fn wait<'l, T>(news: &Condvar, guard: MutexGuard<'l, T>) -> MutexGuard<'l, T> {
    news.wait_timeout(guard, Duration::from_millis(20)).unwrap_or_else(PoisonError::into_inner).0
}
