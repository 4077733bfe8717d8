//! 1-D shares: how many of n units each processor gets.
//!
//! [`even`] ignores speeds, [`proportional`] takes one number per processor, [`fpm`] takes speed functions.

mod even;
mod fpm;
mod proportional;

pub use even::even;
pub use fpm::{fpm, ideal_seconds};
pub use proportional::proportional;

use crate::model::Model;

/// The longest of the processors' times: what the slowest to finish needs.
pub fn makespan(models: &[Model], shares: &[u64]) -> f64 {
    models.iter().zip(shares).map(|(model, &share)| model.seconds(share as f64)).fold(0.0, f64::max)
}
