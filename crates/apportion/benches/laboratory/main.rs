//! Becker's experiments (2010, sections 5.6 to 5.8, 6.2, 7.5) and Tinetti's time model, on emulated processors and links.
//!
//! `cargo bench --bench laboratory` prints one table per figure, measured beside forecast, in less than ten minutes;
//! `-- --quick` a smaller selection in less than a minute. What it emulates and what came out: docs/laboratory.md.

mod bench;
mod overlap;
mod three;
mod tinetti;
mod two;

use bench::Bench;
use std::time::Instant;

fn main() {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let begin = Instant::now();
    let bench = Bench::new(quick);
    println!("{}", bench.heading());
    two::processors(&bench);
    two::clusters(&bench);
    two::constant_power(&bench);
    two::max_plus(&bench);
    three::star_and_full(&bench);
    overlap::recovered(&bench);
    tinetti::broadcasts(&bench);
    println!("All of it took {:.0} s.", begin.elapsed().as_secs_f64());
}
