//! The statistics kept of the draws.

use super::depth::Depth;
use super::subsets::Priced;
use crate::error::{Error, Result};
use crate::explore::Study;
use serde::Serialize;

/// Ratios of cost to lower bound.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StudyRatio {
    /// Their mean.
    pub mean: f64,
    /// Half the width of the mean's 95 % confidence interval.
    pub ci: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

/// The draws for which squares on the diagonal cost less than columns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StudyCorner {
    /// Number of these draws.
    pub draws: u64,
    /// The squares' ratios on these draws.
    pub ratio: StudyRatio,
    /// The columns' ratios on the same draws.
    pub columns: StudyRatio,
}

/// The study of one number of processors.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StudyRow {
    /// Number of processors.
    pub processors: usize,
    /// Number of draws counted, without those that are too unequal.
    pub draws: u64,
    /// Optimal columns.
    pub columns: StudyRatio,
    /// Squares on the diagonal, where they cost less; `None` if they never do.
    pub corner: Option<StudyCorner>,
    /// The cheaper of columns and squares.
    pub best: StudyRatio,
    /// The best layout that the portfolio finds, on the searched draws, and the columns' ratios on these.
    pub searched: Option<StudySearched>,
    /// Plans on random networks, if any were drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subsets: Option<StudySubsets>,
    /// Products with a long inner dimension, if any were drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boxes: Option<StudyDepth>,
}

/// Volume over the least volume of any plan with the same shares, on products with m : k : n from 1:1:1 to
/// 1:64:1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StudyDepth {
    /// Number of products.
    pub draws: u64,
    /// Layouts that may cut the inner dimension.
    pub boxes: StudyRatio,
    /// The best layouts that do not.
    pub flat: StudyRatio,
}

/// Plans of a product on random machines of two levels, where `auto` may leave processors out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StudySubsets {
    /// Number of machines.
    pub draws: u64,
    /// Number of machines on which some processors stay out.
    pub left_out: u64,
    /// The time of the best plan for all processors over that of `auto`.
    pub gain: StudyRatio,
    /// The forecast over the time that no plan can beat.
    pub over_bound: StudyRatio,
}

/// The draws that the portfolio laid out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StudySearched {
    /// Number of these draws.
    pub draws: u64,
    /// The portfolio's ratios.
    pub ratio: StudyRatio,
    /// The columns' ratios on the same draws.
    pub columns: StudyRatio,
}

/// Sums of ratios minus 1, which keeps rounding errors small.
#[derive(Debug, Clone, Copy)]
struct Ratios {
    count: u64,
    sum: f64,
    squares: f64,
    min: f64,
    max: f64,
}

impl Default for Ratios {
    fn default() -> Self {
        Self { count: 0, sum: 0.0, squares: 0.0, min: f64::INFINITY, max: 0.0 }
    }
}

impl Ratios {
    fn take(&mut self, ratio: f64) {
        self.count += 1;
        self.sum += ratio - 1.0;
        self.squares += (ratio - 1.0) * (ratio - 1.0);
        self.min = self.min.min(ratio);
        self.max = self.max.max(ratio);
    }

    fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares += other.squares;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    fn summary(&self) -> Option<StudyRatio> {
        let n = self.count as f64;
        let mean = self.sum / n;
        let variance = (self.squares / n - mean * mean).max(0.0) * n / (n - 1.0).max(1.0);
        let ci = 1.96 * (variance / n).sqrt();
        (self.count > 0).then_some(StudyRatio { mean: 1.0 + mean, ci, min: self.min, max: self.max })
    }
}

/// The sums of some draws.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tally {
    columns: Ratios,
    best: Ratios,
    corner: Ratios,
    columns_at_corner: Ratios,
    searched: Ratios,
    columns_at_searched: Ratios,
    gain: Ratios,
    over_bound: Ratios,
    left_out: u64,
    boxes: Ratios,
    flat: Ratios,
}

impl Tally {
    /// Adds a product with a long inner dimension.
    pub(super) fn depth(&mut self, depth: Depth) {
        self.boxes.take(depth.boxes);
        self.flat.take(depth.flat);
    }

    /// Adds a machine.
    pub(super) fn machine(&mut self, priced: Priced) {
        self.gain.take(priced.gain);
        self.over_bound.take(priced.over_bound);
        self.left_out += u64::from(priced.left_out);
    }

    /// Adds a draw, given its costs and its bound.
    pub(super) fn take(&mut self, columns: f64, corner: f64, bound: f64) {
        self.columns.take(columns / bound);
        self.best.take(columns.min(corner) / bound);
        if corner < columns {
            self.corner.take(corner / bound);
            self.columns_at_corner.take(columns / bound);
        }
    }

    /// Adds a searched draw.
    pub(super) fn search(&mut self, columns: f64, searched: f64, bound: f64) {
        self.searched.take(searched / bound);
        self.columns_at_searched.take(columns / bound);
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.columns.add(&other.columns);
        self.best.add(&other.best);
        self.corner.add(&other.corner);
        self.columns_at_corner.add(&other.columns_at_corner);
        self.searched.add(&other.searched);
        self.columns_at_searched.add(&other.columns_at_searched);
        self.gain.add(&other.gain);
        self.over_bound.add(&other.over_bound);
        self.left_out += other.left_out;
        self.boxes.add(&other.boxes);
        self.flat.add(&other.flat);
    }

    pub(super) fn row(&self, processors: usize, study: &Study) -> Result<StudyRow> {
        let (Some(columns), Some(best)) = (self.columns.summary(), self.best.summary()) else {
            let most = study.most_unequal.unwrap_or(f64::INFINITY);
            return Err(Error::infeasible(
                format!("no draw of {processors} speeds has a ratio of at most {most}"),
                "raise `most_unequal` or `draws`",
            ));
        };
        let corner = self.corner.summary().zip(self.columns_at_corner.summary());
        let searched = self.searched.summary().zip(self.columns_at_searched.summary());
        Ok(StudyRow {
            processors,
            draws: self.columns.count,
            columns,
            corner: corner.map(|(ratio, columns)| StudyCorner { draws: self.corner.count, ratio, columns }),
            best,
            searched: searched.map(|(ratio, columns)| StudySearched {
                draws: self.searched.count,
                ratio,
                columns,
            }),
            subsets: self.gain.summary().zip(self.over_bound.summary()).map(|(gain, over_bound)| {
                StudySubsets { draws: self.gain.count, left_out: self.left_out, gain, over_bound }
            }),
            boxes: self.boxes.summary().zip(self.flat.summary()).map(|(boxes, flat)| StudyDepth {
                draws: self.boxes.count,
                boxes,
                flat,
            }),
        })
    }
}
