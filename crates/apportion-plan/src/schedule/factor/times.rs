//! What the parts of a factorisation take, by measurements with blocks of a few widths.

use crate::geometry::Rank;
use crate::model::Model;

/// Measured times of the parts of a factorisation, of every processor.
#[derive(Debug, Clone)]
pub struct FactorTimes {
    blocks: Vec<BlockTimes>,
    /// Of LU, by rank: rows are exchanged in so many elements. Empty if none are.
    exchange: Vec<Model>,
}

/// The times with blocks of one width, by rank. The sizes are numbers of elements.
#[derive(Debug, Clone)]
pub struct BlockTimes {
    /// Columns of a block.
    pub block: u64,
    /// A panel is factored.
    pub panel: Vec<Model>,
    /// One block column is updated with a panel.
    pub column: Vec<Model>,
    /// As many block columns as make a square are updated with a panel.
    pub square: Vec<Model>,
}

impl FactorTimes {
    /// Times with blocks of some widths, and those of exchanges of rows.
    ///
    /// # Panics
    /// If there are no blocks, or two of the same width.
    pub fn new(mut blocks: Vec<BlockTimes>, exchange: Vec<Model>) -> Self {
        blocks.sort_by_key(|times| times.block);
        assert!(!blocks.is_empty(), "times of no block");
        assert!(blocks.windows(2).all(|two| two[0].block < two[1].block), "two times of a block");
        Self { blocks, exchange }
    }

    /// The most multiply-adds per second that were measured of a processor's updates.
    pub(crate) fn fastest(&self, rank: Rank) -> f64 {
        let speeds = |times: &BlockTimes| {
            let points = times.square[rank.0].points().iter();
            points.map(|point| point.speed() * times.block as f64).fold(0.0, f64::max)
        };
        self.blocks.iter().map(speeds).fold(0.0, f64::max)
    }

    /// Seconds for an element of C, which are linear in the width of a block between two that were measured: a part
    /// for each element, and one for each of its multiply-adds.
    fn by_width(&self, width: f64, of: impl Fn(&BlockTimes) -> f64) -> f64 {
        let (first, last) = (&self.blocks[0], &self.blocks[self.blocks.len() - 1]);
        if width <= first.block as f64 {
            return of(first);
        }
        if width >= last.block as f64 {
            return of(last) * width / last.block as f64;
        }
        let next = self.blocks.partition_point(|times| (times.block as f64) < width);
        let (low, high) = (&self.blocks[next - 1], &self.blocks[next]);
        let (from, to) = (low.block as f64, high.block as f64);
        of(low) + (of(high) - of(low)) * (width - from) / (to - from)
    }

    /// Seconds of the factorisation of a panel.
    pub(super) fn panel(&self, rank: Rank, rows: f64, width: f64) -> f64 {
        let one = |times: &BlockTimes| each(&times.panel[rank.0], rows * times.block as f64);
        rows * width * self.by_width(width, one)
    }

    /// Seconds of the update of so many elements in `across` columns with a panel of `width` columns. What is done
    /// once for an update counts less in a wide one.
    pub(super) fn update(&self, rank: Rank, elements: f64, across: f64, width: f64) -> f64 {
        if elements == 0.0 {
            return 0.0;
        }
        let rows = elements / across;
        let one = |times: &BlockTimes| {
            let column = each(&times.column[rank.0], rows * times.block as f64);
            let square = each(&times.square[rank.0], elements);
            square + (column - square).max(0.0) * (times.block as f64 / across).min(1.0)
        };
        elements * self.by_width(width, one)
    }

    /// Seconds of exchanges of rows in so many elements.
    pub(super) fn exchange(&self, rank: Rank, elements: f64) -> f64 {
        self.exchange.get(rank.0).map_or(0.0, |model| elements * each(model, elements))
    }
}

/// Seconds for each of so many elements.
fn each(model: &Model, elements: f64) -> f64 {
    1.0 / model.speed(elements)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Point;

    fn model(each: f64) -> Vec<Model> {
        vec![Model::piecewise("p0", vec![Point::new(100.0, 100.0 * each)], None).unwrap()]
    }

    fn times() -> FactorTimes {
        let of = |block: u64, panel: f64, column: f64, square: f64| BlockTimes {
            block,
            panel: model(panel),
            column: model(column),
            square: model(square),
        };
        FactorTimes::new(vec![of(256, 8.0, 6.0, 5.0), of(32, 2.0, 3.0, 1.0)], model(0.5))
    }

    #[test]
    fn times_are_linear_in_the_width_of_a_block() {
        let (times, one) = (times(), Rank(0));
        assert_eq!(times.panel(one, 10.0, 32.0), 320.0 * 2.0);
        assert_eq!(times.panel(one, 10.0, 256.0), 2560.0 * 8.0);
        assert_eq!(times.panel(one, 10.0, 144.0), 1440.0 * 5.0);
        assert_eq!(times.panel(one, 10.0, 512.0), 5120.0 * 16.0);
        assert_eq!(times.panel(one, 10.0, 8.0), 80.0 * 2.0);
        assert_eq!((times.exchange(one, 6.0), times.fastest(one)), (3.0, 256.0 / 5.0));
    }

    /// A block column costs what one was measured to cost, and many come near to a square.
    #[test]
    fn wide_updates_cost_less_for_each_element() {
        let (times, one) = (times(), Rank(0));
        assert_eq!(times.update(one, 320.0, 32.0, 32.0), 320.0 * 3.0);
        assert_eq!(times.update(one, 3200.0, 64.0, 32.0), 3200.0 * 2.0);
        assert!((times.update(one, 1e6, 3.2e6, 32.0) / 1e6 - 1.0).abs() < 1e-4);
        assert_eq!(times.update(one, 0.0, 0.0, 32.0), 0.0);
    }
}
