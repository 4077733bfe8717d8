//! The work of forecasts, counted.
//!
//! Planning ends once its work is spent. It counts what is done instead of looking at a clock, so that equal
//! input gives equal plans on every machine, busy or not.

use std::cell::Cell;

/// Work in nominal nanoseconds: about those of a core of 2024.
#[derive(Debug)]
pub(crate) struct Effort {
    spent: Cell<f64>,
    limit: Cell<f64>,
}

/// Nanoseconds of one step of a simulated processor, of one message on its wires, and of one piece at one of
/// its ends.
pub(super) const STEP: f64 = 130.0;
pub(super) const MESSAGE: f64 = 180.0;
pub(super) const PIECE: f64 = 50.0;
/// Nanoseconds of one message of a recurrence, and of one exchange of lines beforehand.
pub(super) const RECURRENCE: f64 = 15.0;
pub(super) const ANALYSIS: f64 = 100.0;

/// The same for few processors, whose state is in the caches: what to multiply by.
pub(super) fn scale(processors: usize) -> f64 {
    (processors as f64 / 22.0).clamp(0.25, 1.0)
}

impl Effort {
    /// Work of some nominal seconds.
    pub(crate) fn new(seconds: f64) -> Self {
        Self { spent: Cell::new(0.0), limit: Cell::new(seconds * 1e9) }
    }

    /// Work without end.
    pub(crate) fn unlimited() -> Self {
        Self::new(f64::INFINITY)
    }

    /// Does some work.
    pub(crate) fn spend(&self, nanoseconds: f64) {
        self.spent.set(self.spent.get() + nanoseconds);
    }

    /// True if the limit is reached.
    pub(crate) fn is_spent(&self) -> bool {
        self.spent.get() >= self.limit.get()
    }

    /// Nanoseconds spent.
    pub(crate) fn spent(&self) -> f64 {
        self.spent.get()
    }

    /// Nanoseconds left; at least 0.
    pub(crate) fn remaining(&self) -> f64 {
        (self.limit.get() - self.spent.get()).max(0.0)
    }

    /// Moves the limit by some nanoseconds.
    pub(crate) fn extend(&self, nanoseconds: f64) {
        self.limit.set(self.limit.get() + nanoseconds);
    }
}
