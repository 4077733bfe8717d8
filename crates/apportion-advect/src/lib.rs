//! MPDATA on unequal processors: files to fields, checks of the flow, the run, and its report.

mod application;
mod check;
mod choose;
mod job;
pub mod moments;
mod schedule;
mod slabs;

pub use application::Courant;
pub use check::{FlowCheck, check_flow};
pub use choose::{AdvectChoice, AdvectOptions, advection_rates, plan_advection};
pub use job::{AdvectJob, AdvectReport, advect, file_hash, needed_faces, own_cells};
pub use moments::{Moments, MomentsSoFar, moments};
pub(crate) use schedule::Region;
pub use schedule::{Advance, AdvectOrder, AdvectProblem, AdvectSchedule, HaloPiece, Plane};
pub use slabs::{
    Band, CourantFile, DiskUse, SlabCosts, SlabRun, Slabs, check_flow_in_file, each_band, slab_bytes,
    tallest_slab,
};

#[cfg(test)]
mod tests;
