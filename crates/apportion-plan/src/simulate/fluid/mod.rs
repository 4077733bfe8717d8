//! The fluid model: messages drain like water through links that they share fairly.
//!
//! A message starts when its rule says so ([`Fluid`]). It first waits the latency of its route without taking
//! bandwidth. Then it drains at the rate that max-min fairness gives it among all flows in progress. The rate
//! is recomputed whenever a flow that shares its links starts or ends. The simulation is exact for this
//! model: there is no time step, and every event is at a computed moment.
//!
//! Sources: Casanova and Marchal 2002; Velho and Legrand 2009; Velho et al., TOMACS 23(4) 2013 (the model and
//! its validity); Bertsekas and Gallager 1992, section 6.5.2 (max-min fairness).

mod bottlenecks;
mod engine;
mod fabric;
mod flows;
mod maxmin;
mod messages;
mod queue;
mod rules;
mod script;

pub use engine::Host;
pub(super) use fabric::Fabric;
pub use rules::{Fluid, Tcp, Weights};

use super::CostModel;
use super::explain::History;
use super::record::{Events, Record, Totals};
use crate::error::Result;
use crate::geometry::Rank;
use crate::plan::Forecast;
use crate::platform::{Load, Network, Topology};
use crate::schedule::Application;
use crate::trace::Trace;
use engine::{Engine, deadlock_error};
use script::Script;

/// One action of a processor, as far as timing is concerned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Action {
    /// Computes this many units of work.
    Compute(f64),
    /// Does nothing for this many seconds.
    Sleep(f64),
    /// Posts a message.
    Send {
        /// Its receiver.
        to: Rank,
        /// Distinguishes the messages of a pair; those with the same tag arrive in order.
        tag: u64,
        /// Its bytes.
        load: Load,
        /// Handling of the request.
        then: Then,
    },
    /// Posts a message that travels with the next message of its sender, on a medium that all receivers hear.
    /// It arrives when that message does and takes no bandwidth of its own. Its sender never waits for it.
    Along {
        /// Its receiver.
        to: Rank,
        /// Tag, as for [`Action::Send`].
        tag: u64,
        /// Bytes that its receiver gets.
        load: Load,
    },
    /// Posts a receive.
    Receive {
        /// Its sender.
        from: Rank,
        /// Its tag.
        tag: u64,
        /// Handling of the request.
        then: Then,
    },
    /// Waits for one of its own requests, and completes it.
    Await {
        /// The message's sender.
        from: Rank,
        /// The message's receiver.
        to: Rank,
        /// Its tag.
        tag: u64,
    },
    /// Asks whether one of its own requests is complete, and if so, completes it: a later wait for it takes
    /// no time. As in SimGrid, asking takes 0.1 ms, and 0.1 ms more after each answer "no" of any rank, up to
    /// the next "yes".
    Test {
        /// The message's sender.
        from: Rank,
        /// The message's receiver.
        to: Rank,
        /// Its tag.
        tag: u64,
    },
    /// Waits until all its sends have arrived.
    Flush,
    /// Waits for all its requests, and completes them.
    AwaitAll,
}

/// Handling of a request that was just posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// Its processor waits for it at once (MPI_Send, MPI_Recv).
    Wait,
    /// A later action names it (MPI_Isend, MPI_Irecv).
    Remember,
    /// No later action names it; an action that waits for all requests still includes it.
    Forget,
}

/// Hosts, ranks and network that actions run on.
#[derive(Debug, Clone, Copy)]
pub struct Deployment<'a> {
    /// Hosts by number.
    pub hosts: &'a [Host],
    /// Each rank's host.
    pub placement: &'a [usize],
    /// Names of the ranks, for error messages.
    pub names: &'a [String],
    /// The network between the ranks.
    pub network: &'a Network,
}

/// Result of a simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Activities of each rank over time.
    pub trace: Trace,
    /// Waits of each rank, if they were requested.
    pub history: Option<History>,
}

/// Simulates a list of actions for each rank. Deterministic: events at the same moment are handled in the
/// order of ranks and steps. O(a log a + s) for a actions and the work s of sharing. At every moment at which
/// flows start or end, s grows by the size of the affected connected components of the network (flows times
/// links, times a logarithm).
///
/// # Errors
/// A deadlock, with the cycle in which the ranks wait (exit code 1); work for a host without speed; waiting
/// for a message that was not posted.
pub fn simulate_actions<P: Iterator<Item = Action>>(
    scripts: &mut [P],
    on: Deployment<'_>,
    rules: &Fluid,
    explain: bool,
) -> Result<Outcome> {
    let record = Events::new(on.placement.len(), explain);
    perform(scripts, on, rules, record).map(Events::outcome)
}

fn perform<P: Iterator<Item = Action>, R: Record>(
    scripts: &mut [P],
    on: Deployment<'_>,
    rules: &Fluid,
    record: R,
) -> Result<R> {
    assert_eq!(scripts.len(), on.placement.len(), "one script per rank");
    let mut engine = Engine::new(&on, rules, record);
    engine.run(scripts)?;
    match deadlock_error(&engine, on.names) {
        Some(error) => Err(error),
        None => Ok(engine.record),
    }
}

/// Simulates a schedule in the fluid model; costs and errors of [`simulate_actions`].
///
/// # Errors
/// A rate that is not positive for a processor that computes, or a schedule that deadlocks under these rules.
pub fn simulate_fluid<A: Application>(
    schedule: &A,
    costs: CostModel<'_>,
    names: &[String],
    rules: &Fluid,
    explain: bool,
) -> Result<Outcome> {
    let events = Events::new(schedule.processors(), explain);
    let (events, scripts) = scripted(schedule, costs, names, rules, events)?;
    let mut outcome = events.outcome();
    for (lane, script) in outcome.trace.lanes.iter_mut().zip(scripts) {
        script.count(lane);
    }
    Ok(outcome)
}

/// The times of [`simulate_fluid`], bit for bit, without its events.
///
/// # Errors
/// Those of [`simulate_fluid`].
pub fn forecast_fluid<A: Application>(
    schedule: &A,
    costs: CostModel<'_>,
    names: &[String],
    rules: &Fluid,
) -> Result<Forecast> {
    let totals = Totals::new(schedule.processors());
    scripted(schedule, costs, names, rules, totals).map(|(totals, _)| totals.forecast())
}

fn scripted<'a, A: Application, R: Record>(
    schedule: &'a A,
    costs: CostModel<'a>,
    names: &[String],
    rules: &Fluid,
    record: R,
) -> Result<(R, Vec<Script<'a, A>>)> {
    let p = schedule.processors();
    assert_eq!(costs.rates.len(), p, "one rate per processor");
    let hosts: Vec<Host> = costs.rates.iter().map(|&speed| Host { speed, cores: 1 }).collect();
    let placement: Vec<usize> = (0..p).collect();
    let on = Deployment { hosts: &hosts, placement: &placement, names, network: costs.network };
    let medium = (rules.broadcasts && costs.network.topology == Topology::Bus).then_some(costs.network);
    let script = |i| Script::new(schedule, Rank(i), costs.element, medium, R::COUNTS);
    let mut scripts: Vec<_> = (0..p).map(script).collect();
    let record = perform(&mut scripts, on, rules, record)?;
    Ok((record, scripts))
}

#[cfg(test)]
mod tests;
