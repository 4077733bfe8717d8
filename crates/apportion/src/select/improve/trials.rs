//! Trials of layouts against the best time so far: cheap bounds first, then a simulation that ends as soon as
//! it is slower.

use crate::error::Result;
use crate::plan::{Forecast, Layout, Shape, interrupts_by_owner};
use crate::platform::Cut;
use crate::schedule::{MatmulSchedule, ScheduleOptions};
use crate::select::effort::{LINES, allowed};
use crate::select::{Choice, Field, crossing_bound, forecast_within, rates};
use crate::simulate::{CostModel, Effort};

/// Up to this number of processors, what crosses the wires around each rules layouts out.
const MOST_CUTS: usize = 64;
/// Nanoseconds of the wires between two processors.
const CUT: f64 = 400.0;
/// A layout must be faster by more than this fraction: less is rounding.
pub(super) const ROUNDING: f64 = 1e-9;

/// Trials with a budget.
pub(super) struct Trials<'a> {
    pub field: &'a Field<'a>,
    pub shape: Shape,
    /// Seconds of the best so far.
    pub best: f64,
    /// The wires around each processor; empty for many processors.
    cuts: Vec<Cut>,
    effort: Effort,
}

impl<'a> Trials<'a> {
    /// Trials that are to beat `best` seconds, with this part of the budget.
    pub fn new(field: &'a Field<'a>, shape: Shape, best: f64, part: f64) -> Self {
        let p = field.platform.len();
        let around = |i: usize| {
            let inside: Vec<bool> = (0..p).map(|j| i == j).collect();
            field.platform.network.cut(&inside)
        };
        let effort = Effort::new(part * allowed(best));
        let known = if p <= MOST_CUTS { p } else { 0 };
        effort.spend(CUT * (known * p) as f64);
        Self { field, shape, best, cuts: (0..known).map(around).collect(), effort }
    }

    /// False once the budget is spent.
    pub fn may_go_on(&self) -> bool {
        !self.effort.is_spent()
    }

    /// True if a processor with this much of the work (multiply-adds) cannot exchange its data in the best
    /// time, in any layout.
    pub fn is_cut_off(&self, rank: usize, work: f64) -> bool {
        let Some(cut) = self.cuts.get(rank) else { return false };
        let elements = cut.bytes_within(self.best) / self.field.wishes.element as f64;
        crossing_bound(self.shape, work) * (1.0 - ROUNDING) > elements
    }

    /// Spends nanoseconds on something else than simulations; false, and nothing is spent, if that is too much.
    pub fn spend(&mut self, nanoseconds: f64) -> bool {
        let enough = self.effort.left() >= nanoseconds;
        self.effort.spend(if enough { nanoseconds } else { 0.0 });
        enough
    }

    /// Sets this part of the remaining budget aside; [`Trials::put_back`] adds it again.
    pub fn set_aside(&mut self, part: f64) -> f64 {
        let aside = self.effort.left() * part;
        self.effort.extend(-aside);
        aside
    }

    /// Adds what was set aside.
    pub fn put_back(&mut self, aside: f64) {
        self.effort.extend(aside);
    }

    /// The forecast of a layout if it takes less than `seconds`.
    pub fn faster_than(
        &mut self,
        seconds: f64,
        layout: &Layout,
        order: ScheduleOptions,
    ) -> Result<Option<Forecast>> {
        let limit = seconds * (1.0 - ROUNDING);
        let rates = rates(self.field.models, &layout.sizes(), self.field.models_block);
        self.effort.spend(LINES * layout.processors() as f64);
        if self.is_too_slow(layout, &rates, limit) {
            return Ok(None);
        }
        let (network, element) = (&self.field.platform.network, self.field.wishes.element);
        let conditions = CostModel { rates: &rates, network, element };
        forecast_within(&MatmulSchedule::new(layout, order), conditions, limit, &self.effort)
    }

    /// A layout as a candidate if it beats `self.best`, which then becomes its time.
    pub fn attempt(
        &mut self,
        method: &str,
        layout: &Layout,
        order: ScheduleOptions,
    ) -> Result<Option<Choice>> {
        let Some(forecast) = self.faster_than(self.best, layout, order)? else { return Ok(None) };
        self.best = forecast.seconds;
        self.field.choice(method, layout, order, Some(forecast)).map(Some)
    }

    /// True if one processor's work alone takes longer, or what crosses the wires around it.
    fn is_too_slow(&self, layout: &Layout, rates: &[f64], limit: f64) -> bool {
        let k = self.shape.k as f64;
        let busy = |(work, rate): (u128, &f64)| work > 0 && work as f64 / rate > limit;
        let bytes = |lines: u64| lines as f64 * k * self.field.wishes.element as f64;
        if layout.work().into_iter().zip(rates).any(busy) {
            return true;
        }
        // With cuts of the inner dimension, partial sums cross in place of operands.
        layout.boxes().is_none()
            && interrupts_by_owner(layout)
                .into_iter()
                .zip(&self.cuts)
                .any(|(lines, cut)| lines > 0 && bytes(lines) * (1.0 - ROUNDING) > cut.bytes_within(limit))
    }
}
