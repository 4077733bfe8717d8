//! The panels left of a slab, read from their file by a thread of its own: the next one while all processors compute
//! with the last.

use super::PanelStore;
use apportion::error::{Error, Result};
use apportion::kernels::Real;
use apportion::run::Monitor;
use apportion::schedule::Parcel;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The longest that a processor waits before it looks whether the run was stopped.
const PATIENCE: Duration = Duration::from_millis(50);

/// Hands each panel to every processor that has columns in the slab, all of them in order. At most two panels are in
/// memory: that with which the slowest computes, and the next one.
#[derive(Debug)]
pub(crate) struct PanelReader<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    monitor: Monitor,
}

#[derive(Debug)]
struct State<T> {
    ready: Option<ReadyPanel<T>>,
    /// Processors that still take panels.
    takers: usize,
    failure: Option<Error>,
    /// No more panels are wanted, or no more come.
    over: bool,
}

/// A panel that some processors have not taken yet.
#[derive(Debug)]
struct ReadyPanel<T> {
    column: usize,
    parcel: Parcel<T>,
    missing: usize,
}

impl<T> PanelReader<T> {
    /// A reader for this number of processors.
    pub(crate) fn new(takers: usize, monitor: Monitor) -> Self {
        let state = State { ready: None, takers, failure: None, over: false };
        Self { state: Mutex::new(state), changed: Condvar::new(), monitor }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the first `count` panels, each once the one before it was taken by all, until it is
    /// [closed](Self::close).
    pub(crate) fn read(&self, store: &PanelStore<T>, count: usize)
    where
        T: Real,
    {
        for column in 0..count {
            let mut state = self.state();
            while state.ready.is_some() && !state.over {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.over || state.takers == 0 {
                return;
            }
            drop(state);
            let panel = store.panel(column);
            let mut state = self.state();
            match panel {
                Ok(parcel) => {
                    let missing = state.takers;
                    state.ready = Some(ReadyPanel { column, parcel, missing });
                }
                Err(error) => {
                    state.failure = Some(error);
                    state.over = true;
                }
            }
            self.changed.notify_all();
            if state.over {
                return;
            }
        }
    }

    /// Ends reading; returns what failed.
    pub(crate) fn close(&self) -> Option<Error> {
        let mut state = self.state();
        state.over = true;
        self.changed.notify_all();
        state.failure.take()
    }
}

/// How far a processor has come with the panels of a [`PanelReader`].
#[derive(Debug)]
pub(crate) struct Reading<T> {
    reader: Arc<PanelReader<T>>,
    /// The panel that it takes next.
    next: usize,
}

impl<T: Real> Reading<T> {
    pub(crate) fn of(reader: &Arc<PanelReader<T>>) -> Self {
        Self { reader: Arc::clone(reader), next: 0 }
    }

    /// The next panel, which is that of this block column. Waits for it.
    ///
    /// # Errors
    /// It cannot be read, or the run was stopped: [`Error::Interrupted`], while the reader keeps the cause.
    pub(crate) fn take(&mut self, column: usize) -> Result<Parcel<T>> {
        assert_eq!(self.next, column, "panels are taken in order");
        let reader = &self.reader;
        let mut state = reader.state();
        loop {
            if let Some(ready) = state.ready.as_mut().filter(|ready| ready.column == column) {
                let parcel = ready.parcel.clone();
                ready.missing -= 1;
                if ready.missing == 0 {
                    state.ready = None;
                    reader.changed.notify_all();
                }
                self.next += 1;
                return Ok(parcel);
            }
            if state.over || reader.monitor.is_stopped() {
                return Err(Error::Interrupted);
            }
            let waited = reader.changed.wait_timeout(state, PATIENCE);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// A processor that ends early takes no more panels: the others do not wait for it.
impl<T> Drop for Reading<T> {
    fn drop(&mut self) {
        let mut state = self.reader.state();
        state.takers -= 1;
        let next = self.next;
        if let Some(ready) = state.ready.as_mut().filter(|ready| ready.column >= next) {
            ready.missing -= 1;
            if ready.missing == 0 {
                state.ready = None;
            }
        }
        self.reader.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready(reader: &PanelReader<f64>, column: usize) {
        let parcel = Parcel::new(Arc::new(vec![column as f64]));
        let mut state = reader.state();
        let missing = state.takers;
        state.ready = Some(ReadyPanel { column, parcel, missing });
    }

    #[test]
    fn a_panel_is_there_until_all_have_taken_it() {
        let reader = Arc::new(PanelReader::new(2, Monitor::new()));
        let (mut a, mut b) = (Reading::of(&reader), Reading::of(&reader));
        ready(&reader, 0);
        assert_eq!(a.take(0).unwrap().elements(), [0.0]);
        assert!(reader.state().ready.is_some());
        assert_eq!(b.take(0).unwrap().elements(), [0.0]);
        assert!(reader.state().ready.is_none());
    }

    #[test]
    fn nobody_waits_for_a_processor_that_has_ended() {
        let reader = Arc::new(PanelReader::new(2, Monitor::new()));
        let (mut a, b) = (Reading::of(&reader), Reading::of(&reader));
        ready(&reader, 0);
        a.take(0).unwrap();
        drop(b);
        assert!(reader.state().ready.is_none());
        ready(&reader, 1);
        a.take(1).unwrap();
        assert!(reader.state().ready.is_none());
    }

    #[test]
    fn a_stopped_run_waits_for_no_panel() {
        let monitor = Monitor::new();
        let reader = Arc::new(PanelReader::<f64>::new(1, monitor.clone()));
        monitor.stop();
        assert!(matches!(Reading::of(&reader).take(0), Err(Error::Interrupted)));
    }

    #[test]
    fn nothing_comes_of_a_closed_reader() {
        let reader = Arc::new(PanelReader::<f64>::new(1, Monitor::new()));
        assert!(reader.close().is_none());
        assert!(matches!(Reading::of(&reader).take(0), Err(Error::Interrupted)));
    }
}
