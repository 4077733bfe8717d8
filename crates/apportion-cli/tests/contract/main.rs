//! The command line's contract, tested on the binary: files, exit codes, what is printed and what is left behind.
//! Speeds and times are never asserted: machines are shared and noisy.
#![allow(clippy::unwrap_used)] // A test says what went wrong by failing.

mod adaptive;
mod bad_input;
mod bench;
mod crossovers;
mod flows;
#[cfg(unix)]
mod interrupt;
mod matmul;
mod panels;
mod reports;
mod scaled;
mod sources;

use bench::Bench;
