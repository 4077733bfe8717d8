//! Jobs: every decision that a caller leaves open, made once, for all front ends.
//!
//! A job goes from inputs to a verified result: it opens the operands, finds the processors and their speeds
//! (given, remembered or measured), chooses plan and flow, makes the ranks agree on them, runs in memory or in
//! panels, and leaves verified outputs that are ready to appear. The command, the Python package and the C
//! library call it and decide nothing themselves.

mod agreement;
mod blocked;
mod cache;
mod costs;
mod decision;
mod devices;
mod drivers;
mod forecast;
mod grouping;
mod halo;
mod kernel;
mod layouts;
mod network;
mod operands;
mod options;
mod outputs;
mod panels;
mod problem;
mod product;
mod shortcuts;
mod sources;
mod speeds;
mod units;

pub use agreement::{InputFiles, block_files, compare_inputs};
pub use blocked::{
    Blocked, BlockedOptions, Keep, Kept, MemoryNeed, finish_parts, kept_parts, with_kept_parts,
};
pub use costs::{read_unit_costs, read_unit_memory};
pub use decision::{Decision, decide};
pub use devices::{DevicePart, open_devices};
pub use drivers::{FoundDevices, check_drivers, find_devices};
pub use forecast::{ForecastTask, OrderForecast, find_fastest_order};
pub use halo::{Border, Halo, Neighbour, Patch, Stencil, Sweep, neighbours};
pub use kernel::KernelChoice;
pub use layouts::lay_out_product;
pub use network::measure_unknown_network;
pub use operands::{DistributedArray, MatrixOperand, is_layout_file, result_sizes};
pub use options::{DEFAULT_BLOCK, FlowOptions, RunOptions, network_options, parse_choice, size_parts};
pub use outputs::{Outputs, complete, gather_whole, write_blocks};
pub use panels::{CutReason, PanelOutcome};
pub use problem::{Candidate, Job, JobMachine, JobOutcome, JobReport, Problem, Solved, in_world};
pub use product::{Explanation, MatrixJob, Operation, Outcome, ProductTask, forecast_run, rank_of};
pub use shortcuts::{layout, matmul, shares};
pub use sources::{
    Sources, check_world_size, in_plan_order, in_rank_order, models_from_times, note_absent_cores,
    processors_by_name, warn_of_another_kernel, with_speeds, world_platform,
};
pub use speeds::{MeasuredSpeeds, SpeedSource, measure_or_recall, warn_of_uncertainty};
pub use units::{
    ClusterUnits, Division, DivisionDetail, ShareLimit, UnitObjective, UnitOptions, divide_units,
    limits_by_rank,
};

use crate::run::{Monitor, World};

/// Receives what a job says while it runs. Nothing is required: by default it is dropped.
pub trait Observer {
    /// Takes a note for the user.
    fn note(&self, _text: &str) {}

    /// Takes a decision, for users who want to follow them.
    fn detail(&self, _text: &str) {}

    /// Accompanies work that may take long, such as with a progress bar; calls `work` once.
    fn watch(&self, _what: &str, work: &mut dyn FnMut()) {
        work();
    }
}

/// An observer that drops everything.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

impl Observer for Silent {}

/// Where a job runs, and who observes it.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The processes.
    pub world: &'a World,
    /// Progress, and requests to stop.
    pub monitor: &'a Monitor,
    /// Notes, decisions and progress. Only rank 0's is heard: those of other ranks are [`Silent`].
    pub observer: &'a dyn Observer,
}

impl<'a> Context<'a> {
    /// A context without an observer.
    pub fn silent(world: &'a World, monitor: &'a Monitor) -> Self {
        Self { world, monitor, observer: &Silent }
    }

    pub(crate) fn silenced(self) -> Self {
        Self { observer: &Silent, ..self }
    }

    /// Passes on a note.
    pub fn note(&self, text: impl AsRef<str>) {
        self.observer.note(text.as_ref());
    }

    /// Passes on a decision.
    pub fn detail(&self, text: impl AsRef<str>) {
        self.observer.detail(text.as_ref());
    }

    /// Does work that the observer accompanies, and returns its result.
    pub fn watch<R>(&self, what: &str, work: impl FnOnce() -> R) -> R {
        let (mut work, mut outcome) = (Some(work), None);
        self.observer.watch(what, &mut || outcome = work.take().map(|work| work()));
        outcome.expect("an observer calls the work once")
    }
}
