//! Random speeds, the same on every machine.

use crate::random::Random;
use std::fmt;
use std::str::FromStr;

/// How the speeds of a draw are distributed; areas are speeds over their sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Distribution {
    /// Each speed uniform between 0 and 1: the sampling that gives the figures of Becker 2010.
    Uniform,
    /// Each speed exponential, so that every division of the square is as likely as any other.
    Simplex,
    /// Each speed's logarithm uniform, over two decades.
    LogUniform,
    /// Each speed from a Pareto law, P(speed > x) = x^-0.8: a few are far faster than the rest.
    Pareto,
}

impl Distribution {
    const NAMES: [(Self, &'static str); 4] = [
        (Self::Uniform, "uniform"),
        (Self::Simplex, "simplex"),
        (Self::LogUniform, "log-uniform"),
        (Self::Pareto, "pareto"),
    ];

    /// The speed at the quantile `u`; it increases with `u`.
    fn quantile(self, u: f64) -> f64 {
        match self {
            Self::Uniform => u,
            Self::Simplex => -(-u).ln_1p(),
            Self::LogUniform => 100f64.powf(u),
            Self::Pareto => (1.0 - u).powf(-1.0 / 0.8),
        }
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES.iter().find(|(d, _)| d == self).map_or("", |(_, name)| name);
        f.pad(name)
    }
}

impl FromStr for Distribution {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Self::NAMES.into_iter().find(|(_, name)| *name == text).map(|(d, _)| d).ok_or_else(|| {
            let names: Vec<&str> = Self::NAMES.iter().map(|(_, name)| *name).collect();
            format!("unknown distribution \"{text}\" (use {})", names.join(", "))
        })
    }
}

/// A stream of draws.
pub(super) struct Draws {
    random: Random,
    distribution: Distribution,
    bits: Vec<u64>,
}

impl Draws {
    pub(super) fn new(seed: u64, distribution: Distribution) -> Self {
        Self { random: Random::new(seed), distribution, bits: Vec::new() }
    }

    /// Fills in areas that sum to 1, the smallest first.
    pub(super) fn ascending(&mut self, areas: &mut [f64]) {
        self.bits.clear();
        for _ in 0..areas.len() {
            self.bits.push(self.random.word() >> 12);
        }
        // Whole numbers sort faster than floating-point ones, and the quantile keeps their order.
        self.bits.sort_unstable();
        let mut total = 0.0;
        for (area, &bits) in areas.iter_mut().zip(&self.bits) {
            // Strictly between 0 and 1.
            *area = self.distribution.quantile((bits as f64 + 0.5) / (1u64 << 52) as f64);
            total += *area;
        }
        areas.iter_mut().for_each(|area| *area /= total);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        for (distribution, name) in Distribution::NAMES {
            assert_eq!(distribution.to_string(), name);
            assert_eq!(name.parse(), Ok(distribution));
        }
        assert!("normal".parse::<Distribution>().is_err());
    }

    #[test]
    fn areas_ascend_and_fill_the_square() {
        for (distribution, _) in Distribution::NAMES {
            let mut draws = Draws::new(7, distribution);
            let mut areas = [0.0; 9];
            for _ in 0..1000 {
                draws.ascending(&mut areas);
                assert!(areas[0] > 0.0 && areas.is_sorted(), "{areas:?}");
                assert!((areas.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            }
        }
    }

    /// On the simplex the smallest of p areas is 1/p^2 on average, for uniform speeds of two it is 1 - ln 2.
    #[test]
    fn laws_of_the_distributions() {
        let mean = |distribution, p: usize| {
            let (mut draws, mut areas) = (Draws::new(1, distribution), vec![0.0; p]);
            let mut sum = 0.0;
            for _ in 0..40_000 {
                draws.ascending(&mut areas);
                sum += areas[0];
            }
            sum / 40_000.0
        };
        assert!((mean(Distribution::Simplex, 4) - 1.0 / 16.0).abs() < 0.001);
        assert!((mean(Distribution::Uniform, 2) - (1.0 - 2f64.ln())).abs() < 0.002);
    }
}
