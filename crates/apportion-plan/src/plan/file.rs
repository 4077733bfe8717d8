//! The plan, and its file `plan.json`. Reading is strict: unknown fields and inconsistent values are errors.
//! The metrics of a layout are not read from the file but recomputed.

mod raw;

use super::shares::Line;
use super::{Border, Factors, GraphParts, Layout, Metrics, Problem, TileMap};
use crate::error::{Error, Result};
use crate::geometry::Rank;
use crate::input::{Object, name_defect, read_text};
use crate::schedule::FactorSchedule;
use raw::{RawPart, RawPlan, entries, of_entries};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

/// A division of a problem among processors, as `partition` makes it and `plan.json` stores it.
///
/// [`Plan::of_layout`] makes the plan of a matrix product, [`Plan::of_grid`] that of a stencil's domain,
/// [`Plan::of_factorisation`] that of a factorisation, [`Plan::of_graph`] that of a graph, and [`Plan::of_units`] that
/// of independent units.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The method that made the plan.
    pub method: String,
    /// The processors' names, by rank.
    pub processors: Vec<String>,
    /// The number of units, of elements of C or of the factored matrix, of cells of the domain, or of vertices, of each
    /// processor, by rank.
    pub shares: Vec<u64>,
    /// How the problem is divided.
    pub division: Division,
    /// The costs of the plan.
    pub metrics: Metrics,
    /// The predicted times, if speeds are known.
    pub forecast: Option<Forecast>,
    /// If only ratios of speeds are known: each processor's computing time relative to the ideal time, by
    /// rank.
    pub relative_times: Option<Vec<f64>>,
    /// What the problem takes without a plan, if speeds are known.
    pub baselines: Option<Baselines>,
    /// Of units that were run: the time of each processor, by rank, as far as it is known. With it, a run can follow
    /// the plan and still divide again.
    pub lines: Option<Vec<Option<Line>>>,
    /// Of units whose processors could change places: the ranks in the order of their parts. Without it, parts are in
    /// the order of the ranks.
    pub order: Option<Vec<Rank>>,
    /// Of units of different cost, and of vertices: the cost of each processor's part, by rank.
    pub costs: Option<Vec<f64>>,
}

/// How a problem is divided.
#[derive(Debug, Clone, PartialEq)]
pub enum Division {
    /// Independent units: the shares say everything.
    Units {
        /// Number of units.
        n: u64,
    },
    /// A matrix product: the layout of C, and with it of A and B; of a symmetric C = A A^T that of its lower triangle.
    Matmul(Layout),
    /// A stencil's domain: the layout of its m x n cells; k is 1.
    Grid(Layout),
    /// A graph. Which vertex is whose is in a file of its own.
    Graph {
        /// Number of vertices.
        n: u64,
        /// Number of edges.
        edges: u64,
        /// What processors send to each other in a step.
        borders: Vec<Border>,
    },
    /// A factorisation of a square matrix: the layout of its n x n elements; k is 1.
    Factorisation {
        /// Into which factors.
        factors: Factors,
        /// Columns of a block.
        block: u64,
        /// Of block columns, or of tiles of a symmetric matrix.
        layout: Layout,
        /// Who factors each block column, where that is not always its owner.
        panels: Option<Vec<Rank>>,
    },
}

/// Predicted times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forecast {
    /// Seconds from the start of the first step to the end of the last.
    pub seconds: f64,
    /// Seconds that each processor computes, by rank.
    pub compute: Vec<f64>,
    /// Seconds that each processor waits for data in transit, by rank.
    pub communicate: Vec<f64>,
}

/// A forecast that misses by no more than this fraction is as good as they come.
const TELLING: f64 = 0.02;

/// Predicted seconds of the same problem without a plan. A plan that takes longer than the better of the two
/// does not pay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baselines {
    /// The fastest processor with all of the problem; `None` if none can hold it.
    pub fastest_alone: Option<FastestAlone>,
    /// Seconds with an equal part for each processor; `None` if that does not fit into their memory.
    pub even_split: Option<f64>,
}

/// The processor that is fastest with all of a problem.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FastestAlone {
    /// Its name.
    pub processor: String,
    /// Its seconds.
    pub seconds: f64,
}

impl Baselines {
    /// The shorter of the two times.
    pub fn best(&self) -> Option<f64> {
        let alone = self.fastest_alone.as_ref().map(|alone| alone.seconds);
        alone.into_iter().chain(self.even_split).min_by(f64::total_cmp)
    }

    /// How many times as fast a run of `seconds` was as the better of the two. `None` where that is not known: the
    /// `forecast` of the run, of the same speeds and links as these times, missed it by more.
    pub fn gain_of_run(&self, seconds: f64, forecast: f64) -> Option<f64> {
        let gain = self.best()? / seconds;
        let [gap, miss] = [gain, forecast / seconds].map(|ratio: f64| ratio.max(1.0 / ratio));
        (gain.is_finite() && (miss <= 1.0 + TELLING || gap > miss)).then_some(gain)
    }

    /// The times of `count` such problems.
    #[must_use]
    pub fn times(self, count: f64) -> Self {
        let alone = |alone: FastestAlone| FastestAlone { seconds: alone.seconds * count, ..alone };
        Self {
            fastest_alone: self.fastest_alone.map(alone),
            even_split: self.even_split.map(|seconds| seconds * count),
        }
    }
}

impl Plan {
    /// The plan of a matrix product, without a forecast. `processors` holds the names by rank; `imbalance` is
    /// the largest time over the ideal one (1.0: all processors finish together).
    pub fn of_layout(
        method: impl Into<String>,
        processors: Vec<String>,
        layout: Layout,
        imbalance: f64,
    ) -> Self {
        let mut plan = Self::candidate(method, processors, layout, imbalance);
        plan.fill_in();
        plan
    }

    /// [`of_layout`](Self::of_layout) without the table of directions, for plans that are only compared.
    pub fn candidate(
        method: impl Into<String>,
        processors: Vec<String>,
        layout: Layout,
        imbalance: f64,
    ) -> Self {
        let metrics = Metrics::without_table(&layout, imbalance);
        Self::of(method, processors, layout.shares(), metrics, Division::Matmul(layout))
    }

    /// The plan of a stencil's domain of m x n cells, without a forecast. `layout` covers a shape with k = 1.
    ///
    /// # Panics
    /// If k is not 1.
    pub fn of_grid(
        method: impl Into<String>,
        processors: Vec<String>,
        layout: Layout,
        imbalance: f64,
    ) -> Self {
        assert_eq!(layout.shape().k, 1, "a domain has rows and columns only");
        let metrics = Metrics::of_grid(&layout, imbalance);
        Self::of(method, processors, layout.shares(), metrics, Division::Grid(layout))
    }

    /// The plan of a factorisation, without a forecast. `volume` is the number of elements that are
    /// [received](FactorSchedule::received).
    pub(crate) fn of_factorisation(
        method: impl Into<String>,
        processors: Vec<String>,
        schedule: &FactorSchedule,
        volume: u64,
        imbalance: f64,
    ) -> Self {
        let (factors, blocks) = (schedule.factors(), schedule.blocks());
        let layout = blocks.layout();
        let metrics = Metrics { volume: Some(volume), ..Metrics::of_units(imbalance) };
        let (shares, panels) = (layout.shares(), blocks.panels().map(<[Rank]>::to_vec));
        let division = Division::Factorisation { factors, block: blocks.block(), layout, panels };
        Self::of(method, processors, shares, metrics, division)
    }

    /// The plan of a graph, without a forecast; `imbalance` as for [`of_units`](Self::of_units).
    pub fn of_graph(
        method: impl Into<String>,
        processors: Vec<String>,
        parts: GraphParts,
        imbalance: f64,
    ) -> Self {
        let GraphParts { edges, edge_cut, vertices, weights, borders } = parts;
        let volume = borders.iter().map(|border| border.vertices).sum();
        let metrics = Metrics { edge_cut, volume: Some(volume), ..Metrics::of_units(imbalance) };
        let division = Division::Graph { n: vertices.iter().sum(), edges, borders };
        Self { costs: Some(weights), ..Self::of(method, processors, vertices, metrics, division) }
    }

    /// The plan of independent units, without a forecast: `shares[i]` units for `processors[i]`. `imbalance`
    /// is the largest time over the ideal one (1.0: all processors finish together).
    pub fn of_units(
        method: impl Into<String>,
        processors: Vec<String>,
        shares: Vec<u64>,
        imbalance: f64,
    ) -> Self {
        let division = Division::Units { n: shares.iter().sum() };
        Self::of(method, processors, shares, Metrics::of_units(imbalance), division)
    }

    fn of(
        method: impl Into<String>,
        processors: Vec<String>,
        shares: Vec<u64>,
        metrics: Metrics,
        division: Division,
    ) -> Self {
        Self {
            method: method.into(),
            processors,
            shares,
            metrics,
            division,
            forecast: None,
            relative_times: None,
            baselines: None,
            lines: None,
            order: None,
            costs: None,
        }
    }

    /// The problem that this plan divides.
    pub fn problem(&self) -> Problem {
        match &self.division {
            Division::Units { n } => Problem::Units { n: *n },
            Division::Graph { n, edges, .. } => Problem::Graph { n: *n, edges: *edges },
            Division::Matmul(layout) if layout.is_triangular() => {
                Problem::Syrk { n: layout.shape().n, k: layout.shape().k }
            }
            Division::Matmul(layout) => Problem::Matmul(layout.shape()),
            Division::Grid(layout) => Problem::Grid { m: layout.shape().m, n: layout.shape().n },
            Division::Factorisation { factors, block, layout, .. } => {
                Problem::Factorisation { factors: *factors, n: layout.shape().n, block: *block }
            }
        }
    }

    /// The factors and the parts of the processors.
    ///
    /// # Errors
    /// The plan divides another problem: exit code 2.
    pub fn blocks(&self) -> Result<(Factors, TileMap)> {
        match &self.division {
            Division::Factorisation { factors, block, layout, panels } => {
                let blocks = TileMap::of_layout(*factors, layout, *block)?;
                let blocks = match panels {
                    Some(panels) => blocks.factored_by(panels.clone())?,
                    None => blocks,
                };
                Ok((*factors, blocks))
            }
            _ => Err(Error::input("plan", "is of no factorisation", "use the plan of a factorisation")),
        }
    }

    /// The same plan of a factorisation whose panels are factored by the owners of the block columns.
    ///
    /// # Errors
    /// The plan divides another problem: exit code 2.
    pub fn with_panels_by_owners(self) -> Result<Self> {
        let (factors, blocks) = self.blocks()?;
        let schedule = FactorSchedule::new(factors, blocks.factored_by_owners());
        let Self { method, processors, metrics, .. } = self;
        let volume = schedule.received().iter().sum();
        let plan = Self::of_factorisation(method, processors, &schedule, volume, metrics.imbalance);
        let Self { forecast, relative_times, baselines, .. } = self;
        let plan = Self { forecast, relative_times, baselines, ..plan };
        Ok(plan.with_time_bound(metrics.time_bound))
    }

    /// The layout of C.
    ///
    /// # Errors
    /// The plan divides independent units, which have no layout, or a stencil's domain: exit code 2.
    pub fn layout(&self) -> Result<&Layout> {
        match &self.division {
            Division::Matmul(layout) => Ok(layout),
            Division::Units { n } => {
                let place = format!("plan of {n} units");
                Err(Error::input(place, "has no layout", "use the plan of a matrix product"))
            }
            Division::Graph { n, .. } => {
                let place = format!("plan of a graph of {n} vertices");
                Err(Error::input(place, "has no layout", "use the plan of a matrix product"))
            }
            Division::Grid(layout) => {
                let place = format!("plan of {} x {} cells", layout.shape().m, layout.shape().n);
                Err(Error::input(place, "is a stencil's domain", "use the plan of a matrix product"))
            }
            Division::Factorisation { layout, .. } => {
                let n = layout.shape().n;
                let place = format!("plan of a factorisation of {n} x {n} elements");
                Err(Error::input(place, "is of no product", "use the plan of a matrix product"))
            }
        }
    }

    /// The units of each processor, by rank: contiguous ranges in the order of the ranks, or in that of the plan.
    pub fn ranges(&self) -> Vec<Range<u64>> {
        let mut ranges = vec![0..0; self.shares.len()];
        let mut from = 0;
        for rank in self.ranks_in_order() {
            let to = from + self.shares[rank];
            ranges[rank] = from..to;
            from = to;
        }
        ranges
    }

    /// The ranks in the order of their units.
    pub fn ranks_in_order(&self) -> Vec<usize> {
        match &self.order {
            Some(order) => order.iter().map(|rank| rank.0).collect(),
            None => (0..self.shares.len()).collect(),
        }
    }

    /// The sizes at which speed functions are evaluated, by rank: the shares, except for a layout that cuts
    /// the inner dimension ([`Layout::sizes`]).
    pub fn sizes(&self) -> Vec<u64> {
        self.rectangles().map_or_else(|| self.shares.clone(), Layout::sizes)
    }

    /// The names of the processors without a share, by rank.
    pub fn idle_processors(&self) -> Vec<&str> {
        let names = self.processors.iter().zip(&self.shares);
        names.filter(|(_, share)| **share == 0).map(|(name, _)| name.as_str()).collect()
    }

    /// The rectangles of C, of a domain or of a factored matrix; `None` for units.
    pub fn rectangles(&self) -> Option<&Layout> {
        match &self.division {
            Division::Matmul(layout) | Division::Grid(layout) | Division::Factorisation { layout, .. } => {
                Some(layout)
            }
            Division::Units { .. } | Division::Graph { .. } => None,
        }
    }

    /// A plan with the same method, processors and imbalance, for another layout; its problem may differ.
    pub fn laid_out(&self, layout: Layout) -> Self {
        let (method, processors) = (self.method.clone(), self.processors.clone());
        match self.division {
            Division::Grid(_) => Self::of_grid(method, processors, layout, self.metrics.imbalance),
            _ => Self::of_layout(method, processors, layout, self.metrics.imbalance),
        }
    }

    /// Reads the text of a plan file; `place` names the file in errors.
    ///
    /// # Errors
    /// Malformed JSON, an unknown field, another format or version, or shares or a layout that do not match
    /// the problem: exit code 2.
    pub fn parse(text: &str, place: &str) -> Result<Self> {
        let refuse = |field: &str, what: String, remedy: &str| {
            Err(Error::input(format!("{place}: {field}"), what, remedy))
        };
        let Object(raw): Object<RawPlan> = serde_json::from_str(text).map_err(|e| {
            Error::input(
                format!("{place}:{}", e.line()),
                e.to_string(),
                "write it with `apportion partition`, or see docs/reference/plan-file.md",
            )
        })?;
        if raw.format != "apportion-plan" || raw.version != 1 {
            let what =
                format!("\"{}\" version {} is not \"apportion-plan\" version 1", raw.format, raw.version);
            return refuse("format", what, "write it with this version of `apportion partition`");
        }
        let p = raw.processors.len();
        if p == 0 || raw.shares.len() != p {
            let what = format!("{} shares for {p} processors", raw.shares.len());
            return refuse("shares", what, "give one share per processor");
        }
        let mut seen = BTreeSet::new();
        if let Some(twice) = raw.processors.iter().find(|name| !seen.insert(name.as_str())) {
            let what = format!("\"{twice}\" is listed twice");
            return refuse("processors", what, "list each processor once, with all of its rectangles");
        }
        if let Some(what) = raw.processors.iter().find_map(|name| name_defect(name)) {
            return refuse("processors", what, "give every processor a name of its own");
        }
        if let Some((field, what, remedy)) = raw.defect_of_times() {
            return refuse(field, what, remedy);
        }
        if raw.start_up.is_some() && !matches!(raw.problem, Problem::Units { .. }) {
            return refuse(
                "start_up",
                "only units have lines of times".into(),
                "remove `start_up` and `per_unit`",
            );
        }
        let lines = raw.lines();
        if let Some((field, what)) = raw.defect_of_parts() {
            return refuse(field, what, "fix or remove the field");
        }
        let order = raw.order.clone().map(|order| order.into_iter().map(Rank).collect());
        let costs = raw.costs.clone();
        if raw.borders.is_some() && !matches!(raw.problem, Problem::Graph { .. }) {
            return refuse("borders", "only graphs have them".into(), "remove the field");
        }
        if raw.panels.is_some() && !matches!(raw.problem, Problem::Factorisation { .. }) {
            return refuse("panels", "only factorisations have panels".into(), "remove the field");
        }
        let imbalance = raw.metrics.as_ref().map_or(f64::NAN, |m| m.imbalance);
        let plan = match raw.problem {
            Problem::Matmul(shape) => {
                let shape = super::Shape::new(shape.m, shape.k, shape.n, &format!("{place}: problem"))?;
                let layout = of_rectangles(raw.layout, &raw.shares, place, |parts| match raw.repeat {
                    None => of_entries(shape, p, parts),
                    Some(_) if parts.iter().any(|part| part.inner.is_some()) => {
                        let what = "a repeated block cannot cut the inner dimension";
                        Err(Error::input("repeat", what, "remove `repeat`, or every `inner`"))
                    }
                    Some([rows, cols]) => {
                        let block = super::Shape::new(rows, shape.k, cols, "repeat")?;
                        let parts = parts.iter().map(RawPart::part);
                        Layout::new(block, p, parts).and_then(|layout| super::repeat_block(shape, &layout))
                    }
                })?;
                Self::of_layout(raw.method, raw.processors, layout, imbalance)
            }
            Problem::Units { .. }
            | Problem::Graph { .. }
            | Problem::Grid { .. }
            | Problem::Factorisation { .. }
            | Problem::Syrk { .. }
                if raw.repeat.is_some() =>
            {
                return refuse("repeat", "only matrix products have blocks".into(), "remove the field");
            }
            Problem::Syrk { n, k } => {
                let shape = super::Shape::new(n, k, n, &format!("{place}: problem"))?;
                let layout = of_rectangles(raw.layout, &raw.shares, place, |parts| {
                    if parts.iter().any(|part| part.inner.is_some()) {
                        let what = "a symmetric product leaves the inner dimension whole";
                        return Err(Error::input("layout: inner", what, "remove the field"));
                    }
                    Layout::of_triangle(shape, p, parts.iter().map(RawPart::part))
                })?;
                Self::of_layout(raw.method, raw.processors, layout, imbalance)
            }
            Problem::Grid { m, n } => {
                let shape = super::Shape::new(m, 1, n, &format!("{place}: problem"))?;
                let layout = of_rectangles(raw.layout, &raw.shares, place, |parts| {
                    if parts.iter().any(|part| part.inner.is_some()) {
                        let what = "a domain has no inner dimension";
                        return Err(Error::input("layout: inner", what, "remove the field"));
                    }
                    Layout::new(shape, p, parts.iter().map(RawPart::part))
                })?;
                Self::of_grid(raw.method, raw.processors, layout, imbalance)
            }
            Problem::Factorisation { factors, n, block } => {
                let shape = super::Shape::new(n, 1, n, &format!("{place}: problem"))?;
                if block == 0 {
                    return refuse("problem.block", "is 0".into(), "give the columns of a block");
                }
                let layout = of_rectangles(raw.layout, &raw.shares, place, |parts| {
                    if parts.iter().any(|part| part.inner.is_some()) {
                        let what = "a factored matrix has no inner dimension";
                        return Err(Error::input("layout: inner", what, "remove the field"));
                    }
                    Layout::new(shape, p, parts.iter().map(RawPart::part))
                })?;
                let mut blocks = TileMap::of_layout(factors, &layout, block)?;
                if let Some(panels) = raw.panels {
                    let panels = panels.into_iter().map(Rank).collect();
                    blocks = blocks.factored_by(panels).map_err(|e| within(place, e))?;
                }
                let schedule = FactorSchedule::new(factors, blocks);
                let volume = schedule.received().iter().sum();
                Self::of_factorisation(raw.method, raw.processors, &schedule, volume, imbalance)
            }
            Problem::Units { .. } | Problem::Graph { .. } if raw.layout.is_some() => {
                return refuse("layout", "units and graphs have none".into(), "remove the field");
            }
            Problem::Graph { n, edges } => {
                let borders = raw.borders().map_err(|e| within(place, e))?;
                check_sum(&raw.shares, n).map_err(|e| within(place, e))?;
                let weights = match &raw.costs {
                    Some(costs) => costs.clone(),
                    None => raw.shares.iter().map(|share| *share as f64).collect(),
                };
                let edge_cut = raw.metrics.as_ref().and_then(|metrics| metrics.edge_cut);
                let parts = GraphParts { edges, edge_cut, vertices: raw.shares, weights, borders };
                Self::of_graph(raw.method, raw.processors, parts, imbalance)
            }
            Problem::Units { n } => {
                check_sum(&raw.shares, n).map_err(|e| within(place, e))?;
                Self::of_units(raw.method, raw.processors, raw.shares, imbalance)
            }
        };
        let (forecast, relative_times, baselines) = (raw.forecast, raw.relative_times, raw.baselines);
        let costs = costs.or(plan.costs);
        let plan = Self { forecast, relative_times, baselines, lines, order, costs, ..plan };
        // The bound depends on the platform: it is read, not computed again.
        let bound = raw.metrics.and_then(|m| m.time_bound);
        if bound.is_some_and(|bound| !(bound.is_finite() && bound > 0.0)) {
            return refuse("metrics.time_bound", "is no positive number".into(), "remove the field");
        }
        Ok(plan.with_time_bound(bound))
    }

    /// The same plan with the seconds that no plan can beat, and its forecast over these. Without a forecast,
    /// both are left out.
    #[must_use]
    pub fn with_time_bound(mut self, bound: Option<f64>) -> Self {
        self.set_time_bound(bound);
        self
    }

    /// As [`with_time_bound`](Self::with_time_bound), in place.
    pub(crate) fn set_time_bound(&mut self, bound: Option<f64>) {
        let known = self.forecast.as_ref().and_then(|f| Some((f.seconds, bound?)));
        self.metrics.time_bound = known.map(|(_, bound)| bound);
        self.metrics.forecast_over_bound = known.map(|(seconds, bound)| seconds / bound);
    }

    /// How many times as fast the plan is, by forecast, as the better of its baselines: below 1 where a
    /// division does not pay.
    pub fn gain(&self) -> Option<f64> {
        let (forecast, without) = (self.forecast.as_ref()?, self.baselines.as_ref()?.best()?);
        Some(without / forecast.seconds).filter(|gain| gain.is_finite())
    }

    /// Adds what a candidate's metrics are without (`Metrics::without_table`).
    pub(crate) fn fill_in(&mut self) {
        if let Division::Matmul(layout) = &self.division {
            self.metrics.fill_in(layout);
        }
    }

    /// The plan as a JSON value. A layout that repeats a block is written as that block and its size,
    /// `repeat`.
    pub fn to_value(&self) -> serde_json::Value {
        let layout = self.rectangles();
        let block = layout.and_then(Layout::block);
        let raw = RawPlan {
            format: "apportion-plan".into(),
            version: 1,
            method: self.method.clone(),
            problem: self.problem(),
            processors: self.processors.clone(),
            shares: self.shares.clone(),
            layout: block.or(layout).map(entries),
            repeat: block.map(|b| [b.shape().m, b.shape().n]),
            borders: match &self.division {
                Division::Graph { borders, .. } => Some(borders.clone()),
                _ => None,
            },
            panels: match &self.division {
                Division::Factorisation { panels: Some(panels), .. } => {
                    Some(panels.iter().map(|rank| rank.0).collect())
                }
                _ => None,
            },
            // A plan that was read without metrics has no imbalance, and JSON has no NaN.
            metrics: Some(self.metrics.clone()).filter(|m| m.imbalance.is_finite()),
            forecast: self.forecast.clone(),
            relative_times: self.relative_times.clone(),
            baselines: self.baselines.clone(),
            order: self.order.as_ref().map(|order| order.iter().map(|rank| rank.0).collect()),
            costs: self.costs.clone(),
            start_up: self.lines.as_ref().map(|lines| column(lines, |line| line.start_up)),
            per_unit: self.lines.as_ref().map(|lines| column(lines, |line| line.per_unit)),
            _choice: None,
            _models: None,
        };
        serde_json::to_value(&raw).expect("numbers and strings always serialise")
    }

    /// The text of the plan's file. Equal plans give equal bytes.
    pub fn to_json(&self) -> String {
        format!("{:#}\n", self.to_value())
    }
}

/// As in a file.
impl Serialize for Plan {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.to_value().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Plan {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        Self::parse(&value.to_string(), "plan").map_err(D::Error::custom)
    }
}

/// The plan of nothing, for nobody.
impl Default for Plan {
    fn default() -> Self {
        Self::of_units(String::new(), Vec::new(), Vec::new(), 1.0)
    }
}

/// One number of each line that is known.
fn column(lines: &[Option<Line>], number: impl Fn(&Line) -> f64) -> Vec<Option<f64>> {
    lines.iter().map(|line| line.as_ref().map(&number)).collect()
}

/// Checks that the shares are of all `n` units or vertices.
fn check_sum(shares: &[u64], n: u64) -> Result<()> {
    let sum: u128 = shares.iter().map(|&s| u128::from(s)).sum();
    if sum == u128::from(n) {
        return Ok(());
    }
    Err(Error::input("shares", format!("add up to {sum}, not to {n}"), "divide every one of them once"))
}

/// The layout of a file's rectangles, if its shares are their areas.
fn of_rectangles(
    parts: Option<Vec<RawPart>>,
    shares: &[u64],
    place: &str,
    layout: impl FnOnce(Vec<RawPart>) -> Result<Layout>,
) -> Result<Layout> {
    let refuse = |field: &str, what: String, remedy: &str| {
        Err(Error::input(format!("{place}: {field}"), what, remedy))
    };
    let Some(parts) = parts else {
        return refuse("layout", "is missing".into(), "give the rectangles of C");
    };
    let layout = layout(parts).map_err(|e| within(place, e))?;
    if layout.shares() != shares {
        let of = if layout.boxes().is_some() { "shares of the work" } else { "areas" };
        let what = format!("{shares:?} are not the {of} of the layout, {:?}", layout.shares());
        return refuse("shares", what, "make shares and layout agree");
    }
    Ok(layout)
}

/// The error of a field of this file.
fn within(place: &str, error: Error) -> Error {
    match error {
        Error::Input { place: field, what, remedy } => {
            Error::input(format!("{place}: {field}"), what, remedy)
        }
        other => other,
    }
}

/// Reads a plan file.
///
/// # Errors
/// The file cannot be read, or those of [`Plan::parse`]: exit code 2.
pub fn read_plan(path: &Path) -> Result<Plan> {
    let text = read_text(path)?;
    Plan::parse(&text, &path.display().to_string())
}

#[cfg(test)]
mod tests;
