//! Discrete events: the Matrix Discrete Event Model of a workcell.
//!
//! A [`Workcell`] has jobs, resources, parts that enter, and rules: "if these jobs are done, these resources
//! are free and these parts wait: start jobs, release resources, produce products". Which rules may fire is
//! the and/or product of equation (7.3) of Becker 2010, after Tacconi and Lewis 1997; what they start,
//! release and produce are (7.4) to (7.6). [`simulate_workcell`] adds the event clock, dispatching, and the
//! search for deadlocks. Several scenarios or replications are columns of one matrix-matrix product, which
//! [`SharedLogic`] divides among unequal processors.
//!
//! A workcell without conflicts is a timed event graph, and so a linear system over max-plus: [`EventGraph`].

mod clock;
mod conflicts;
mod cycle;
mod deadlock;
mod dispatch;
mod event_graph;
mod file;
mod history;
mod logic;
mod matrices;
mod scenario;
mod state;
mod workcell;

pub use clock::{EventOptions, simulate_workcell};
pub use conflicts::{Conflict, SharedPlace, shared_places};
pub use cycle::Cycle;
pub use deadlock::{Deadlock, Wait};
pub use event_graph::{EventGraph, GraphCycle};
pub use file::{parse_workcell, read_workcell};
pub use history::{End, EventRun, Record, Segment, Usage, What};
pub use logic::{LocalLogic, LogicStep, SharedLogic};
pub use matrices::EventMatrices;
pub use scenario::Scenario;
pub use workcell::{Arrivals, Job, Nanos, PartSource, Place, Resource, Rule, Workcell, seconds};
pub(crate) use workcell::{Dispatching, Duration};

#[cfg(test)]
mod tests;
