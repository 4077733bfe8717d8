//! Decides whether repartitioning the rest of a product pays.
//!
//! The measured speeds scale the models at all sizes, as in DFPA when a processor has changed (Lastovetsky
//! and Reddy 2009). A new layout must save more time than noise explains and than moving its parts costs.
//!
//! Nobody knows how long the present speeds will last. They are assumed to last once more as long as they
//! have lasted, as in the problem of renting or buying skis (Karlin et al. 1988, DOI 10.1007/BF01762111):
//! what moving saves in that time must exceed its cost. So a change is followed at once where moving costs
//! nothing. Otherwise it is followed when it has cost as much as moving does, and a change that ends just
//! then costs twice that at most.

use crate::error::Result;
use crate::geometry::{Rank, Span};
use crate::model::{Machine, Model, Point};
use crate::plan::shapes::{Method, MethodOptions};
use crate::plan::{Layout, Part, shares};
use crate::platform::{LinkBookings, Load, Platform, Topology};
use crate::schedule::{DataPath, MatmulSchedule, ScheduleOptions};
use crate::select::candidates::capped;
use crate::select::check_caps;
use crate::select::{affordable, communication_of};
use crate::simulate::{CostModel, simulate};

/// Minimum fraction of the remaining time that a new layout must save, cost of moving included. Another
/// method than the present one must save as much again.
const WORTH_WHILE: f64 = 0.02;

/// Assumed bytes per second that ranks pack and unpack: a conservative guess, used for the decision only.
const COPYING: f64 = 2e9;

/// Inputs that do not change during a product.
#[derive(Debug, Clone, Copy)]
pub struct Rebalance<'a> {
    /// The machine, with its speeds before this run measured any.
    pub machine: &'a Machine,
    /// Flow, block and look-ahead.
    pub order: ScheduleOptions,
    /// Bytes of one element.
    pub element: u64,
    /// How processors access the operands of other processors.
    pub path: DataPath,
}

/// What is known of the present speeds.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// The factor by which each processor is slower than its model.
    pub slower: Vec<f64>,
    /// The saving, as a fraction of the time that is left with it, that noise alone could suggest.
    pub doubt: f64,
    /// Seconds for which they have been as they are.
    pub lasted: f64,
}

/// A better layout of the rest.
#[derive(Debug, Clone)]
pub struct Proposal {
    /// The method that laid it out.
    pub method: String,
    /// The layout.
    pub layout: Layout,
    /// Seconds of the rest that it saves, without the cost of moving.
    pub gain: f64,
    /// Predicted seconds of moving.
    pub cost: f64,
    /// What changes its owner.
    pub moves: Moves,
}

/// Elements that change their owner, `[to][from]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moves {
    /// Of C and of A: strided.
    pub horizontal: Vec<Vec<u64>>,
    /// Of B.
    pub vertical: Vec<Vec<u64>>,
}

impl Moves {
    /// Moves from one layout to another, for the inner indices `rest` of A and B. O(R^2) for R rectangles.
    pub fn between(old: &Layout, new: &Layout, rest: Span) -> Self {
        let p = old.processors();
        let mut moves = Self { horizontal: vec![vec![0; p]; p], vertical: vec![vec![0; p]; p] };
        let add = |table: &mut Vec<Vec<u64>>, old: &[Part], new: &[Part]| {
            for (from, to) in old.iter().flat_map(|from| new.iter().map(move |to| (from, to))) {
                if from.owner != to.owner {
                    table[to.owner.0][from.owner.0] += from.rect().intersect(to.rect()).area();
                }
            }
        };
        let of_a = |layout: &Layout| -> Vec<Part> {
            layout.parts_of_a().into_iter().map(|p| Part { cols: p.cols.intersect(rest), ..p }).collect()
        };
        let of_b = |layout: &Layout| -> Vec<Part> {
            layout.parts_of_b().into_iter().map(|p| Part { rows: p.rows.intersect(rest), ..p }).collect()
        };
        add(&mut moves.horizontal, old.parts(), new.parts());
        add(&mut moves.horizontal, &of_a(old), &of_a(new));
        add(&mut moves.vertical, &of_b(old), &of_b(new));
        moves
    }

    /// Elements that one processor sends to another.
    pub fn elements(&self, from: usize, to: usize) -> u64 {
        self.horizontal[to][from] + self.vertical[to][from]
    }

    /// All elements.
    pub fn total(&self) -> u64 {
        self.horizontal.iter().chain(&self.vertical).flatten().sum()
    }

    /// Time at which each processor has received all its parts over the network, if all sends start at 0.
    pub fn arrivals(&self, platform: &Platform, element: u64) -> Vec<f64> {
        let p = self.horizontal.len();
        let mut wires = LinkBookings::new(&platform.network);
        let mut arrivals = vec![0.0_f64; p];
        // To the next ranks in cyclic order, so that not all processors send to the same receiver first.
        for (distance, from) in (1..p).flat_map(|d| (0..p).map(move |from| (d, from))) {
            let to = (from + distance) % p;
            let bytes = |elements: u64| (elements * element) as f64;
            let load = Load {
                horizontal: bytes(self.horizontal[to][from]),
                vertical: bytes(self.vertical[to][from]),
            };
            if load.bytes() > 0.0 {
                let transit = wires.book(Rank(from), Rank(to), load, 0.0);
                arrivals[to] = arrivals[to].max(transit.arrival);
            }
        }
        arrivals
    }
}

impl Rebalance<'_> {
    /// A layout that finishes the inner indices `rest` sooner, moving included, or `None` to keep the current
    /// one.
    ///
    /// # Errors
    /// As [`simulate`]; the models' caps cannot hold the matrix.
    pub fn proposal(
        &self,
        layout: &Layout,
        method: &str,
        rest: Span,
        observed: &Observed,
    ) -> Result<Option<Proposal>> {
        let machine = self.machine.with_models(scaled(&self.machine.models, &observed.slower)?);
        let platform = &machine.platform;
        let stay = self.seconds(layout, rest, &machine)?;
        let shape = layout.shape();
        let areas = shares::fpm(&capped(shape, &machine, self.element, 1.0)?, shape.elements())?;
        let best = machine.rates(&areas).iter().sum::<f64>();
        let least = shape.elements() as f64 * rest.len() as f64 / best;
        let too_little = |gain: f64| gain < WORTH_WHILE * stay || gain < observed.doubt * (stay - gain);
        if too_little(stay - least) {
            return Ok(None);
        }
        let weights: Vec<f64> = areas.iter().map(|&a| a as f64).collect();
        let centre = match platform.network.topology {
            Topology::Star { centre } => Some(centre.0),
            _ => None,
        };
        let method_options = MethodOptions {
            communication: communication_of(&platform.network),
            centre,
            ..MethodOptions::default()
        };
        let present = method.parse::<Method>().ok();
        let others = Method::candidates().filter(|m| Some(*m) != present);
        let mut found: Option<Proposal> = None;
        for method in present.into_iter().chain(others) {
            let Ok(layout_by) = method.layout(shape, &weights, &method_options) else { continue };
            if check_caps(&layout_by, self.order, platform, self.element, self.path).is_err() {
                continue;
            }
            let moves = Moves::between(layout, &layout_by, rest);
            // Threads find their parts where they are.
            let packed = if self.path == DataPath::Packed { moves.total() } else { 0 };
            let copied = packed as f64 * self.element as f64 / COPYING;
            let cost = moves.arrivals(platform, self.element).into_iter().fold(copied, f64::max);
            let gain = stay - self.seconds(&layout_by, rest, &machine)?;
            let beyond = WORTH_WHILE * stay;
            if found.as_ref().is_none_or(|best| gain - cost > best.gain - best.cost + beyond) {
                found = Some(Proposal { method: method.to_string(), layout: layout_by, gain, cost, moves });
            }
        }
        let soon = (observed.lasted / stay).min(1.0);
        Ok(found.filter(|p| !too_little(p.gain - p.cost) && p.gain * soon > p.cost))
    }

    /// The forecast of the inner indices `rest` on a layout.
    fn seconds(&self, layout: &Layout, rest: Span, machine: &Machine) -> Result<f64> {
        let shares = layout.shares();
        let rates = machine.rates(&shares);
        let p = shares.len();
        let pivots = rest.len().div_ceil(self.order.block) as usize;
        if !affordable(p, layout.shape(), self.order.block, 1) || p * p * pivots > 100_000 {
            // Simulating would take too long: all processors wait for the decision.
            let own = |(share, rate): (&u64, &f64)| *share as f64 * rest.len() as f64 / rate;
            return Ok(shares.iter().zip(&rates).filter(|(s, _)| **s > 0).map(own).fold(0.0, f64::max));
        }
        let network = &machine.platform.network;
        let cost_model = CostModel { rates: &rates, network, element: self.element };
        Ok(simulate(&MatmulSchedule::new(layout, self.order).within(rest), cost_model)?.seconds())
    }
}

/// The models of processors that are slower by these factors.
pub(super) fn scaled(models: &[Model], slower: &[f64]) -> Result<Vec<Model>> {
    let one = |(model, factor): (&Model, &f64)| {
        if *factor == 1.0 {
            return Ok(model.clone());
        }
        let points = model.points().iter().map(|p| Point::new(p.size, p.seconds * factor)).collect();
        Model::new(model.processor(), model.interpolation(), points, model.max_size())
    };
    models.iter().zip(slower).map(one).collect()
}
