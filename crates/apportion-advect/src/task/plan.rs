//! An advection as a [`Problem`]: what is measured, which plans there are, and the run of one.

use super::AdvectTask;
use super::inputs::Inputs;
use crate::application::{Advection, ProcessorData};
use crate::choose::cost;
use crate::{
    AdvectChoice, AdvectOptions, AdvectOrder, AdvectProblem, AdvectSchedule, Plane, Slabs, plan_advection,
};
use apportion::error::Result;
use apportion::job::{Context, Job, Problem};
use apportion::kernels::mpdata::{Advectable, Exchange};
use apportion::matrix::LocalBlocks;
use apportion::measure::{Effort, MpdataStep, QuickSpeeds, measure_quickly};
use apportion::model::Machine;
use apportion::plan::Forecast;
use apportion::platform::Platform;
use apportion::process_memory::available_memory;
use apportion::run::World;
use std::marker::PhantomData;

/// Sizes of the quick measurement: cells.
const SIZES: [f64; 3] = [65_536.0, 1_048_576.0, 4_194_304.0];

/// The smallest of them where memory is short.
const LEAST: f64 = 4096.0;

/// Arrays of a box that is measured, and what surrounds it.
const ARRAYS: u64 = 8;

/// The advection of a grid, or of a slab of one, with elements T.
pub(super) struct Advecting<'a, T> {
    task: &'a AdvectTask<'a>,
    inputs: &'a Inputs<'a>,
    problem: AdvectProblem,
    orders: Vec<AdvectOrder>,
    /// The limit of memory, if there is one.
    memory: Option<u64>,
    element: PhantomData<T>,
}

impl<'a, T: Advectable> Advecting<'a, T> {
    pub(crate) fn new(task: &'a AdvectTask<'a>, inputs: &'a Inputs<'a>, memory: Option<u64>) -> Self {
        let (problem, orders) = (inputs.problem.clone(), task.orders.clone());
        Self { task, inputs, problem, orders, memory, element: PhantomData }
    }

    /// The same for a slab of the grid. Halos between threads cost little, and a narrow exchange holds more arrays.
    pub(crate) fn of_slab(&self, slabs: Slabs) -> Self {
        let mut slab = Self {
            problem: slabs.problem(&self.inputs.problem),
            ..Self::new(self.task, self.inputs, self.memory)
        };
        let is_wide = |order: &AdvectOrder| order.exchange == Exchange::Wide;
        if slab.orders.iter().any(is_wide) {
            slab.orders.retain(is_wide);
        }
        slab
    }

    /// The steps of a choice.
    pub(crate) fn schedule(&self, choice: &AdvectChoice, steps: u64) -> Result<AdvectSchedule> {
        let layout = choice.plan.rectangles().expect("an advection's plan is of a grid");
        AdvectSchedule::new(&self.problem, layout, choice.order, steps)
    }

    /// Whether some Courant numbers are on faces: the loops for these are slower.
    fn has_faces(&self) -> bool {
        self.inputs.faces().next().is_some()
    }

    fn step(&self) -> MpdataStep<T> {
        MpdataStep::new(self.problem.scheme, self.has_faces())
    }
}

/// This process's cells before some steps, and the faces around them.
#[derive(Debug)]
pub(super) struct AdvectData<T> {
    pub field: LocalBlocks<T>,
    pub faces: Vec<LocalBlocks<T>>,
    /// Whether the field has values of both signs anywhere.
    pub signed: bool,
    pub steps: u64,
}

impl<T> Default for AdvectData<T> {
    fn default() -> Self {
        Self { field: LocalBlocks::new(), faces: Vec::new(), signed: false, steps: 0 }
    }
}

impl<T: Advectable> Problem for Advecting<'_, T> {
    type Decision = AdvectChoice;
    type Data = AdvectData<T>;
    type Executable<'a>
        = Advection<'a, T>
    where
        Self: 'a;
    type Output = LocalBlocks<T>;

    fn name(&self) -> String {
        self.step().name()
    }

    fn processors(&self, platform: Platform) -> Result<Platform> {
        platform.refuse_devices("an advection, which computes on cores").map(|()| platform)
    }

    fn measure(&self, platform: &Platform, context: Context<'_>) -> Result<QuickSpeeds> {
        let world = context.world;
        // All ranks measure the same sizes, which take at most half of the memory on all processors together.
        let memory = self.memory.or(available_memory().filter(|_| world.is_solo()));
        let cell = ARRAYS * platform.len() as u64 * size_of::<T>() as u64;
        let most = memory.map_or(f64::INFINITY, |memory| (memory / 2 / cell) as f64);
        let mut sizes = SIZES.map(|size| size.min(most).max(LEAST)).to_vec();
        sizes.dedup();
        context.watch("measuring", || {
            measure_quickly(&self.step(), platform, &sizes, Effort::Thorough, world, context.monitor)
        })
    }

    fn candidates(&self, machine: &Machine) -> Result<Vec<AdvectChoice>> {
        let options = AdvectOptions {
            method: self.task.method,
            orders: &self.orders,
            plan: self.task.sources.plan.as_ref(),
            steps: self.task.steps,
            element: size_of::<T>() as u64,
        };
        plan_advection(&self.problem, machine, &options)
    }

    fn forecast(&self, choice: &AdvectChoice, _: &Machine) -> Result<Forecast> {
        Ok(choice.plan.forecast.clone().expect("every choice was simulated"))
    }

    fn cost(&self, choice: &AdvectChoice, _: &Forecast) -> f64 {
        cost(&self.problem, choice, self.task.steps)
    }

    fn executable<'a>(
        &'a self,
        choice: &'a AdvectChoice,
        data: &'a AdvectData<T>,
    ) -> Result<Advection<'a, T>> {
        let AdvectData { field, faces, signed, steps } = data;
        Ok(Advection::new(self.schedule(choice, *steps)?, field, self.inputs.courant(faces), *signed))
    }

    fn verify<'a>(
        &'a self,
        advection: &Advection<'a, T>,
        held: Vec<ProcessorData<T>>,
        _: &World,
    ) -> Result<LocalBlocks<T>> {
        Ok(held.into_iter().flat_map(|held| advection.result(held)).collect())
    }
}

/// The plans, the best first; on ranks other than 0 only the best.
///
/// # Errors
/// No feasible plan; known to all ranks.
pub(super) fn ranked<T: Advectable>(
    job: &Job<'_, Advecting<'_, T>>,
    machine: &Machine,
    world: &World,
) -> Result<Vec<AdvectChoice>> {
    let mut choices: Vec<AdvectChoice> = Vec::new();
    for candidate in job.rank(machine, world)? {
        let mut choice = candidate.decision;
        choice.plan.forecast = candidate.forecast;
        choices.push(choice);
    }
    Ok(choices)
}

/// Says what there was to choose from.
pub(super) fn announce(choices: &[AdvectChoice], machine: &Machine, context: Context<'_>) {
    for (place, choice) in choices.iter().enumerate() {
        let mark = if place == 0 { "chosen" } else { "against" };
        let seconds = match machine.only_ratios() {
            true => "-".into(),
            false => format!("{:.6} s a step", choice.step_seconds),
        };
        let order = choice.order.to_string();
        context.detail(format!("{mark}: {:12} {order:24} {seconds}", choice.plan.method));
    }
}

/// The cells that all processors together advance by a step per second.
pub(super) fn rate(problem: &AdvectProblem, choice: &AdvectChoice, machine: &Machine) -> f64 {
    let levels = Plane::of(&problem.sizes).levels();
    let shares = machine.models.iter().zip(&choice.plan.shares);
    shares.map(|(model, share)| model.speed((share * levels).max(1) as f64)).sum()
}

/// Seconds of all steps at the sum of the speeds, if they are known.
pub(super) fn ideal_seconds(
    problem: &AdvectProblem,
    choice: &AdvectChoice,
    machine: &Machine,
    steps: u64,
) -> Option<f64> {
    let seconds = problem.cells() as f64 * steps as f64 / rate(problem, choice, machine);
    (!machine.only_ratios()).then_some(seconds)
}
