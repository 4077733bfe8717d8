//! Measurement of the speeds of processors and links: kernels, user programs, messages.

mod availability;
mod balance;
mod clock_noise;
mod command;
mod device_links;
mod focus;
mod host_links;
mod kernel_choice;
mod links;
mod marks;
mod process;
mod processor_threads;
mod programs;
mod quick;
mod remote;
mod repetition;
mod sweep;
mod units;
mod workload;

pub(crate) use availability::others_are_running;
pub use availability::{CpuShare, UNDISTURBED, is_exhausted, measure_availability};
pub use balance::{Balance, BalanceOptions, Round, ShareCap, balance};
pub use clock_noise::{ClockNoise, measure_clock_noise};
pub use command::{SecondsFrom, UserCommand};
pub use device_links::measure_device_links;
pub use focus::{FocusedSweep, SizeRequest};
pub(crate) use host_links::measure_host_network;
pub use kernel_choice::{KernelChoice, KernelRate, choose_kernel};
pub use links::{Latency, LinkOptions, MeasuredLink, measure_links};
pub use process::abandon_programs;
pub use quick::{Effort, QuickSpeeds, measure_quickly};
pub(crate) use quick::{TimeRange, measure_more};
pub use repetition::{Computation, ComputationTrial, MeasureOptions};
pub use sweep::{ModelObserver, Sizes, Subject, Sweep, measure_speeds};
pub use units::{UnitsRun, round_of, run_units};
pub use workload::{KernelUpdate, MpdataStep, UpwindStep, Workload};
