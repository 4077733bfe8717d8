//! Steps with a sparse matrix as a [`Problem`]: which divisions there are, what is measured, and when a result is right.

use super::application::{Held, Local, Source, Spmv, SpmvMethod, Vectors};
use super::part::{BLOCK, Check, Whole};
use crate::divide::{GraphChoice, GraphOptions, alike, divide_graph};
use crate::graph::{Defect, Graph};
use crate::parts::{borders, count_parts};
use crate::sparse::{SparseMatrix, Weights};
use apportion::Rank;
use apportion::error::{Error, Result};
use apportion::job::Problem;
use apportion::kernels::SteadySum;
use apportion::model::{Machine, Model};
use apportion::plan::{Division, Forecast, Plan};
use apportion::run::World;
use apportion::schedule::{Application, GraphSchedule};
use apportion::simulate::{CostModel, forecast};
use std::sync::OnceLock;

/// Steps that are simulated: later ones take as long.
const SIMULATED: u64 = 4;

/// Steps with a matrix.
pub(super) struct Sparse<'a> {
    pub matrix: &'a SparseMatrix,
    pub method: SpmvMethod,
    pub options: GraphOptions,
    /// A division that is given.
    pub parts: Option<&'a [u32]>,
    /// The vector that is multiplied, or the right-hand side.
    pub vector: &'a [f64],
    /// The graph of the matrix, once it was asked for.
    pub graph: OnceLock<Graph>,
}

/// What this process's processors have before some steps.
#[derive(Debug, Default)]
pub(super) struct SparseData {
    /// By rank.
    pub held: Vec<Option<Held>>,
    pub steps: u64,
    /// Steps of earlier runs.
    pub before: u64,
    /// The square of the norm at which x is a solution.
    pub goal: f64,
    /// What rounding may do to the sums of a check, by the sum of the magnitudes of a vector.
    pub slack: f64,
}

/// The vectors of this process's processors, with the numbers of their rows, by rank.
pub(super) type Output = Vec<(Vec<u32>, Vectors)>;

impl Sparse<'_> {
    /// The graph of the matrix: a vertex weighs what a step on its row costs.
    fn graph(&self) -> Result<&Graph> {
        if let Some(graph) = self.graph.get() {
            return Ok(graph);
        }
        let graph = self.matrix.graph(Weights::Rows).map_err(|defect| defect.at_place("the matrix"))?;
        let [before, after] = self.method.row_work();
        let weight = |row: usize| graph.weight(row, 0) + (before + after) as u32;
        let weights = (0..graph.vertices()).map(weight).collect();
        let weighted = graph.with_weights(weights).map_err(|defect: Defect| defect.at_place("the matrix"))?;
        Ok(self.graph.get_or_init(|| weighted))
    }

    /// A choice with the borders of the matrix itself: an entry on one side only is seen from one side only.
    fn exact(&self, mut choice: GraphChoice, transposed: &SparseMatrix) -> GraphChoice {
        let processors = choice.plan.processors.len();
        let exact = borders(|row| transposed.row(row).0, &choice.parts, processors);
        choice.plan.metrics.volume = Some(exact.iter().map(|border| border.vertices).sum());
        if let Division::Graph { borders, .. } = &mut choice.plan.division {
            *borders = exact;
        }
        choice
    }

    fn schedule(&self, plan: &Plan, steps: u64) -> Result<GraphSchedule> {
        let after = self.method.row_work()[1];
        let own: Vec<f64> = plan.shares.iter().map(|rows| *rows as f64 * after).collect();
        let schedule = GraphSchedule::of_plan(plan, steps)?;
        let sums = (self.method.sums() * SteadySum::NUMBERS) as u64;
        Ok(if sums > 0 { schedule.with_sums(sums, own) } else { schedule })
    }
}

impl Source<'_> {
    /// The data of a processor before anybody has read a vector.
    pub(super) fn data(&self, rank: Rank, method: SpmvMethod) -> Held {
        let Some(matrix) = self.matrix else { return Held::default() };
        let part = Whole::new(matrix, self.parts).part(rank);
        let ones = vec![1.0; part.rows.len()];
        let vectors = Vectors::new(method, &ones);
        Held { part, rhs: ones, vectors }
    }
}

impl Problem for Sparse<'_> {
    type Decision = GraphChoice;
    type Data = SparseData;
    type Executable<'a>
        = Spmv<'a>
    where
        Self: 'a;
    type Output = Output;

    fn name(&self) -> String {
        format!("spmv {}", self.method.name())
    }

    /// The first eighth of the rows, the first half, and all.
    fn samples(&self) -> Result<Vec<GraphChoice>> {
        let (graph, n) = (self.graph()?, self.matrix.rows());
        let mut sizes = [8, 2, 1].map(|part| n.div_ceil(part)).to_vec();
        sizes.dedup();
        let names = ["it", "the rest"].map(String::from).to_vec();
        let sample = |rows: usize| {
            let parts: Vec<u32> = (0..n).map(|row| u32::from(row >= rows)).collect();
            let plan = Plan::of_graph("sample", names.clone(), count_parts(graph, &parts, 2), 1.0);
            GraphChoice { plan, parts, method: None, mapped: false }
        };
        Ok(sizes.into_iter().map(sample).collect())
    }

    fn candidates(&self, machine: &Machine) -> Result<Vec<GraphChoice>> {
        let (graph, transposed) = (self.graph()?, self.matrix.transposed());
        let choices = match self.parts {
            Some(parts) => vec![GraphChoice::new(graph, parts.to_vec(), machine, "given".into())?],
            None => divide_graph(graph, None, machine, &self.options)?,
        };
        Ok(choices.into_iter().map(|choice| self.exact(choice, &transposed)).collect())
    }

    /// That of a step.
    fn forecast(&self, choice: &GraphChoice, machine: &Machine) -> Result<Forecast> {
        let schedule = self.schedule(&choice.plan, SIMULATED)?;
        let rate = |(rank, model): (usize, &Model)| model.speed(schedule.share(Rank(rank)).max(1.0));
        let rates: Vec<f64> = match machine.only_ratios() {
            true => vec![f64::MAX; machine.models.len()],
            false => machine.models.iter().enumerate().map(rate).collect(),
        };
        let network = &machine.platform.network;
        let Forecast { seconds, compute, communicate } =
            forecast(&schedule, CostModel { rates: &rates, network, element: 8 })?;
        let of_step = |times: Vec<f64>| times.into_iter().map(|time| time / SIMULATED as f64).collect();
        Ok(Forecast {
            seconds: seconds / SIMULATED as f64,
            compute: of_step(compute),
            communicate: of_step(communicate),
        })
    }

    fn cost(&self, choice: &GraphChoice, forecast: &Forecast) -> f64 {
        // Without seconds, the order in which they were divided.
        if choice.plan.forecast.is_some() { alike(forecast.seconds) } else { 0.0 }
    }

    fn read(&self, choice: &GraphChoice, world: &World) -> Result<SparseData> {
        let whole = Whole::new(self.matrix, &choice.parts);
        let here = world.processors_here(choice.plan.processors.len());
        let held = (0..choice.plan.processors.len()).map(|rank| {
            here.contains(&rank).then(|| {
                let part = whole.part(Rank(rank));
                let given: Vec<f64> = part.rows.iter().map(|row| self.vector[*row as usize]).collect();
                let vectors = Vectors::new(self.method, &given);
                let rhs = if self.method.solves() { given } else { Vec::new() };
                Held { part, rhs, vectors }
            })
        });
        let n = self.matrix.rows();
        let longest = (0..n).map(|row| self.matrix.row(row).0.len()).max().unwrap_or(0);
        // Additions one after the other: in a row, in a block of rows, and of blocks.
        let rounded = longest + 2 * BLOCK + n / BLOCK + choice.plan.processors.len() + 8;
        // Factors are at most 2, and so are both sums rounded.
        let slack = 4.0 * rounded as f64 * f64::EPSILON * whole.norm.max(f64::MIN_POSITIVE);
        Ok(SparseData { held: held.collect(), steps: 1, slack, ..SparseData::default() })
    }

    fn executable<'a>(&'a self, choice: &'a GraphChoice, data: &'a SparseData) -> Result<Spmv<'a>> {
        Ok(Spmv {
            schedule: self.schedule(&choice.plan, data.steps.max(1))?,
            method: self.method,
            held: &data.held,
            source: Source { matrix: Some(self.matrix), parts: &choice.parts },
            before: data.before,
            goal: data.goal,
            slack: data.slack,
        })
    }

    /// Every step's product is checked by the sums of its elements with random factors (Freivalds 1979).
    fn verify<'a>(&'a self, spmv: &Spmv<'a>, held: Vec<Local<'a>>, world: &World) -> Result<Output> {
        let steps = held.iter().map(|local| local.checks.len()).max().unwrap_or(0) as u64;
        // A process whose processors have no rows has no sums.
        let steps = world.all_reduce(&[steps], u64::max)?[0] as usize;
        let mut sums = vec![0.0; 3 * steps];
        for check in held.iter().map(|local| local.checks.as_flattened()) {
            sums.iter_mut().zip(check).for_each(|(all, one)| *all += one);
        }
        let sums = world.all_reduce(&sums, |a: f64, b| a + b)?;
        let (checks, _): (&[Check], _) = sums.as_chunks();
        for (step, [of_rows, of_columns, magnitude]) in (spmv.before + 1..).zip(checks) {
            let difference = (of_rows - of_columns).abs();
            if !difference.is_finite() {
                let what = format!("the vector of step {step} exceeds the largest double, or is no number");
                return Err(Error::infeasible(what, "use fewer `steps`, or scale the matrix"));
            }
            // What is rounded below the smallest normal double is lost whole.
            let least = magnitude.max(f64::MIN_POSITIVE / f64::EPSILON);
            if difference > spmv.slack * least + f64::MIN_POSITIVE {
                let what = format!(
                    "the elements of A x in step {step} add up to {of_rows:e}, not to {of_columns:e}"
                );
                return Err(Error::WrongResult { what });
            }
        }
        Ok(held.into_iter().map(|local| spmv.result(local)).collect())
    }
}
