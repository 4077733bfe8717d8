//! What may be typed: clap's structs only. Nothing here knows the rest of the program.

pub mod arrange;
pub mod balance;
mod blas;
pub mod demo;
pub mod detect;
mod engine;
pub mod export;
mod flow;
pub mod measure;
pub mod numbers;
pub mod partition;
pub mod plot;
pub mod sharing;
pub mod simulate;
mod sources;
pub mod study;
mod sweep;
pub mod units;

pub use arrange::ArrangeArgs;
pub use balance::BalanceArgs;
pub use blas::BlasArgs;
pub use demo::DemoArgs;
pub use detect::DetectArgs;
pub use engine::EngineName;
pub use export::ExportArgs;
pub use flow::{BLOCK, FlowArgs};
pub use measure::MeasureArgs;
pub use partition::PartitionArgs;
pub use plot::PlotArgs;
pub use sharing::NetworkArgs;
pub use simulate::SimulateArgs;
pub use sources::Sources;
pub use study::StudyArgs;
pub use sweep::SweepArgs;
pub use units::UnitsArgs;
