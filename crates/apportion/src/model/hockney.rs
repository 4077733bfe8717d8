//! Latency and bandwidth of a link from timed messages.
//!
//! Source: R. W. Hockney, "The communication challenge for MPP", Parallel Computing 20, 1994 (t = latency + bytes /
//! bandwidth); robust weights by Tukey's biweight, started from Siegel's repeated median ("Robust regression using
//! repeated medians", Biometrika 69, 1982).

use super::statistics::{median, student_95};
use crate::error::{Error, Result};

/// A link: `seconds(bytes) = latency + bytes / bandwidth`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hockney {
    /// Seconds that an empty message takes; never negative.
    pub latency: f64,
    /// Half-width of its 95 % interval, in seconds.
    pub latency_ci: f64,
    /// Bytes per second.
    pub bandwidth: f64,
    /// The 95 % interval of the bandwidth, in bytes per second; its upper end may be infinite.
    pub bandwidth_interval: (f64, f64),
    /// Samples that were not set aside as outliers.
    pub kept: usize,
}

impl Hockney {
    /// Seconds for a message of `bytes`.
    pub fn seconds(&self, bytes: f64) -> f64 {
        self.latency + bytes / self.bandwidth
    }
}

/// The link that fits the `samples` of (bytes, seconds) best, in relative errors: small messages count as much as large ones.
///
/// A quarter of the samples may be spoilt by anything that happened on the machine meanwhile. Intervals are
/// Student's on the samples kept. O(samples^2).
///
/// # Errors
/// Fewer than three samples or two sizes, a time that is not positive, or times that do not rise with size.
pub fn fit_hockney(samples: &[(f64, f64)]) -> Result<Hockney> {
    let refuse = |what: String| {
        Err(Error::input(
            "samples of the link",
            what,
            "send messages of more and larger sizes, several times each",
        ))
    };
    if let Some((x, t)) =
        samples.iter().find(|(x, t)| !(x.is_finite() && *x >= 0.0 && t.is_finite() && *t > 0.0))
    {
        return refuse(format!("{x} bytes in {t} s is no message"));
    }
    let sizes = samples.iter().filter(|s| s.0 != samples[0].0).count();
    if samples.len() < 3 || sizes == 0 {
        return refuse(format!("{} of one size do not tell latency from bandwidth", samples.len()));
    }
    let mut line = start(samples);
    let mut weights = Vec::new();
    for _ in 0..50 {
        weights = biweights(samples, line);
        let Some(next) = least_squares(samples, &weights) else { break };
        let settled = (next.0 - line.0).abs() <= 1e-12 * line.0.abs()
            && (next.1 - line.1).abs() <= 1e-12 * line.1.abs();
        line = next;
        if settled {
            break;
        }
    }
    if line.1.is_nan() || line.1 <= 0.0 {
        return refuse("larger messages take no longer than small ones".into());
    }
    Ok(with_intervals(samples, &weights, line))
}

/// Intercept and slope that half the samples cannot spoil: the median over samples of the median slope to the others.
fn start(samples: &[(f64, f64)]) -> (f64, f64) {
    let slopes: Vec<f64> = samples
        .iter()
        .map(|a| {
            let others = samples.iter().filter(|b| b.0 != a.0);
            median(&others.map(|b| (b.1 - a.1) / (b.0 - a.0)).collect::<Vec<_>>())
        })
        .collect();
    let slope = median(&slopes);
    // The smallest messages say most of latency.
    let smallest = samples.iter().map(|s| s.0).fold(f64::INFINITY, f64::min);
    let times: Vec<f64> = samples.iter().filter(|s| s.0 == smallest).map(|s| s.1).collect();
    ((median(&times) - slope * smallest).max(0.0), slope)
}

/// Tukey's biweight of the relative residuals, over the square of the fitted time.
fn biweights(samples: &[(f64, f64)], (latency, slope): (f64, f64)) -> Vec<f64> {
    let fitted: Vec<f64> = samples.iter().map(|s| (latency + slope * s.0).max(0.01 * s.1)).collect();
    let residuals: Vec<f64> = samples.iter().zip(&fitted).map(|(s, f)| (s.1 - f) / f).collect();
    let spread = 1.4826 * median(&residuals.iter().map(|r| r.abs()).collect::<Vec<_>>());
    let scale = 4.685 * spread.max(1e-6);
    let weight = |(r, f): (&f64, &f64)| (1.0 - (r / scale).powi(2)).max(0.0).powi(2) / (f * f);
    residuals.iter().zip(&fitted).map(weight).collect()
}

/// Weighted sums: of weights, sizes, centred squares; the mean size.
fn moments(samples: &[(f64, f64)], weights: &[f64]) -> (f64, f64, f64) {
    let sum: f64 = weights.iter().sum();
    let mean = samples.iter().zip(weights).map(|(s, w)| w * s.0).sum::<f64>() / sum;
    let square = samples.iter().zip(weights).map(|(s, w)| w * (s.0 - mean).powi(2)).sum();
    (sum, mean, square)
}

fn least_squares(samples: &[(f64, f64)], weights: &[f64]) -> Option<(f64, f64)> {
    let (sum, mean, square) = moments(samples, weights);
    if !(sum > 0.0 && square > 0.0) {
        return None;
    }
    let time = samples.iter().zip(weights).map(|(s, w)| w * s.1).sum::<f64>() / sum;
    let slope =
        samples.iter().zip(weights).map(|(s, w)| w * (s.0 - mean) * (s.1 - time)).sum::<f64>() / square;
    Some((time - slope * mean, slope))
}

fn with_intervals(samples: &[(f64, f64)], weights: &[f64], (latency, slope): (f64, f64)) -> Hockney {
    let kept = weights.iter().filter(|w| **w > 0.0).count();
    let (sum, mean, square) = moments(samples, weights);
    let residual = |s: &(f64, f64)| s.1 - latency - slope * s.0;
    let rest: f64 = samples.iter().zip(weights).map(|(s, w)| w * residual(s).powi(2)).sum();
    let freedom = kept.saturating_sub(2) as u64;
    let variance = rest / freedom.max(1) as f64;
    let t = student_95(freedom);
    let slope_ci = t * (variance / square).sqrt();
    let least = slope - slope_ci;
    Hockney {
        latency: latency.max(0.0),
        latency_ci: t * (variance * (1.0 / sum + mean * mean / square)).sqrt(),
        bandwidth: 1.0 / slope,
        bandwidth_interval: (1.0 / (slope + slope_ci), if least > 0.0 { 1.0 / least } else { f64::INFINITY }),
        kept,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 50 us and 125 MB/s, seven repetitions of each size, with noise of +-3 %.
    fn clean() -> Vec<(f64, f64)> {
        let mut samples = Vec::new();
        for size in [1.0, 64.0, 1024.0, 8192.0, 65536.0, 1048576.0, 8388608.0] {
            for i in 0..7 {
                let noise = 1.0 + 0.01 * (f64::from((i * 5 + samples.len() as i32) % 7) - 3.0);
                samples.push((size, (50e-6 + size / 125e6) * noise));
            }
        }
        samples
    }

    #[test]
    fn latency_and_bandwidth_are_found_within_their_intervals() {
        let link = fit_hockney(&clean()).unwrap();
        assert!((link.latency - 50e-6).abs() <= link.latency_ci && link.latency_ci < 2e-6, "{link:?}");
        let (low, high) = link.bandwidth_interval;
        assert!(low <= 125e6 && 125e6 <= high && high < 1.05 * low, "{link:?}");
        assert!((link.seconds(1e6) / 8.05e-3 - 1.0).abs() < 0.02);
    }

    #[test]
    fn exact_samples_give_exact_answers() {
        let samples = [0.0, 100.0, 1e6].map(|x| (x, 1e-5 + x / 1e9));
        let link = fit_hockney(&samples).unwrap();
        assert!((link.latency / 1e-5 - 1.0).abs() < 1e-9 && (link.bandwidth / 1e9 - 1.0).abs() < 1e-9);
        assert_eq!(link.kept, 3);
    }

    #[test]
    fn contamination_hardly_moves_the_fit() {
        let mut samples = clean();
        for (i, s) in samples.iter_mut().enumerate().filter(|(i, _)| i % 5 == 2) {
            s.1 *= 3.0 + (i % 4) as f64 * 4.0;
        }
        let link = fit_hockney(&samples).unwrap();
        assert!((link.latency / 50e-6 - 1.0).abs() < 0.03, "{link:?}");
        assert!((link.bandwidth / 125e6 - 1.0).abs() < 0.03, "{link:?}");
        assert_eq!(link.kept, 39, "the ten spoilt ones are set aside");
    }

    #[test]
    fn what_cannot_be_told_is_said() {
        let bad: [&[(f64, f64)]; 5] = [
            &[],
            &[(1.0, 1.0), (2.0, 2.0)],
            &[(8.0, 1.0), (8.0, 1.1), (8.0, 1.2)],
            &[(1.0, 1.0), (2.0, 0.0), (3.0, 1.0)],
            &[(1.0, 3.0), (1e3, 2.0), (1e6, 1.0)],
        ];
        for samples in bad {
            assert_eq!(fit_hockney(samples).unwrap_err().exit_code(), 2);
        }
    }
}
