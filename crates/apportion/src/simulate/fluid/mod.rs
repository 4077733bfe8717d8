//! The fluid model: messages drain like water through links that they share fairly.
//!
//! A message sets off when its rule says so ([`Fluid`]), waits the latency of its route without taking
//! bandwidth, then drains at a rate that max-min fairness gives it among all flows under way, recomputed
//! whenever one of those it shares links with comes or goes. Exact for this model (no time step): every event
//! is at a computed moment.
//!
//! Sources: Casanova and Marchal 2002; Velho and Legrand 2009; Velho et al., TOMACS 23(4) 2013 (the model and
//! its validity); Bertsekas and Gallager 1992, section 6.5.2 (max-min fairness).

mod deadlock;
mod engine;
mod fabric;
mod flows;
mod hosts;
mod maxmin;
mod messages;
mod queue;
mod rules;
mod script;
mod transfer;

pub(super) use fabric::Fabric;
pub use hosts::Host;
pub use rules::{Fluid, Tcp, Weights};

use super::CostModel;
use super::explain::History;
use crate::error::Result;
use crate::geometry::Rank;
use crate::platform::{Load, Network, Topology};
use crate::schedule::Application;
use crate::trace::Trace;
use engine::Engine;

/// What a processor does next, as far as the clock is concerned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Action {
    /// Computes so many units of work.
    Compute(f64),
    /// Posts a message.
    Send {
        /// Its receiver.
        to: Rank,
        /// Tells the messages of a pair apart; those with the same tag arrive in order.
        tag: u64,
        /// Its bytes.
        load: Load,
        /// What becomes of the request.
        then: Then,
    },
    /// Posts a message that travels along with the next one that its sender posts, on a medium that all hear:
    /// it arrives when that does and takes no bandwidth of its own. Its sender never waits for it.
    Along {
        /// Its receiver.
        to: Rank,
        /// As of a message sent.
        tag: u64,
        /// What its receiver gets.
        load: Load,
    },
    /// Posts room for a message.
    Receive {
        /// Its sender.
        from: Rank,
        /// Its tag.
        tag: u64,
        /// What becomes of the request.
        then: Then,
    },
    /// Waits for one of its own requests, and forgets it.
    Await {
        /// The message's sender.
        from: Rank,
        /// The message's receiver.
        to: Rank,
        /// Its tag.
        tag: u64,
    },
    /// Waits until all its sends have arrived.
    Flush,
    /// Waits for all its requests, and forgets them.
    AwaitAll,
}

/// What becomes of a request just posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// Its processor waits for it at once (MPI_Send, MPI_Recv).
    Wait,
    /// A later action names it (MPI_Isend, MPI_Irecv).
    Remember,
    /// No later action names it; those that wait for everything still do.
    Forget,
}

/// What actions run on.
#[derive(Debug, Clone, Copy)]
pub struct Deployment<'a> {
    /// Hosts by number.
    pub hosts: &'a [Host],
    /// Each rank's host.
    pub placement: &'a [usize],
    /// Names of the ranks, for messages.
    pub names: &'a [String],
    /// The network between the ranks.
    pub network: &'a Network,
}

/// What a simulation found.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// What each rank did when.
    pub trace: Trace,
    /// What each rank waited for, if that was asked for.
    pub history: Option<History>,
}

/// Runs a list of actions for each rank against a clock. Deterministic: what happens at one moment happens in
/// the order of ranks and steps. O(a log a + s) for a actions and the work s of sharing: per moment at which
/// flows come or go, the size of the part of the network that hangs together with them (its flows times their
/// links, times a logarithm).
///
/// # Errors
/// A deadlock, with the circle in which the ranks wait (exit code 1); work for a host without speed; waiting
/// for what was not posted.
pub fn simulate_actions<P: Iterator<Item = Action>>(
    scripts: &mut [P],
    on: Deployment<'_>,
    rules: &Fluid,
    explain: bool,
) -> Result<Outcome> {
    assert_eq!(scripts.len(), on.placement.len(), "one script per rank");
    let mut engine = Engine::new(&on, rules, explain);
    engine.run(scripts)?;
    if let Some(error) = deadlock::deadlock(&engine, on.names) {
        return Err(error);
    }
    Ok(Outcome { trace: Trace { lanes: engine.lanes }, history: engine.history })
}

/// Runs a schedule against a clock in the fluid model; costs and errors of [`simulate_actions`].
///
/// # Errors
/// A rate that is not positive for a processor that computes, or a schedule that deadlocks under these rules.
pub fn simulate_fluid<A: Application>(
    schedule: &A,
    conditions: CostModel<'_>,
    names: &[String],
    rules: &Fluid,
    explain: bool,
) -> Result<Outcome> {
    let p = schedule.processors();
    assert_eq!(conditions.rates.len(), p, "one rate per processor");
    let hosts: Vec<Host> = conditions.rates.iter().map(|&speed| Host { speed, cores: 1 }).collect();
    let placement: Vec<usize> = (0..p).collect();
    let on = Deployment { hosts: &hosts, placement: &placement, names, network: conditions.network };
    let medium =
        (rules.broadcasts && conditions.network.topology == Topology::Bus).then_some(conditions.network);
    let mut scripts: Vec<_> =
        (0..p).map(|i| script::Script::new(schedule, Rank(i), conditions.element, medium)).collect();
    let mut outcome = simulate_actions(&mut scripts, on, rules, explain)?;
    for (lane, script) in outcome.trace.lanes.iter_mut().zip(scripts) {
        script.count(lane);
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests;
