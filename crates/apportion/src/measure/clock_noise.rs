//! How evenly time passes for equal work on this machine.

use crate::model::median;
use std::hint::black_box;
use std::time::Instant;

/// Seconds of a piece of work, and number of pieces.
const PIECE: f64 = 0.000_5;
const PIECES: usize = 200;
/// Number of looks at the clock for its smallest step.
const LOOKS: usize = 1000;

/// The smallest step of the clock, and how the times of equal work differ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClockNoise {
    /// Seconds of the smallest step that was seen.
    pub resolution: f64,
    /// The 5 % quantile of the times of equal work, over their median.
    pub low: f64,
    /// The 95 % quantile, over the median: larger than 1.1 beside other programs or with a clock that changes.
    pub high: f64,
}

/// Times 200 equal pieces of arithmetic of half a millisecond on this thread. Takes about a tenth of a second.
pub fn measure_clock_noise() -> ClockNoise {
    let steps = (0..LOOKS).map(|_| {
        let begin = Instant::now();
        loop {
            let step = begin.elapsed().as_secs_f64();
            if step > 0.0 {
                return step;
            }
        }
    });
    let resolution = steps.fold(f64::INFINITY, f64::min);
    let mut count = 1 << 12;
    while work(count) < PIECE {
        count *= 2;
    }
    let mut times: Vec<f64> = (0..PIECES).map(|_| work(count)).collect();
    let usual = median(&times);
    times.sort_by(f64::total_cmp);
    let quantile = |part: f64| times[(part * (PIECES - 1) as f64) as usize] / usual;
    ClockNoise { resolution, low: quantile(0.05), high: quantile(0.95) }
}

/// The seconds of so many steps of arithmetic that depend on each other.
fn work(count: u64) -> f64 {
    let begin = Instant::now();
    let last = (0..count).fold(1u64, |x, i| black_box(x ^ i).wrapping_mul(6_364_136_223_846_793_005));
    black_box(last);
    begin.elapsed().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_enclose_the_median() {
        let noise = measure_clock_noise();
        assert!(noise.resolution > 0.0 && noise.resolution < 0.1, "{noise:?}");
        assert!(noise.low > 0.0 && noise.low <= 1.0 && noise.high >= 1.0, "{noise:?}");
    }
}
