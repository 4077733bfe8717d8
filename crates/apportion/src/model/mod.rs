//! Functional performance models: the speed of a processor as a function of the size of its task.
//!
//! Source: Lastovetsky and Reddy 2007, sections 2 and 3.

mod adaptive;
mod band;
mod carried;
mod curve;
mod emulated;
mod file;
mod hockney;
mod machine;
mod merge;
mod mix;
mod platform_speeds;
mod point;
mod statistics;
mod surface;
mod surface_file;

pub use adaptive::AdaptiveSweep;
pub use curve::{Failure, Interpolation, Model};
pub use file::{Models, read_models};
pub use hockney::{Hockney, MessageTime, fit_hockney};
pub use machine::{Machine, rates};
pub use merge::merge;
pub use mix::mixed;
pub use platform_speeds::{WorkUnit, only_ratios, platform_models};
pub use point::Point;
pub(crate) use statistics::median;
pub use statistics::{Summary, student_95, summarise};
pub use surface::Surface;
pub use surface_file::{Surfaces, read_surfaces};
