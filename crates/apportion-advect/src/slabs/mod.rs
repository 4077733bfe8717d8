//! Fields larger than memory: a grid is advected slab by slab, from one file into the next.
//!
//! A slab is a window of planes across the first axis with which some steps are computed in memory. What is
//! beyond its cut ends is not known, and what is computed there is wrong: with every step the error moves
//! inwards by the scheme's halo. The planes that it has not reached are kept. They are those of the whole
//! grid, bit for bit. More steps a sweep move fewer bytes and compute more planes twice.

mod files;
mod memory;
mod run;
#[cfg(test)]
mod tests;

pub(crate) use files::DiskUse;
pub(crate) use files::{Band, CourantFile, check_flow_in_file, each_band};
pub(crate) use memory::{slab_bytes, tallest_slab};
pub(crate) use run::SlabRun;

use crate::AdvectProblem;
use apportion::geometry::Span;
use apportion::kernels::mpdata::Boundary;

/// Numbers of steps a sweep that are compared.
const MOST_COMPARED: u64 = 10_000;

/// How a grid is cut into slabs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slabs {
    /// Planes of the grid across its first axis.
    planes: u64,
    /// Planes of a slab, those that are not kept included.
    height: u64,
    /// Planes by which the error of a cut end moves with a step.
    halo: u64,
    periodic: bool,
}

/// The place of a slab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    /// The grid's plane that is the slab's first one; negative beyond the beginning of a periodic axis.
    pub(crate) first: i64,
    /// The grid's planes that are kept.
    pub(crate) keep: Span,
}

/// What sweeps cost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SlabCosts {
    /// Seconds to advance a cell by a step.
    pub cell: f64,
    /// Seconds to read or write a byte.
    pub byte: f64,
    /// Bytes that are read for a cell of a slab: its field and its Courant numbers.
    pub read: f64,
    /// Bytes that are written for a cell of the grid.
    pub written: f64,
}

impl Slabs {
    /// Slabs of this number of planes, at most those of the grid.
    pub(crate) fn new(problem: &AdvectProblem, height: u64) -> Self {
        let planes = problem.sizes[0] as u64;
        let height = height.clamp(1, planes);
        let periodic = problem.boundary[0] == Boundary::Periodic;
        Self { planes, height, halo: problem.scheme.halo() as u64, periodic }
    }

    /// Planes of the lowest slab that keeps any.
    pub(crate) fn least(problem: &AdvectProblem) -> u64 {
        (2 * problem.scheme.halo() as u64 + 1).min(problem.sizes[0] as u64)
    }

    /// Planes of a slab.
    pub(crate) fn height(&self) -> u64 {
        self.height
    }

    /// True if one slab is the whole grid.
    pub(crate) fn is_whole(&self) -> bool {
        self.height == self.planes
    }

    /// The most steps after which a slab keeps planes.
    pub(crate) fn most_steps(&self) -> u64 {
        if self.is_whole() { u64::MAX } else { (self.height - 1) / (2 * self.halo) }
    }

    /// The advection of a slab as that of a grid of its own. A cut end is extrapolated, or is as the real
    /// ends of the axis are: it does not matter.
    pub(crate) fn problem(&self, whole: &AdvectProblem) -> AdvectProblem {
        let mut problem = whole.clone();
        problem.sizes[0] = self.height as usize;
        if self.periodic && !self.is_whole() {
            problem.boundary[0] = Boundary::Extrapolated;
        }
        problem
    }

    /// The slabs of a sweep of some steps, by the planes that they keep.
    ///
    /// # Panics
    /// If there are more steps than [`most_steps`](Self::most_steps).
    pub(crate) fn windows(&self, steps: u64) -> impl Iterator<Item = Window> + use<> {
        assert!(steps <= self.most_steps(), "{steps} steps leave nothing of a slab");
        let Self { planes, height, periodic, .. } = *self;
        let whole = self.is_whole();
        let margin = if whole { 0 } else { steps * self.halo };
        let mut next = 0;
        std::iter::from_fn(move || {
            if next == planes {
                return None;
            }
            let before = next as i64 - margin as i64;
            let first = if periodic { before } else { before.clamp(0, (planes - height) as i64) };
            let end = first + height as i64;
            // An end of the grid is not cut.
            let end = if !periodic && end == planes as i64 { planes } else { (end - margin as i64) as u64 };
            let keep = Span::new(next, end.min(planes));
            next = keep.end;
            Some(Window { first, keep })
        })
    }

    /// The number of slabs of such a sweep.
    pub(crate) fn count(&self, steps: u64) -> u64 {
        if self.is_whole() {
            return 1;
        }
        let kept = self.height - 2 * steps * self.halo;
        if self.periodic {
            self.planes.div_ceil(kept)
        } else {
            1 + (self.planes - self.height).div_ceil(kept)
        }
    }

    /// The number of steps a sweep, at most `most`, with the least time for each step. `cells` is the number
    /// of cells of a plane.
    pub(crate) fn best_steps(&self, most: u64, cells: f64, costs: SlabCosts) -> u64 {
        let most = most.max(1);
        if self.is_whole() {
            return most;
        }
        let step = |steps: u64| {
            let swept = (self.count(steps) * self.height) as f64;
            let moved = swept * costs.read + self.planes as f64 * costs.written;
            cells * (swept * costs.cell + moved * costs.byte / steps as f64)
        };
        let all = 1..=most.min(self.most_steps()).min(MOST_COMPARED);
        all.min_by(|a, b| step(*a).total_cmp(&step(*b))).unwrap_or(1)
    }

    /// The lowest slabs of which a sweep of some steps has no more than of these.
    #[must_use]
    pub(crate) fn lowered(&self, steps: u64) -> Self {
        if self.is_whole() {
            return *self;
        }
        let (mut low, mut high) = (2 * steps * self.halo + 1, self.height);
        while low < high {
            let middle = low + (high - low) / 2;
            let fewer = Self { height: middle, ..*self };
            if fewer.count(steps) <= self.count(steps) { high = middle } else { low = middle + 1 }
        }
        Self { height: high, ..*self }
    }
}
