//! What steps cost: the work of boxes, and the number of messages.

use super::AdvectSchedule;
use crate::error::{Error, Result};
use crate::geometry::Rank;
use crate::kernels::mpdata::Cells;

/// Messages of all processors that a simulation follows.
const MOST_MESSAGES: u128 = 100_000_000;

impl AdvectSchedule {
    /// Refuses to follow more than about 10^8 messages, all processors together.
    ///
    /// # Errors
    /// Exit code 1; the message names the number of messages.
    pub fn check_size(&self) -> Result<()> {
        let one = |rank| self.plan(Rank(rank)).phases.iter().map(|phase| 2 + phase.incoming.len() as u64);
        let step: u64 = (0..self.boxes.len()).flat_map(one).sum();
        let all = u128::from(step) * u128::from(self.steps);
        if all > MOST_MESSAGES {
            let what = format!("{} time steps have about {all} messages, too many to simulate", self.steps);
            return Err(Error::infeasible(
                what,
                "use fewer `steps`: later ones take as long as those before",
            ));
        }
        Ok(())
    }

    /// The cost of some cells: what every pass computes of them and around them.
    pub(super) fn amount(&self, cells: &Cells, pass: usize) -> f64 {
        if cells.is_empty() {
            return 0.0;
        }
        let (scheme, dimensions) = (self.problem.scheme, self.domain.dimensions());
        let passes = if pass == 0 { 1..=scheme.passes } else { pass..=pass };
        let last = *passes.end();
        let one = |pass: usize| {
            let beyond: usize = (pass + 1..=last).map(|later| scheme.reach(later)).sum();
            let lengths = cells.lengths();
            let computed: f64 = (0..3)
                .map(|axis| {
                    let wider = if self.domain.has[axis] && !(axis == 2 && self.undivided[2]) {
                        2 * beyond
                    } else {
                        0
                    };
                    (lengths[axis] + wider) as f64
                })
                .product();
            computed * scheme.pass_operations(pass, dimensions)
        };
        passes.map(one).sum::<f64>() / scheme.operations(dimensions)
    }
}
