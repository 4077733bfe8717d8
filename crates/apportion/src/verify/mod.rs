//! Checks of a product's real result.

mod freivalds;
mod samples;

pub(crate) use freivalds::{Scale, SplitMix64, exponent};
pub use freivalds::{Verified, verify_product, verify_scaled};
pub use samples::{Sampled, verify_sampled, verify_sampled_at};
