//! Becker's experiments (2010, sections 5.6 to 5.8, 6.2, 7.5) and Tinetti's time model, on emulated
//! processors and links.
//!
//! `cargo bench --bench laboratory` prints one table per figure, measured beside forecast, in less than ten
//! minutes; `-- --quick` prints a smaller selection in less than a minute, and `-- clusters` (or another
//! name) one experiment. `-- --pictures DIR` also draws those of two processors or clusters. For the emulated
//! machines and the results see docs/results/laboratory.md.

mod bench;
mod overlap;
mod three;
mod tinetti;
mod two;

use bench::Bench;
use std::path::PathBuf;
use std::time::Instant;

/// The function that prints an experiment's tables.
type Experiment = fn(&Bench);

/// Experiments by name.
const EXPERIMENTS: [(&str, Experiment); 7] = [
    ("processors", two::processors),
    ("clusters", two::clusters),
    ("constant-power", two::constant_power),
    ("max-plus", two::max_plus),
    ("three", three::star_and_full),
    ("overlap", overlap::recovered),
    ("tinetti", tinetti::broadcasts),
];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let named = |name: &str| arguments.iter().any(|argument| argument == name);
    let all = !EXPERIMENTS.iter().any(|(name, _)| named(name));
    let begin = Instant::now();
    let pictures = arguments.iter().position(|argument| argument == "--pictures").map(|i| {
        let directory = arguments.get(i + 1).expect("--pictures DIRECTORY");
        PathBuf::from(directory)
    });
    let bench = Bench::new(named("--quick"), pictures);
    println!("{}", bench.heading());
    for (name, experiment) in EXPERIMENTS {
        if all || named(name) {
            experiment(&bench);
        }
    }
    println!("This took {:.0} s.", begin.elapsed().as_secs_f64());
}
