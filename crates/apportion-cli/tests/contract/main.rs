//! The command line's contract, tested on the binary: files, exit codes, what is printed and what is left behind.
//! Speeds and times are never asserted: machines are shared and noisy.
#![allow(clippy::unwrap_used)] // A test says what went wrong by failing.

mod bad_input;
mod bench;
mod crossovers;
mod flows;
#[cfg(unix)]
mod interrupt;
mod matmul;
mod reports;
mod sources;

use bench::Bench;
