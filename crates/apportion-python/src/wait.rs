//! Calls of the library without the interpreter's lock: other Python threads run meanwhile, Ctrl-C stops the
//! call, and a panic becomes an exception.

use crate::errors::exception;
use apportion::Result;
use apportion::run::Monitor;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::time::Duration;

/// Time between two looks at Python's signals.
const TICK: Duration = Duration::from_millis(50);

/// Runs work on a thread of its own, and stops it when Python's signal handlers raise an exception.
///
/// # Errors
/// That exception; the work's error; a panic as `RuntimeError`.
pub fn long<R: Send>(py: Python<'_>, work: impl FnOnce(&Monitor) -> Result<R> + Send) -> PyResult<R> {
    long_watched(py, &Monitor::new(), work)
}

/// The same with a monitor of the caller's.
///
/// # Errors
/// As [`long`].
pub fn long_watched<R: Send>(
    py: Python<'_>,
    monitor: &Monitor,
    work: impl FnOnce(&Monitor) -> Result<R> + Send,
) -> PyResult<R> {
    let (outcome, interruption) = py.detach(|| {
        std::thread::scope(|scope| {
            let (done, finished) = mpsc::channel();
            let worker =
                std::thread::Builder::new().name("apportion".into()).spawn_scoped(scope, move || {
                    let outcome = catch_unwind(AssertUnwindSafe(|| work(monitor)));
                    // The other end waits until this arrives.
                    let _ = done.send(());
                    outcome
                });
            let worker = match worker {
                Ok(worker) => worker,
                Err(error) => return (Err(Box::new(error.to_string()) as Box<dyn Any + Send>), None),
            };
            let mut interruption = None;
            while finished.recv_timeout(TICK) == Err(mpsc::RecvTimeoutError::Timeout) {
                if interruption.is_none()
                    && let Err(raised) = Python::attach(|py| py.check_signals())
                {
                    monitor.stop();
                    interruption = Some(raised);
                }
            }
            (worker.join().and_then(|outcome| outcome), interruption)
        })
    });
    match interruption {
        Some(raised) => Err(raised),
        None => result_of(outcome),
    }
}

/// Runs work that is over soon, on this thread.
///
/// # Errors
/// The work's error; a panic as `RuntimeError`.
pub fn short<R: Send>(py: Python<'_>, work: impl FnOnce() -> Result<R> + Send) -> PyResult<R> {
    result_of(py.detach(|| catch_unwind(AssertUnwindSafe(work))))
}

fn result_of<R>(outcome: std::thread::Result<Result<R>>) -> PyResult<R> {
    match outcome {
        Ok(outcome) => outcome.map_err(exception),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("unknown");
            let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
            Err(PyRuntimeError::new_err(format!("internal error: {line} (please report it)")))
        }
    }
}

/// Panics on a thread of the library, for tests: a panic must reach Python as an exception.
#[pyfunction]
#[pyo3(name = "_fail")]
pub fn fail(py: Python<'_>, seconds: f64) -> PyResult<()> {
    long(py, |monitor| {
        let begin = std::time::Instant::now();
        while begin.elapsed().as_secs_f64() < seconds && !monitor.is_stopped() {
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("a test\nasked for it")
    })
}
