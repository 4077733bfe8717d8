//! From the flags of `measure --network` to sizes and repetitions of messages.

use super::measure::options;
use crate::args::MeasureArgs;
use apportion::error::{Error, Result};
use apportion::measure::{LinkOptions, MeasureOptions};
use apportion::platform::Platform;

/// Rejects a platform without any pair.
pub fn several(platform: Platform) -> Result<Platform> {
    if platform.len() >= 2 {
        return Ok(platform);
    }
    Err(Error::input("platform", "a single processor has no links", "use at least two processors"))
}

/// Sizes and repetitions of messages.
pub fn link_options(args: &MeasureArgs) -> Result<LinkOptions> {
    let usual = LinkOptions::default();
    let otherwise = MeasureOptions {
        most_repetitions: usual.most_repetitions as u64,
        seconds_per_size: usual.seconds_per_size,
        ..MeasureOptions::default()
    };
    let given = options(args, otherwise)?;
    let sizes = match &args.sizes {
        None => usual.sizes,
        Some(sizes) => sizes.0.iter().map(|&size| bytes(size)).collect::<Result<_>>()?,
    };
    Ok(LinkOptions {
        sizes,
        tolerance: given.tolerance,
        most_repetitions: given.most_repetitions as usize,
        seconds_per_size: given.seconds_per_size,
    })
}

fn bytes(size: f64) -> Result<u64> {
    let whole = size >= 1.0 && size <= f64::from(1 << 30) && size.fract() == 0.0;
    whole.then_some(size as u64).ok_or_else(|| {
        let what = format!("{size} is not a whole number of bytes from 1 to 2^30");
        Error::input("--sizes", what, "use sizes such as 1,4Ki,64Ki,1Mi")
    })
}
