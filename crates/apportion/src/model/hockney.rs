//! Latency and bandwidth of a link, fitted to timed messages.
//!
//! Sources: R. W. Hockney, "The communication challenge for MPP", Parallel Computing 20, 1994 (seconds =
//! latency + bytes / bandwidth). The fit is robust: iterated weights by Tukey's biweight, started from the
//! repeated median of A. F. Siegel, "Robust regression using repeated medians", Biometrika 69, 1982.

use super::statistics::{median, student_95};
use crate::error::{Error, Result};

/// One timed message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MessageTime {
    /// Size of the message in bytes; at least 0.
    pub bytes: f64,
    /// Time that the message took, in seconds; above 0.
    pub seconds: f64,
}

/// A link with `seconds(bytes) = latency + bytes / bandwidth`.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Hockney {
    /// Seconds for an empty message; at least 0.
    pub latency: f64,
    /// Half-width of the latency's 95 % interval, in seconds.
    pub latency_ci: f64,
    /// Bytes per second.
    pub bandwidth: f64,
    /// Lower end of the bandwidth's 95 % interval, in bytes per second.
    pub bandwidth_low: f64,
    /// Upper end of the bandwidth's 95 % interval, in bytes per second; may be infinite.
    pub bandwidth_high: f64,
    /// Number of messages that were not rejected as outliers.
    pub kept: usize,
}

impl Hockney {
    /// Seconds for a message of `bytes`.
    pub fn seconds(&self, bytes: f64) -> f64 {
        self.latency + bytes / self.bandwidth
    }
}

/// Fits a link to timed messages by least squares of the relative errors, so that small messages count as
/// much as large ones.
///
/// The fit tolerates outliers in up to a quarter of the messages. The intervals are Student's, over the
/// messages that were kept. O(n^2) for n messages.
///
/// # Errors
/// Fewer than three messages, only one size, a size or time out of range, or times that do not grow with
/// size: exit code 2.
pub fn fit_hockney(samples: &[MessageTime]) -> Result<Hockney> {
    let refuse = |what: String| {
        Err(Error::input(
            "samples of the link",
            what,
            "send messages of more and larger sizes, several times each",
        ))
    };
    let valid =
        |s: &&MessageTime| s.bytes.is_finite() && s.bytes >= 0.0 && s.seconds.is_finite() && s.seconds > 0.0;
    if let Some(MessageTime { bytes, seconds }) = samples.iter().find(|s| !valid(s)) {
        return refuse(format!("{bytes} bytes in {seconds} s cannot be a message"));
    }
    let sizes = samples.iter().filter(|s| s.bytes != samples[0].bytes).count();
    if samples.len() < 3 || sizes == 0 {
        return refuse(format!(
            "{} messages of one size cannot distinguish latency from bandwidth",
            samples.len()
        ));
    }
    let mut line = start(samples);
    let mut weights = Vec::new();
    for _ in 0..50 {
        weights = biweights(samples, line);
        let Some(next) = least_squares(samples, &weights) else { break };
        let settled = (next.latency - line.latency).abs() <= 1e-12 * line.latency.abs()
            && (next.slope - line.slope).abs() <= 1e-12 * line.slope.abs();
        line = next;
        if settled {
            break;
        }
    }
    if line.slope.is_nan() || line.slope <= 0.0 {
        return refuse("large messages take no longer than small ones".into());
    }
    Ok(with_intervals(samples, &weights, line))
}

/// A line `seconds = latency + slope * bytes`.
#[derive(Debug, Clone, Copy)]
struct Line {
    latency: f64,
    slope: f64,
}

/// Siegel's repeated median, which tolerates outliers in up to half of the messages: the slope is the median
/// over messages of the median slope to the others.
fn start(samples: &[MessageTime]) -> Line {
    let slopes: Vec<f64> = samples
        .iter()
        .map(|a| {
            let others = samples.iter().filter(|b| b.bytes != a.bytes);
            median(&others.map(|b| (b.seconds - a.seconds) / (b.bytes - a.bytes)).collect::<Vec<_>>())
        })
        .collect();
    let slope = median(&slopes);
    // The smallest messages determine the latency best.
    let smallest = samples.iter().map(|s| s.bytes).fold(f64::INFINITY, f64::min);
    let times: Vec<f64> = samples.iter().filter(|s| s.bytes == smallest).map(|s| s.seconds).collect();
    Line { latency: (median(&times) - slope * smallest).max(0.0), slope }
}

/// Tukey's biweight of the relative residuals, over the square of the fitted time.
fn biweights(samples: &[MessageTime], line: Line) -> Vec<f64> {
    let fit = |s: &MessageTime| (line.latency + line.slope * s.bytes).max(0.01 * s.seconds);
    let fitted: Vec<f64> = samples.iter().map(fit).collect();
    let residuals: Vec<f64> = samples.iter().zip(&fitted).map(|(s, f)| (s.seconds - f) / f).collect();
    let spread = 1.4826 * median(&residuals.iter().map(|r| r.abs()).collect::<Vec<_>>());
    let scale = 4.685 * spread.max(1e-6);
    let weight = |(r, f): (&f64, &f64)| (1.0 - (r / scale).powi(2)).max(0.0).powi(2) / (f * f);
    residuals.iter().zip(&fitted).map(weight).collect()
}

/// Weighted moments of the sizes.
struct Moments {
    /// Sum of the weights.
    sum: f64,
    /// Mean size.
    mean: f64,
    /// Sum of the squared distances from the mean.
    square: f64,
}

fn moments(samples: &[MessageTime], weights: &[f64]) -> Moments {
    let sum: f64 = weights.iter().sum();
    let mean = samples.iter().zip(weights).map(|(s, w)| w * s.bytes).sum::<f64>() / sum;
    let square = samples.iter().zip(weights).map(|(s, w)| w * (s.bytes - mean).powi(2)).sum();
    Moments { sum, mean, square }
}

fn least_squares(samples: &[MessageTime], weights: &[f64]) -> Option<Line> {
    let Moments { sum, mean, square } = moments(samples, weights);
    if !(sum > 0.0 && square > 0.0) {
        return None;
    }
    let time = samples.iter().zip(weights).map(|(s, w)| w * s.seconds).sum::<f64>() / sum;
    let product = |(s, w): (&MessageTime, &f64)| w * (s.bytes - mean) * (s.seconds - time);
    let slope = samples.iter().zip(weights).map(product).sum::<f64>() / square;
    Some(Line { latency: time - slope * mean, slope })
}

fn with_intervals(samples: &[MessageTime], weights: &[f64], line: Line) -> Hockney {
    let Line { latency, slope } = line;
    let kept = weights.iter().filter(|w| **w > 0.0).count();
    let Moments { sum, mean, square } = moments(samples, weights);
    let residual = |s: &MessageTime| s.seconds - latency - slope * s.bytes;
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
        bandwidth_low: 1.0 / (slope + slope_ci),
        bandwidth_high: if least > 0.0 { 1.0 / least } else { f64::INFINITY },
        kept,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 50 us and 125 MB/s, seven repetitions of each size, with noise of +-3 %.
    fn clean() -> Vec<MessageTime> {
        let mut samples = Vec::new();
        for size in [1.0, 64.0, 1024.0, 8192.0, 65536.0, 1048576.0, 8388608.0] {
            for i in 0..7 {
                let noise = 1.0 + 0.01 * (f64::from((i * 5 + samples.len() as i32) % 7) - 3.0);
                samples.push(MessageTime { bytes: size, seconds: (50e-6 + size / 125e6) * noise });
            }
        }
        samples
    }

    #[test]
    fn latency_and_bandwidth_are_found_within_their_intervals() {
        let link = fit_hockney(&clean()).unwrap();
        assert!((link.latency - 50e-6).abs() <= link.latency_ci && link.latency_ci < 2e-6, "{link:?}");
        let (low, high) = (link.bandwidth_low, link.bandwidth_high);
        assert!(low <= 125e6 && 125e6 <= high && high < 1.05 * low, "{link:?}");
        assert!((link.seconds(1e6) / 8.05e-3 - 1.0).abs() < 0.02);
    }

    #[test]
    fn exact_samples_give_exact_answers() {
        let samples = [0.0, 100.0, 1e6].map(|x| MessageTime { bytes: x, seconds: 1e-5 + x / 1e9 });
        let link = fit_hockney(&samples).unwrap();
        assert!((link.latency / 1e-5 - 1.0).abs() < 1e-9 && (link.bandwidth / 1e9 - 1.0).abs() < 1e-9);
        assert_eq!(link.kept, 3);
    }

    #[test]
    fn contamination_hardly_moves_the_fit() {
        let mut samples = clean();
        for (i, s) in samples.iter_mut().enumerate().filter(|(i, _)| i % 5 == 2) {
            s.seconds *= 3.0 + (i % 4) as f64 * 4.0;
        }
        let link = fit_hockney(&samples).unwrap();
        assert!((link.latency / 50e-6 - 1.0).abs() < 0.03, "{link:?}");
        assert!((link.bandwidth / 125e6 - 1.0).abs() < 0.03, "{link:?}");
        assert_eq!(link.kept, 39, "the ten outliers are rejected");
    }

    #[test]
    fn unusable_messages_are_refused() {
        let bad: [&[(f64, f64)]; 5] = [
            &[],
            &[(1.0, 1.0), (2.0, 2.0)],
            &[(8.0, 1.0), (8.0, 1.1), (8.0, 1.2)],
            &[(1.0, 1.0), (2.0, 0.0), (3.0, 1.0)],
            &[(1.0, 3.0), (1e3, 2.0), (1e6, 1.0)],
        ];
        for pairs in bad {
            let samples: Vec<_> =
                pairs.iter().map(|&(bytes, seconds)| MessageTime { bytes, seconds }).collect();
            assert_eq!(fit_hockney(&samples).unwrap_err().exit_code(), 2);
        }
    }
}
