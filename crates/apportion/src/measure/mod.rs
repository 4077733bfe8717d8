//! Measurement of the speeds of processors and links: kernels, user programs, messages.

mod advection;
mod at_once;
mod availability;
mod balance;
mod child;
mod command;
mod focus;
mod kernels;
mod links;
mod links_threads;
mod links_world;
mod placeholders;
mod programs;
mod quick;
mod race;
mod repeated;
mod stencil;
mod sweep;
mod together;
mod units;

pub use advection::{advection_kernel, sweep_advection};
pub use availability::{CpuShare, UNDISTURBED, availability};
pub use balance::{Balance, BalanceOptions, Round, balance};
pub use command::{SecondsFrom, UserCommand};
pub use focus::{FocusedSweep, Request};
pub use kernels::{measure_gemm, measure_kernel, sweep_kernel};
pub use links::{LinkOptions, MeasuredLink, Probe, ProbeFn, measure_links};
pub use links_threads::threads_probe;
pub use links_world::measure_links_on;
pub use programs::sweep_command;
pub use quick::{AGREEMENT, Effort, QuickSpeeds, measure_advection_quickly, measure_quickly};
pub use race::{Race, fastest};
pub use stencil::sweep_stencil;
pub use sweep::{Keep, MeasureOptions, Sizes, Sweep};
pub use units::{UnitsRun, round_of, run_units};
