//! Workcells worked by hand, and the matrices beside a plain interpreter of the rules.

mod by_hand;
mod files;
mod graphs;
mod interpreter;
mod processors;
mod random_cells;

use super::{EventOptions, EventRun, LocalLogic, Workcell, parse_workcell, simulate_workcell};
use apportion::error::Result;
use apportion::run::Monitor;

/// The text of an example.
macro_rules! example {
    ($name:literal) => {
        include_str!(concat!("../../../../examples/mdem/", $name, ".toml"))
    };
}
use example;

fn cell(text: &str) -> Workcell {
    parse_workcell(text, "cell.toml").unwrap_or_else(|error| panic!("{error}"))
}

fn run(workcell: &Workcell, options: &EventOptions) -> Result<Vec<EventRun>> {
    let matrices = super::EventMatrices::of(workcell);
    simulate_workcell(workcell, options, &mut LocalLogic::new(&matrices), &Monitor::new())
}

/// The run of the workcell as written.
fn only(workcell: &Workcell) -> EventRun {
    run(workcell, &EventOptions::default()).expect("the workcell can be simulated").remove(0)
}
