//! The number of steps of a schedule, before any is generated.

use super::MatmulSchedule;
use crate::error::{Error, Result};
use crate::schedule::Flow;

/// Number of steps whose simulation takes minutes.
const MOST_STEPS: u128 = 1_000_000_000;
/// Number of updates that fit into memory together: the broadcast flow sorts them by turns before it starts.
const MOST_UPDATES: u128 = 10_000_000;
/// Up to this number of pairs of rectangles, updates are counted: in less than a second.
const MOST_COUNTED: u128 = 200_000_000;

impl MatmulSchedule {
    /// Refuses a schedule with more than about 10^9 steps, all processors together, or with a number of
    /// small rectangles such that the updates of the broadcast flow do not fit into memory.
    ///
    /// # Errors
    /// Exit code 1; the message names the number of steps and the parameter to change. Those of
    /// [`ScheduleOptions::check_layout`](crate::schedule::ScheduleOptions::check_layout).
    pub fn check_size(&self) -> Result<()> {
        self.order.check_layout(&self.layout)?;
        let rectangles = self.layout.parts().len() as u128;
        let (blocks, processors) = (self.pivot_count() as u128, self.layout.processors() as u128);
        let taken = match self.order.flow {
            // Every processor looks at every turn.
            Flow::Broadcast => processors * self.owners.len() as u128,
            _ => processors,
        };
        let steps = match &self.boxes {
            None => blocks.saturating_mul(rectangles + taken),
            Some(boxes) => boxes.steps(self.order.block),
        };
        let too_many = |what: String, remedy: &str| {
            Err(Error::infeasible(format!("the {} flow has {what}", self.order.flow), remedy))
        };
        if steps > MOST_STEPS {
            let what = format!("about {steps} steps in {blocks} pivot blocks, too many to simulate");
            return too_many(what, "use a larger `block`, or `flow = bulk` for many processors");
        }
        let cuts =
            |lists: &[Vec<crate::plan::Part>]| lists.iter().map(|parts| parts.len() as u128).sum::<u128>();
        let sorted = self.order.flow == Flow::Broadcast && !self.a_stays;
        let bound = rectangles.saturating_mul(cuts(&self.a).min(cuts(&self.b)).min(self.inner.len() as u128));
        let many = || rectangles.pow(2) > MOST_COUNTED || self.updates() > MOST_UPDATES;
        if sorted && bound > MOST_UPDATES && many() {
            let what = format!("up to {bound} updates for {rectangles} rectangles, too many to sort");
            return too_many(what, "use another flow, or larger rectangles");
        }
        Ok(())
    }

    /// The updates that the broadcast flow sorts: pairs of parts of A and B that meet for a rectangle of C.
    /// Ends the count beyond [`MOST_UPDATES`]. O(C R log R) for C rectangles of C and R of A and B.
    fn updates(&self) -> u128 {
        let mut updates = 0;
        for rect in self.rects.iter().flatten() {
            let beside = self.b.iter().flatten().filter(|part| !part.cols.intersect(rect.cols).is_empty());
            let (mut starts, mut ends): (Vec<u64>, Vec<u64>) =
                beside.map(|part| (part.rows.start, part.rows.end)).unzip();
            starts.sort_unstable();
            ends.sort_unstable();
            for part in self.a.iter().flatten().filter(|part| !part.rows.intersect(rect.rows).is_empty()) {
                let begun = starts.partition_point(|start| *start < part.cols.end);
                let ended = ends.partition_point(|end| *end <= part.cols.start);
                updates += (begun - ended) as u128;
            }
            if updates > MOST_UPDATES {
                break;
            }
        }
        updates
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::shapes::LayoutMethod;
    use crate::plan::{Shape, shapes};
    use crate::schedule::ScheduleOptions;

    /// A long inner dimension is refused before a step is made, and generated step by step where it is not.
    #[test]
    fn long_inner_dimensions() {
        let layout = shapes::Rows::default()
            .layout(Shape::new(10, 1_000_000_000_000, 10, "test").unwrap(), &[1.0, 1.0])
            .unwrap();
        for flow in Flow::ALL {
            let with = |block| MatmulSchedule::new(&layout, ScheduleOptions::new(flow, block));
            let refused = with(256).check_size().unwrap_err();
            assert!(refused.to_string().contains("`block`"), "{refused}");
            with(1 << 30).check_size().unwrap();
        }
    }

    #[test]
    fn ten_thousand_processors() {
        let shape = Shape::new(90_000, 90_000, 90_000, "test").unwrap();
        let layout = shapes::Columns::default().layout(shape, &[1.0; 10_000]).unwrap();
        let check = |flow| MatmulSchedule::new(&layout, ScheduleOptions::new(flow, 256)).check_size();
        check(Flow::OneToAll).unwrap();
        check(Flow::Ring).unwrap();
        // Each strip of C has an update for each strip of A.
        assert_eq!(check(Flow::Broadcast).unwrap_err().exit_code(), 1);
        let grid = shapes::Grid::default().layout(shape, &[1.0; 10_000]).unwrap();
        let schedule = MatmulSchedule::new(&grid, ScheduleOptions::new(Flow::Broadcast, 256));
        // Each of 100 x 100 rectangles has one for each column of the grid.
        assert_eq!(schedule.updates(), 100 * 100 * 100);
    }
}
