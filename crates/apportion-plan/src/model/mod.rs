//! Functional performance models: the speed of a processor as a function of the size of its task.
//!
//! Source: Lastovetsky and Reddy 2007, sections 2 and 3.

mod adaptive;
mod curve;
mod derived;
mod emulated;
mod file;
mod hockney;
mod llama_bench;
mod machine;
mod platform_speeds;
mod point;
mod statistics;
mod surface;
mod surface_file;

pub use adaptive::AdaptiveSweep;
pub use curve::{Failure, Interpolation, Model};
pub use derived::mix_models;
pub use file::{Models, ModelsFile, merge_models, read_models};
pub use hockney::{Hockney, MessageTime, fit_hockney};
pub use llama_bench::{LlamaSpeeds, read_llama_bench};
pub use machine::{Machine, rates};
pub use platform_speeds::{WorkUnit, only_ratios, platform_models};
pub use point::Point;
pub use statistics::{Band, Summary, median, summarise};
pub use surface::{Surface, SurfacePoint};
pub use surface_file::{Surfaces, read_surfaces};
