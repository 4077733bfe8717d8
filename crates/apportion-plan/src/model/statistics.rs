//! Mean, outliers and Student's 95 % interval of repeated measurements (Malik 2016, section 4.5).

/// The times to expect of repeated measurements, but for the shortest and the longest twentieth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Band {
    /// The 5 % quantile.
    pub low: f64,
    /// The 95 % quantile.
    pub high: f64,
}

/// Mean and spread of repeated measurements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Arithmetic mean of the measurements kept.
    pub mean: f64,
    /// Half-width of the 95 % Student interval of the mean; infinite for fewer than two measurements.
    pub ci: f64,
    /// Number of measurements kept.
    pub count: u64,
    /// The 5 % and 95 % quantiles of all measurements, outliers included, widened to contain the mean;
    /// `None` for fewer than five measurements.
    pub band: Option<Band>,
}

impl Summary {
    /// True if the interval is within `tolerance` (a fraction) of the mean.
    pub fn is_within(&self, tolerance: f64) -> bool {
        self.ci <= tolerance * self.mean
    }
}

/// Number of measurements from which on their quantiles are known well enough to be a band.
const FEWEST_FOR_BAND: usize = 5;

/// The quantile `q` (0 to 1) of sorted values: linear between neighbours, the first at 0 and the last at 1
/// (definition 7 of Hyndman and Fan 1996, the default of NumPy and R).
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let place = q * (sorted.len() - 1) as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (place - below as f64) * (sorted[above] - sorted[below])
}

/// Two-sided 95 % quantile of Student's t with `freedom` degrees of freedom.
///
/// Exact to four digits up to 30, then by the Cornish-Fisher expansion around 1.96 (error below 1e-4).
pub(crate) fn student_95(freedom: u64) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
        2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048,
        2.045, 2.042,
    ];
    match freedom {
        0 => f64::INFINITY,
        1..=30 => TABLE[freedom as usize - 1],
        _ => {
            let (z, v) = (1.959_964_f64, freedom as f64);
            let z3 = z.powi(3);
            z + (z3 + z) / (4.0 * v) + (5.0 * z.powi(5) + 16.0 * z3 + 3.0 * z) / (96.0 * v * v)
        }
    }
}

/// Mean and Student interval without outliers: values further from the median than five scaled median
/// absolute deviations, for example preempted repetitions.
///
/// Nothing is dropped from fewer than five values, and never more than a quarter of them.
pub fn summarise(values: &[f64]) -> Summary {
    let kept = without_outliers(values);
    let n = kept.len() as f64;
    if kept.is_empty() {
        return Summary { mean: f64::NAN, ci: f64::INFINITY, count: 0, band: None };
    }
    let mean = kept.iter().sum::<f64>() / n;
    let ci = if kept.len() < 2 {
        f64::INFINITY
    } else {
        let variance = kept.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
        student_95(kept.len() as u64 - 1) * (variance / n).sqrt()
    };
    let band = (values.len() >= FEWEST_FOR_BAND).then(|| {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        Band { low: quantile(&sorted, 0.05).min(mean), high: quantile(&sorted, 0.95).max(mean) }
    });
    Summary { mean, ci, count: kept.len() as u64, band }
}

fn without_outliers(values: &[f64]) -> Vec<f64> {
    if values.len() < 5 {
        return values.to_vec();
    }
    let centre = median(values);
    let deviations: Vec<f64> = values.iter().map(|x| (x - centre).abs()).collect();
    // 1.4826 makes the median absolute deviation estimate a normal law's sigma; the floor of 0.1 % keeps
    // nearly equal values together.
    let scale = (1.4826 * median(&deviations)).max(1e-3 * centre.abs());
    let kept: Vec<f64> = values.iter().copied().filter(|x| (x - centre).abs() <= 5.0 * scale).collect();
    if kept.len() * 4 >= values.len() * 3 { kept } else { values.to_vec() }
}

/// The middle value (mean of the two middle ones for an even count).
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    if n == 0 { f64::NAN } else { 0.5 * (sorted[(n - 1) / 2] + sorted[n / 2]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_students() {
        // Mean 3, variance 2.5, t(4) = 2.776: 2.776 * sqrt(2.5 / 5).
        let s = summarise(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!((s.mean, s.count), (3.0, 5));
        assert!((s.ci - 2.776 * 0.5_f64.sqrt()).abs() < 1e-9);
        assert_eq!(summarise(&[1.0]).ci, f64::INFINITY);
    }

    #[test]
    fn the_band_is_the_quantiles_of_all_values() {
        // Places 0.2 and 3.8 of 0..=4: 1 + 0.2 (2 - 1) and 4 + 0.8 (50 - 4); 50 is no part of the mean.
        let s = summarise(&[4.0, 2.0, 50.0, 1.0, 3.0]);
        assert_eq!((s.mean, s.count), (2.5, 4));
        let Band { low, high } = s.band.unwrap();
        assert!((low - 1.2).abs() < 1e-12 && (high - 40.8).abs() < 1e-12, "{low} {high}");
        // Places 1 and 19 of 0..=20.
        let values: Vec<f64> = (0..21).map(|i| f64::from((i * 8) % 21)).collect();
        assert_eq!(summarise(&values).band, Some(Band { low: 1.0, high: 19.0 }));
        assert_eq!(summarise(&[1.0, 2.0, 3.0, 4.0]).band, None);
        // One value in fifty above: the mean is above the 95 % quantile, and still in the band.
        let mut values = vec![1.0; 50];
        values.push(1.0005);
        let s = summarise(&values);
        assert_eq!(s.band, Some(Band { low: 1.0, high: s.mean }));
        assert!(s.mean > 1.0);
    }

    #[test]
    fn large_samples_use_the_expansion() {
        for (v, t) in [(40, 2.0211), (60, 2.0003), (120, 1.9799), (1_000_000, 1.9600)] {
            assert!((student_95(v) - t).abs() < 2e-4, "{v}");
        }
    }

    #[test]
    fn contamination_does_not_move_the_mean() {
        let mut values: Vec<f64> = (0..20).map(|i| 1.0 + 0.001 * f64::from(i % 5)).collect();
        let clean = summarise(&values);
        values.extend([3.0, 5.0, 10.0]);
        let dirty = summarise(&values);
        assert!((dirty.mean - clean.mean).abs() < 0.001 * clean.mean);
        assert!(dirty.is_within(0.025));
        assert_eq!(dirty.count, 20);
    }
}
