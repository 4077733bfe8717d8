//! The fields of the plan file and of the entries of its layout, and checks of its times.

use super::{Baselines, Forecast, Metrics, Problem};
use crate::error::{Error, Result};
use crate::geometry::{Rank, Rect, Span};
use crate::input::{object, object_if_any, objects_if_any, show_number};
use crate::plan::shares::Line;
use crate::plan::{Border, Cuboid, Layout, Part, Shape};
use serde::{Deserialize, Serialize};

/// The plan as its file has it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPlan {
    pub(crate) format: String,
    pub(crate) version: u32,
    pub(crate) method: String,
    #[serde(deserialize_with = "object")]
    pub(crate) problem: Problem,
    pub(crate) processors: Vec<String>,
    pub(crate) shares: Vec<u64>,
    #[serde(default, deserialize_with = "objects_if_any", skip_serializing_if = "Option::is_none")]
    pub(crate) layout: Option<Vec<RawPart>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) repeat: Option<[u64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) panels: Option<Vec<usize>>,
    /// What processors of a graph send to each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) borders: Option<Vec<Border>>,
    #[serde(default, deserialize_with = "object_if_any", skip_serializing_if = "Option::is_none")]
    pub(crate) metrics: Option<Metrics>,
    #[serde(default, deserialize_with = "object_if_any", skip_serializing_if = "Option::is_none")]
    pub(crate) forecast: Option<Forecast>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) relative_times: Option<Vec<f64>>,
    #[serde(default, deserialize_with = "object_if_any", skip_serializing_if = "Option::is_none")]
    pub(crate) baselines: Option<Baselines>,
    /// Ranks in the order of their units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) order: Option<Vec<usize>>,
    /// Cost of each processor's units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) costs: Option<Vec<f64>>,
    /// Seconds before the first unit, by processor; null where they are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) start_up: Option<Vec<Option<f64>>>,
    /// Seconds for each unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) per_unit: Option<Vec<Option<f64>>>,
    /// Fields that `partition` adds for its reader; they are not part of the plan.
    #[serde(default, rename = "choice", skip_serializing)]
    pub(crate) _choice: Option<serde::de::IgnoredAny>,
    #[serde(default, rename = "models", skip_serializing)]
    pub(crate) _models: Option<serde::de::IgnoredAny>,
}

impl RawPlan {
    /// The lines of the processors.
    pub(crate) fn lines(&self) -> Option<Vec<Option<Line>>> {
        let (start_up, per_unit) = (self.start_up.as_ref()?, self.per_unit.as_ref()?);
        let line = |(start_up, per_unit): (&Option<f64>, &Option<f64>)| {
            Some(Line { start_up: (*start_up)?, per_unit: (*per_unit)? })
        };
        Some(start_up.iter().zip(per_unit).map(line).collect())
    }

    /// The borders of a graph, if each is between two processors, and none is there twice.
    pub(crate) fn borders(&self) -> Result<Vec<Border>> {
        let p = self.processors.len();
        let mut borders = self.borders.clone().unwrap_or_default();
        borders.sort_unstable_by_key(|border| (border.from, border.to));
        let pairs = |two: &[Border]| (two[0].from, two[0].to) == (two[1].from, two[1].to);
        let odd = |b: &Border| {
            b.from == b.to || b.from.0.max(b.to.0) >= p || b.vertices > self.shares[b.from.0].min(1 << 53)
        };
        let what = match (borders.iter().find(|border| odd(border)), borders.windows(2).any(pairs)) {
            (Some(Border { from, to, vertices }), _) => {
                format!(
                    "[{}, {}, {vertices}] is no border of two of {p} processors with these shares",
                    from.0, to.0
                )
            }
            (None, true) => "has two of one pair of processors".into(),
            (None, false) => return Ok(borders),
        };
        Err(Error::input("borders", what, "write it with `apportion partition --graph`"))
    }

    /// What is wrong with the order and the costs of its parts, if something is: the field and the defect.
    pub(crate) fn defect_of_parts(&self) -> Option<(&'static str, String)> {
        let p = self.processors.len();
        let units = matches!(self.problem, Problem::Units { .. });
        let graph = matches!(self.problem, Problem::Graph { .. });
        let given =
            [("order", self.order.is_some() && !units), ("costs", self.costs.is_some() && !units && !graph)];
        if let Some((field, _)) = given.iter().find(|(_, stray)| *stray) {
            return Some((field, "only units have it".into()));
        }
        if let Some(order) = &self.order {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            if !sorted.into_iter().eq(0..p) {
                return Some(("order", format!("does not have each of 0 to {} once", p - 1)));
            }
        }
        let costs = self.costs.as_ref()?;
        if costs.len() != p {
            return Some(("costs", format!("does not have one number for each of {p} processors")));
        }
        let wrong = costs.iter().find(|cost| !(cost.is_finite() && **cost >= 0.0))?;
        Some(("costs", format!("{} is no cost", show_number(*wrong))))
    }

    /// What is wrong with its times, if something is: the field, the defect, and the remedy.
    pub(crate) fn defect_of_times(&self) -> Option<(&'static str, String, &'static str)> {
        let p = self.processors.len();
        let timed = self.forecast.as_ref().map(|f| (f.compute.len(), f.communicate.len()));
        let relative = self.relative_times.as_ref().map(Vec::len);
        if timed.is_some_and(|lengths| lengths != (p, p)) || relative.is_some_and(|length| length != p) {
            let field = if relative.is_some() { "relative_times" } else { "forecast" };
            return Some((
                field,
                format!("does not have one time for each of {p} processors"),
                "fix the field",
            ));
        }
        let columns = [("start_up", &self.start_up), ("per_unit", &self.per_unit)];
        for (field, column) in columns {
            if column.as_ref().map(Vec::len) != self.start_up.as_ref().or(self.per_unit.as_ref()).map(|_| p) {
                let what = format!("does not have one time for each of {p} processors");
                return Some((field, what, "give both `start_up` and `per_unit`, or neither"));
            }
            let mut times = column.iter().flatten().flatten();
            if let Some(time) = times.find(|time| !(time.is_finite() && **time >= 0.0)) {
                return Some((
                    field,
                    format!("{} is no time", show_number(*time)),
                    "fix or remove the field",
                ));
            }
        }
        let times =
            self.forecast.iter().flat_map(|f| f.compute.iter().chain(&f.communicate).chain([&f.seconds]));
        let baselines = self.baselines.as_ref();
        let baselines = baselines
            .into_iter()
            .flat_map(|both| both.fastest_alone.iter().map(|alone| &alone.seconds).chain(&both.even_split));
        if let Some(time) = baselines.copied().find(|time| !(time.is_finite() && *time >= 0.0)) {
            return Some((
                "baselines",
                format!("{} is no time", show_number(time)),
                "fix or remove the field",
            ));
        }
        let mut times = times.chain(self.relative_times.iter().flatten()).copied();
        if let Some(time) = times.find(|time| !(time.is_finite() && *time >= 0.0)) {
            let field = if self.forecast.is_some() { "forecast" } else { "relative_times" };
            return Some((field, format!("{} is no time", show_number(time)), "fix or remove the field"));
        }
        let imbalance = self.metrics.as_ref().map(|m| m.imbalance);
        let odd = imbalance.is_some_and(|imbalance| !(imbalance.is_finite() && imbalance > 0.0));
        odd.then(|| ("metrics.imbalance", "is no positive number".into(), "remove the field `metrics`"))
    }
}

/// An entry of the layout.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPart {
    owner: Rank,
    rows: Span,
    cols: Span,
    /// Absent: all of the inner dimension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) inner: Option<Span>,
}

impl RawPart {
    pub(crate) fn part(&self) -> Part {
        Part { owner: self.owner, rows: self.rows, cols: self.cols }
    }

    fn of(part: &Part) -> Self {
        Self { owner: part.owner, rows: part.rows, cols: part.cols, inner: None }
    }

    fn of_box(one: &Cuboid, whole: Span) -> Self {
        let inner = Some(one.inner).filter(|inner| *inner != whole);
        Self { owner: one.owner, rows: one.rows, cols: one.cols, inner }
    }
}

/// The layout of entries, some of which may have inner ranges.
pub(super) fn of_entries(shape: Shape, processors: usize, entries: Vec<RawPart>) -> Result<Layout> {
    if entries.iter().all(|entry| entry.inner.is_none()) {
        return Layout::new(shape, processors, entries.iter().map(RawPart::part));
    }
    let whole = Span::new(0, shape.k);
    let one = |entry: &RawPart| {
        Cuboid::new(entry.owner, Rect::new(entry.rows, entry.cols), entry.inner.unwrap_or(whole))
    };
    Layout::of_boxes(shape, processors, entries.iter().map(one))
}

/// The entries of a layout.
pub(super) fn entries(layout: &Layout) -> Vec<RawPart> {
    let whole = Span::new(0, layout.shape().k);
    match layout.boxes() {
        None => layout.parts().iter().map(RawPart::of).collect(),
        Some(boxes) => boxes.iter().map(|one| RawPart::of_box(one, whole)).collect(),
    }
}
