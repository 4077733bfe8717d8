//! Latency and bandwidth of a link, fitted to timed messages.
//!
//! Sources: R. W. Hockney, "The communication challenge for MPP", Parallel Computing 20, 1994 (seconds =
//! latency + bytes / bandwidth). The fit is robust: iterated weights by Tukey's biweight, started from the
//! repeated median of A. F. Siegel, "Robust regression using repeated medians", Biometrika 69, 1982.
//!
//! A robust fit takes a minority for disturbed. On a link with a token bucket the minority may be the large
//! messages, which are slow because the burst is over. So a line that misses the largest or the smallest size
//! is replaced by the line through the medians of these two.

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
    /// Bytes per second of the smaller messages, if no single bandwidth describes the link, as where a burst
    /// passes faster: `bandwidth` is then that of the largest messages.
    pub smaller: Option<f64>,
    /// The largest size, with the median time of its messages.
    pub largest: MessageTime,
    /// Number of messages that were not rejected as outliers.
    pub messages: usize,
}

/// The fraction of the time of the largest messages that a line may miss them by.
const MISS: f64 = 0.03;
/// The same where their median is less certain than that, and for the smallest messages.
const LARGEST_MISS: f64 = 0.1;
/// Number of messages of the largest size from which on their median decides on a line.
const FEWEST: usize = 3;

impl Hockney {
    /// Seconds for a message of `bytes`.
    pub fn seconds(&self, bytes: f64) -> f64 {
        self.latency + bytes / self.bandwidth
    }
}

/// Fits a link to timed messages by least squares of the relative errors, so that small messages count as
/// much as large ones.
///
/// The fit tolerates outliers in up to a quarter of the messages. If there are three messages of the largest
/// size, the line is within a tenth of their median time: where messages of all sizes do not follow one line,
/// the latency is that of the smallest messages and the bandwidth that of the largest. The intervals are
/// Student's, over the messages that were kept; that of the bandwidth contains the interval by the largest
/// messages alone. O(n^2) for n messages.
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
        let converged = (next.latency - line.latency).abs() <= 1e-12 * line.latency.abs()
            && (next.slope - line.slope).abs() <= 1e-12 * line.slope.abs();
        line = next;
        if converged {
            break;
        }
    }
    let ends = Ends::of(samples);
    let found = line.slope > 0.0;
    if found && (ends.largest.count < FEWEST || ends.are_met_by(line)) {
        return Ok(ends.widen(with_intervals(samples, &weights, line)));
    }
    match ends.line() {
        Some(through) if ends.largest.count >= FEWEST => Ok(ends.fit(through, found.then_some(line))),
        _ => refuse("large messages take no longer than small ones".into()),
    }
}

/// The messages of the smallest and of the largest size.
struct Ends {
    /// Bytes of the smallest and of the largest size.
    sizes: [f64; 2],
    smallest: Centre,
    largest: Centre,
}

/// The middle of the times of equal messages. Half of them but one may be disturbed.
struct Centre {
    /// The median, in seconds.
    median: f64,
    /// Half-width of its 95 % interval: Student's for a median, with sigma by the median absolute deviation.
    ci: f64,
    count: usize,
}

impl Centre {
    fn of(times: &[f64]) -> Self {
        let (centre, count) = (median(times), times.len());
        let sigma = 1.4826 * median(&times.iter().map(|t| (t - centre).abs()).collect::<Vec<_>>());
        // A median varies by sqrt(pi / 2) times as much as a mean.
        let error = std::f64::consts::FRAC_PI_2.sqrt() * sigma / (count as f64).sqrt();
        Self {
            median: centre,
            ci: if count > 1 { student_95(count as u64 - 1) * error } else { f64::INFINITY },
            count,
        }
    }
}

impl Ends {
    fn of(samples: &[MessageTime]) -> Self {
        let smallest = samples.iter().map(|s| s.bytes).fold(f64::INFINITY, f64::min);
        let largest = samples.iter().map(|s| s.bytes).fold(0.0, f64::max);
        let times = |bytes: f64| -> Vec<f64> {
            samples.iter().filter(|s| s.bytes == bytes).map(|s| s.seconds).collect()
        };
        Self {
            sizes: [smallest, largest],
            smallest: Centre::of(&times(smallest)),
            largest: Centre::of(&times(largest)),
        }
    }

    /// Whether a line is close enough to the median times of both.
    fn are_met_by(&self, line: Line) -> bool {
        let misses = |bytes: f64, of: &Centre| {
            (line.latency.max(0.0) + line.slope * bytes - of.median).abs() / of.median
        };
        let uncertain = (self.largest.ci / self.largest.median).clamp(MISS, LARGEST_MISS);
        misses(self.sizes[1], &self.largest) <= uncertain
            && misses(self.sizes[0], &self.smallest) <= LARGEST_MISS
    }

    /// The line through both median times, if it rises.
    fn line(&self) -> Option<Line> {
        let slope = (self.largest.median - self.smallest.median) / (self.sizes[1] - self.sizes[0]);
        let latency = self.smallest.median - slope * self.sizes[0];
        (slope > 0.0).then_some(Line { latency, slope })
    }

    /// The fit by both alone, in place of a line through all messages.
    fn fit(&self, through: Line, all: Option<Line>) -> Hockney {
        let smaller = all.map(|line| 1.0 / line.slope);
        let differs = |b: &f64| (b * through.slope).max(1.0 / (b * through.slope)) > 1.0 + LARGEST_MISS;
        let fit = Hockney {
            latency: through.latency.max(0.0),
            latency_ci: self.smallest.ci,
            bandwidth: 1.0 / through.slope,
            bandwidth_low: 1.0 / through.slope,
            bandwidth_high: 1.0 / through.slope,
            smaller: smaller.filter(differs),
            largest: self.largest(),
            messages: self.smallest.count + self.largest.count,
        };
        self.widen(fit)
    }

    fn largest(&self) -> MessageTime {
        MessageTime { bytes: self.sizes[1], seconds: self.largest.median }
    }

    /// Widens the interval of the bandwidth to that of the largest messages.
    fn widen(&self, fit: Hockney) -> Hockney {
        let Centre { median, ci, count } = self.largest;
        if count < FEWEST {
            return fit;
        }
        let rest = median - fit.latency;
        let bandwidth = |seconds: f64| if seconds > 0.0 { self.sizes[1] / seconds } else { f64::INFINITY };
        Hockney {
            bandwidth_low: fit.bandwidth_low.min(bandwidth(rest + ci)),
            bandwidth_high: fit.bandwidth_high.max(bandwidth(rest - ci)),
            ..fit
        }
    }
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
    let messages = weights.iter().filter(|w| **w > 0.0).count();
    let Moments { sum, mean, square } = moments(samples, weights);
    let residual = |s: &MessageTime| s.seconds - latency - slope * s.bytes;
    let rest: f64 = samples.iter().zip(weights).map(|(s, w)| w * residual(s).powi(2)).sum();
    let freedom = messages.saturating_sub(2) as u64;
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
        smaller: None,
        largest: Ends::of(samples).largest(),
        messages,
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
        assert!(low <= 125e6 && 125e6 <= high && high < 1.1 * low, "{link:?}");
        assert!((link.seconds(1e6) / 8.05e-3 - 1.0).abs() < 0.02);
    }

    #[test]
    fn exact_samples_give_exact_answers() {
        let samples = [0.0, 100.0, 1e6].map(|x| MessageTime { bytes: x, seconds: 1e-5 + x / 1e9 });
        let link = fit_hockney(&samples).unwrap();
        assert!((link.latency / 1e-5 - 1.0).abs() < 1e-9 && (link.bandwidth / 1e9 - 1.0).abs() < 1e-9);
        assert_eq!(link.messages, 3);
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
        assert_eq!(link.messages, 39, "the ten outliers are rejected");
    }

    /// Messages one after the other through a token bucket: `burst` bytes pass at `fast` bytes per second,
    /// the rest at `rate`, and the bucket fills again while a message is answered. 20 us latency, noise of 1
    /// %. Four messages of each size count, after one that does not; of the largest, those after the burst.
    fn through_a_bucket(rate: f64, fast: f64, burst: f64, seed: u64) -> Vec<MessageTime> {
        let (mut tokens, mut state, mut samples) = (burst, seed, Vec::new());
        let mut noise = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            1.0 + 0.01 * ((state >> 33) as f64 / f64::from(1u32 << 31) * 2.0 - 1.0)
        };
        for size in [0, 6, 9, 12, 15, 18, 21].map(|power| f64::from(1u32 << power)) {
            let mut send = || {
                let at_once = size.min(tokens / (1.0 - rate / fast));
                let seconds = (20e-6 + at_once / fast + (size - at_once) / rate) * noise();
                tokens = (tokens - size + rate * seconds).clamp(0.0, burst);
                MessageTime { bytes: size, seconds }
            };
            let uncounted = if size > 1e6 { 2.0 * burst / size } else { 1.0 } as usize;
            for _ in 0..uncounted.max(1) {
                send();
            }
            samples.extend((0..4).map(|_| send()));
        }
        samples
    }

    /// Whatever burst a link passes, the bandwidth is the one that it sustains, and its interval says so.
    #[test]
    fn a_burst_does_not_count_as_bandwidth() {
        for (rate, fast) in [(1.25e6, 1e9), (6.25e6, 1.25e8), (12.5e6, 1.2e9), (5e7, 1e9), (1.25e8, 1.25e9)] {
            for burst in [0.0, 3e4, 65_536.0, 262_144.0, 1e6, 8e6] {
                for seed in 0..20 {
                    let link = fit_hockney(&through_a_bucket(rate, fast, burst, seed)).unwrap();
                    let case = format!("{rate} {fast} {burst} {seed}: {link:?}");
                    assert!((link.bandwidth / rate - 1.0).abs() < 0.05, "{case}");
                    assert!(
                        0.99 * link.bandwidth_low <= rate && rate <= 1.01 * link.bandwidth_high,
                        "{case}"
                    );
                    assert!((10e-6..40e-6).contains(&link.latency), "{case}");
                    let MessageTime { bytes, seconds } = link.largest;
                    assert!((link.seconds(bytes) / seconds - 1.0).abs() < 0.1, "{case}");
                    assert!(link.smaller.is_none_or(|b| b > link.bandwidth), "{case}");
                    if burst == 0.0 {
                        assert_eq!(link.smaller, None, "{case}");
                    }
                }
            }
        }
    }

    /// The other way round: large messages that are faster than all others say are no outliers either.
    #[test]
    fn large_messages_may_be_faster() {
        let mut samples = clean();
        for s in samples.iter_mut().filter(|s| s.bytes > 8e6) {
            s.seconds /= 3.0;
        }
        let link = fit_hockney(&samples).unwrap();
        assert!((link.bandwidth / 375e6 - 1.0).abs() < 0.05, "{link:?}");
        assert!((link.smaller.unwrap() / 125e6 - 1.0).abs() < 0.1, "{link:?}");
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
