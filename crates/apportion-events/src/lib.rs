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
//!
//! This crate promises nothing of its own: what is kept stable is `apportion`, with what that re-exports.
//!
//! ```
//! use apportion::run::Monitor;
//! use apportion_events::{EventMatrices, EventOptions, LocalLogic, parse_workcell, simulate_workcell};
//!
//! let text = r#"
//!     name = "one machine"
//!     [[part]]
//!     name = "blank"
//!     count = 2
//!     [[resource]]
//!     name = "mill"
//!     [[job]]
//!     name = "milling"
//!     duration = "60 s"
//!     [[rule]]
//!     name = "begin"
//!     parts = ["blank"]
//!     free = ["mill"]
//!     start = ["milling"]
//!     [[rule]]
//!     name = "end"
//!     done = ["milling"]
//!     release = ["mill"]
//!     produce = ["gear"]
//! "#;
//! let workcell = parse_workcell(text, "example")?;
//! let matrices = EventMatrices::of(&workcell);
//! let mut logic = LocalLogic::new(&matrices);
//! let runs = simulate_workcell(&workcell, &EventOptions::default(), &mut logic, &Monitor::new())?;
//! assert_eq!((runs[0].products[0], runs[0].makespan), (2, 120_000_000_000));
//! # Ok::<(), apportion::Error>(())
//! ```
#![warn(unreachable_pub)]

mod chart;
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
pub(crate) use history::Segment;
pub use history::{End, EventRun, Record, Usage, What};
pub use logic::{LocalLogic, LogicStep, SharedLogic};
pub use matrices::EventMatrices;
pub use scenario::Scenario;
pub use workcell::{Arrivals, Job, Nanos, PartSource, Place, Resource, Rule, Workcell, seconds};
pub(crate) use workcell::{Dispatching, Duration};

#[cfg(test)]
mod tests;
