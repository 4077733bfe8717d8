//! The kernels' speed relative to the machine's peak: every figure with its target.
//!
//! `cargo run --release -p apportion --example kernel_peaks` takes a minute or two on a quiet machine; `--
//! quick` a third of that. Kernels and their competitors run in turn. The figures are medians, and ratios are
//! those of neighbouring runs; times are CPU times of one thread.

mod boolean;
mod clock;
mod real;
mod registers;
mod tropical;

fn main() {
    let turns = if std::env::args().any(|argument| argument == "quick") { 5 } else { 15 };
    tropical::report(turns);
    println!();
    boolean::report(turns);
    println!();
    real::report(turns);
}
