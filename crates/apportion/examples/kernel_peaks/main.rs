//! How close the kernels come to what the machine can do: every figure with its target.
//!
//! `cargo run --release -p apportion --example kernel_peaks` takes a minute or two on a quiet machine;
//! `-- quick` a third of it. Kernels and their rivals run in turn; the figures are medians, ratios those of
//! neighbours; times are CPU times of one thread.

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
