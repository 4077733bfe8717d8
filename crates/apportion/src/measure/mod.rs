//! Measurement of the speeds of processors and links: kernels, user programs, messages.

mod advection;
mod at_once;
mod balance;
mod child;
mod children;
mod command;
mod focus;
mod kernels;
mod links;
mod links_threads;
mod links_world;
mod placeholders;
mod programs;
mod race;
mod repeated;
mod stencil;
mod sweep;
mod together;
mod units;

pub use advection::{advection_kernel, sweep_advection};
pub use balance::{Balance, BalanceOptions, Round, balance};
pub use children::abandon_programs;
pub use command::{SecondsFrom, UserCommand};
pub use focus::{FocusedSweep, Request};
pub use kernels::{measure_gemm, measure_kernel, sweep_kernel};
pub use links::{LinkOptions, MeasuredLink, Probe, ProbeFn, measure_links};
pub use links_threads::threads_probe;
pub use links_world::measure_links_on;
pub use programs::sweep_command;
pub use race::{Race, fastest};
pub use stencil::sweep_stencil;
pub use sweep::{Keep, MeasureOptions, Sizes, Sweep};
pub use together::{measure_advection_on, measure_on};
pub use units::{UnitsRun, round_of, run_units};
