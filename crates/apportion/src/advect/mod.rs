//! MPDATA on unequal processors: files to fields, checks of the flow, the run, and its report.

mod application;
mod check;
mod choose;
mod job;

pub use application::{Advection, Courant};
pub use check::{FlowCheck, check_flow};
pub use choose::{AdvectChoice, advection_rates, plan_advection};
pub use job::{AdvectJob, AdvectReport, Moments, advect, file_hash, moments, needed_faces, own_cells};

#[cfg(test)]
mod tests;
