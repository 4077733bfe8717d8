//! Running a schedule for real.

mod balance;
mod blocks;
mod child;
mod clock;
mod command;
mod governor;
pub mod kernels;
mod measure;
mod monitor;
mod post;
mod sweep;
mod threads;

pub use balance::{Balance, BalanceOptions, Round, balance};
pub use command::{SecondsFrom, UserCommand, sweep_command};
pub use measure::{measure_gemm, sweep_gemm};
pub use monitor::Monitor;
pub use sweep::{Keep, MeasureOptions, Sizes, Sweep};
pub use threads::{RunOutput, run_threads};
