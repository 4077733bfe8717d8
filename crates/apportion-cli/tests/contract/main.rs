//! The command line's contract, tested on the binary: files, exit codes, output, and files left behind.
//! Speeds and times are never asserted: machines are shared and noisy.
#![allow(clippy::unwrap_used)] // A test says what went wrong by failing.

mod adaptive;
mod advect;
mod arrange;
mod bench;
mod block_cyclic;
mod boxes;
mod choices;
#[cfg(unix)]
mod commands;
mod costs;
mod crossovers;
mod detect;
mod devices;
mod distributed;
mod divided;
mod docs;
mod doctor;
#[cfg(target_os = "linux")]
mod drivers;
mod emulated;
mod exports;
mod factor;
mod factor_slabs;
mod files;
mod flags;
mod flows;
mod focused;
mod golden;
mod graphs;
mod help;
mod instructions;
#[cfg(unix)]
mod interrupt;
#[cfg(target_os = "linux")]
mod launchers;
mod layouts;
mod liars;
#[cfg(target_os = "linux")]
mod limits;
mod links;
mod matmul;
mod mdem;
#[cfg(unix)]
mod measured;
mod memory;
#[cfg(unix)]
mod models;
#[cfg(target_os = "linux")]
mod mpi;
mod one_pass;
mod outputs;
mod owners;
#[cfg(unix)]
mod pages;
mod panels;
mod plans;
#[cfg(unix)]
mod programs;
mod ratios;
mod refusals;
mod reports;
mod scaled;
mod semirings;
mod shares;
mod simulate;
#[cfg(unix)]
mod slabs;
mod sources;
#[cfg(target_os = "linux")]
mod starts;
mod subsets;
mod sweeps;
mod symmetric;
mod tail;

use bench::Bench;
