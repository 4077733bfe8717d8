//! Layouts of a matrix product: who computes which rectangles of C.

use crate::errors::{exception, refuse};
use crate::machine::{Machine, Sources, within};
use crate::models::{from_json, write};
use crate::shares::exported;
use crate::value::{Reduced, Value, of_state, reduce, to_state};
use crate::wait::long;
use apportion::geometry::Rank;
use apportion::job::{FlowOptions, RunOptions, lay_out_product, parse_choice};
use apportion::model::WorkUnit;
use apportion::plan::{Plan, Problem, Shape, read_plan, volume_lower_bound};
use apportion::schedule::ScheduleOptions;
use apportion::{Rect, Result, Span};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PySlice;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::str::FromStr;

/// Maximum number of cells of an owner table.
const MOST_CELLS: usize = 1 << 26;

/// The method or flow of a name; nothing leaves the choice open, as `auto` does.
fn choice<T: FromStr<Err = String>>(place: &str, name: Option<&str>) -> Result<Option<T>> {
    name.map_or(Ok(None), |name| parse_choice(place, name))
}

/// How operands travel, as the Python half passes it.
#[derive(FromPyObject, Clone)]
#[pyo3(from_item_all)]
pub struct Order {
    pub method: Option<String>,
    pub flow: Option<String>,
    pub block: Option<u64>,
    pub overlap: bool,
    pub look_ahead: u64,
}

impl Order {
    /// The options of a run.
    ///
    /// # Errors
    /// An unknown method or flow; a block out of range.
    pub fn run_options(&self) -> Result<RunOptions> {
        let block = self.block.map(|block| within("block", block, 1, 1 << 20)).transpose()?;
        let look_ahead = within("look_ahead", self.look_ahead, 1, 1 << 20)?;
        Ok(RunOptions {
            method: choice("method", self.method.as_deref())?,
            flow: FlowOptions {
                flow: choice("flow", self.flow.as_deref())?,
                overlap: self.overlap,
                look_ahead: (look_ahead > 1).then_some(look_ahead),
                block,
                ..FlowOptions::default()
            },
            ..RunOptions::default()
        })
    }

    /// The arguments as words, to be compared between processes.
    pub fn words(&self) -> Vec<String> {
        let Self { method, flow, block, overlap, look_ahead } = self;
        let named =
            |name: &Option<String>| name.as_ref().map_or_else(|| "None".into(), |name| format!("{name:?}"));
        vec![
            format!("method={}", named(method)),
            format!("flow={}", named(flow)),
            format!("block={}", block.map_or_else(|| "None".into(), |block| block.to_string())),
            format!("overlap={overlap}"),
            format!("look_ahead={look_ahead}"),
        ]
    }
}

/// A layout of a matrix product: the rectangles of C that each processor computes.
#[pyclass(frozen, module = "apportion", eq, hash)]
pub struct Layout {
    pub plan: Plan,
    /// How it was made, unless it was read.
    pub origin: Option<Origin>,
}

/// What a layout was made for.
pub struct Origin {
    /// The best order of steps.
    pub order: ScheduleOptions,
    /// The description of the processors, without files.
    pub sources: Sources,
    /// The processors.
    pub machine: Machine,
}

/// A layout's state: its plan file, and how it was made.
#[derive(Serialize, Deserialize)]
struct State {
    plan: String,
    origin: Option<(ScheduleOptions, Sources)>,
}

impl Value for Layout {
    const NAME: &'static str = "Layout";

    fn state(&self) -> String {
        let origin = self.origin.as_ref().map(|origin| (origin.order, origin.sources.clone()));
        to_state(&State { plan: self.plan.to_json(), origin })
    }

    fn restore(state: &str) -> Result<Self> {
        let State { plan, origin } = of_state(state)?;
        let origin = origin.map(|(order, sources)| {
            let machine = sources.machine(WorkUnit::MultiplyAdd)?;
            Ok(Origin { order, sources, machine })
        });
        Ok(Self { plan: Plan::parse(&plan, "state")?, origin: origin.transpose()? })
    }

    fn identity(&self) -> String {
        self.plan.to_json()
    }
}

/// Lays out C = A B for processors of given speeds.
#[pyfunction]
pub fn layout(
    py: Python<'_>,
    shape: Vec<u64>,
    sources: Sources,
    order: Order,
    element: u64,
) -> PyResult<Layout> {
    long(py, |_| {
        let shape = shape_of(&shape)?;
        let sources = sources.without_files()?;
        let machine = sources.machine(WorkUnit::MultiplyAdd)?;
        let element = within("element", element, 1, 1 << 10)?;
        let best = lay_out_product(shape, element, &order.run_options()?, &machine)?;
        Ok(Layout { plan: best.plan, origin: Some(Origin { order: best.order, sources, machine }) })
    })
}

/// The shape of a product: (m, n), where k is n, or (m, k, n).
///
/// # Errors
/// Other numbers of sizes; sizes of zero.
pub fn shape_of(sizes: &[u64]) -> Result<Shape> {
    match *sizes {
        [m, n] => Shape::new(m, n, n, "shape"),
        [m, k, n] => Shape::new(m, k, n, "shape"),
        _ => Err(refuse("shape", format!("has {} sizes", sizes.len()), "pass (m, n) or (m, k, n)")),
    }
}

/// A slice of these indices.
fn slice(py: Python<'_>, span: Span) -> Bound<'_, PySlice> {
    PySlice::new(py, span.start as isize, span.end as isize, 1)
}

type Slices<'py> = (Bound<'py, PySlice>, Bound<'py, PySlice>);

impl Layout {
    fn rects(&self, rank: isize) -> PyResult<Vec<Rect>> {
        let layout = self.plan.layout().map_err(exception)?;
        let count = layout.processors() as isize;
        let index = if rank < 0 { rank + count } else { rank };
        if !(0..count).contains(&index) {
            let line = format!("rank {rank} is out of range: there are {count} processors");
            return Err(PyIndexError::new_err(line));
        }
        let owner = Rank(index as usize);
        Ok(layout.parts().iter().filter(|part| part.owner == owner).map(|part| part.rect()).collect())
    }
}

/// Cuts of the rows, cuts of the columns, owners row by row.
type Table = (Vec<u64>, Vec<u64>, Vec<Vec<usize>>);

/// The owners of the cells between all cuts.
fn table(layout: &apportion::plan::Layout) -> Result<Table> {
    let ends = |side: fn(Rect) -> Span| -> Vec<u64> {
        let ends = layout.parts().iter().flat_map(|part| [side(part.rect()).start, side(part.rect()).end]);
        ends.collect::<BTreeSet<u64>>().into_iter().collect()
    };
    let (rows, cols) = (ends(|rect| rect.rows), ends(|rect| rect.cols));
    if (rows.len() - 1).saturating_mul(cols.len() - 1) > MOST_CELLS {
        let what = format!("{} x {} cells are too many for a table", rows.len() - 1, cols.len() - 1);
        return Err(apportion::Error::infeasible(what, "use slices(rank)"));
    }
    let mut owners = vec![vec![0; cols.len() - 1]; rows.len() - 1];
    let at = |cuts: &[u64], cut: u64| cuts.partition_point(|&c| c < cut);
    for part in layout.parts() {
        let rect = part.rect();
        for row in &mut owners[at(&rows, rect.rows.start)..at(&rows, rect.rows.end)] {
            row[at(&cols, rect.cols.start)..at(&cols, rect.cols.end)].fill(part.owner.0);
        }
    }
    Ok((rows, cols, owners))
}

#[pymethods]
impl Layout {
    /// Reads a plan of `apportion partition --shape`.
    #[staticmethod]
    fn read(path: PathBuf) -> PyResult<Self> {
        let plan = read_plan(&path).map_err(exception)?;
        if let Problem::Units { .. } = plan.problem() {
            return Err(exception(refuse("plan", "is one of units", "read it with Shares.read")));
        }
        plan.layout().map_err(exception)?;
        Ok(Self { plan, origin: None })
    }

    /// Rows of C, inner dimension, columns of C.
    #[getter]
    fn shape(&self) -> PyResult<(u64, u64, u64)> {
        let shape = self.plan.layout().map_err(exception)?.shape();
        Ok((shape.m, shape.k, shape.n))
    }

    /// The names of the processors, by rank.
    #[getter]
    fn processors(&self) -> Vec<String> {
        self.plan.processors.clone()
    }

    /// Elements of C of each processor, by rank.
    #[getter]
    fn counts(&self) -> Vec<u64> {
        self.plan.shares.clone()
    }

    /// The method that made the layout.
    #[getter]
    fn method(&self) -> String {
        self.plan.method.clone()
    }

    /// Elements of A and B that are sent.
    #[getter]
    fn volume(&self) -> Option<u64> {
        self.plan.metrics.volume
    }

    /// The smallest volume that any layout with these shares can have; `None` of a symmetric product.
    #[getter]
    fn bound(&self) -> PyResult<Option<u64>> {
        self.plan.layout().map(volume_lower_bound).map_err(exception)
    }

    /// The longest time divided by the ideal time, at which all would finish together.
    #[getter]
    fn imbalance(&self) -> f64 {
        self.plan.metrics.imbalance
    }

    /// Forecast seconds of the product; `None` if only ratios of speeds are known.
    #[getter]
    fn seconds(&self) -> Option<f64> {
        self.plan.forecast.as_ref().map(|forecast| forecast.seconds)
    }

    /// The rectangles of C that a processor computes, as pairs of slices of rows and columns.
    fn slices<'py>(&self, py: Python<'py>, rank: isize) -> PyResult<Vec<Slices<'py>>> {
        Ok(self.rects(rank)?.into_iter().map(|rect| (slice(py, rect.rows), slice(py, rect.cols))).collect())
    }

    /// The owners as a table: the cuts of the rows, those of the columns, and the owner of each cell.
    fn owner_table<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let table = long(py, |_| table(self.plan.layout()?))?;
        py.import("apportion")?.getattr("OwnerTable")?.call1(table)
    }

    /// The layout in the format of another tool: owners of blocks, or the shares of C.
    fn export(&self, py: Python<'_>, format: &str) -> PyResult<String> {
        exported(py, &self.plan, format)
    }

    /// Writes a plan file, which every `--plan` reads.
    fn save(&self, path: PathBuf) -> PyResult<()> {
        write(&path, &self.plan.to_json())
    }

    /// The plan file as a dictionary.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_json(py, &self.plan.to_json())
    }

    fn _repr_svg_(&self) -> String {
        let processors = self.origin.iter().flat_map(|origin| &origin.machine.platform.processors);
        let clusters: Vec<String> = processors.map(|processor| processor.cluster.clone()).collect();
        apportion_report::plan_svg(&self.plan, &clusters)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        reduce(py, self)
    }

    fn __len__(&self) -> usize {
        self.plan.shares.len()
    }

    fn __repr__(&self) -> String {
        let shape = self.plan.layout().map(|layout| layout.shape());
        let (m, n) = shape.map_or((0, 0), |shape| (shape.m, shape.n));
        let count = self.plan.shares.len();
        format!("<Layout of {m} x {n} on {count} processors, method {}>", self.plan.method)
    }
}
