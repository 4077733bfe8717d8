//! Lines through the times of pieces, and how far they can be trusted.

/// Number of pieces of a processor that still count.
const WINDOW: usize = 24;
/// Each piece counts as much as this fraction of the piece after it: costs and speeds drift.
const DECAY: f64 = 0.5;
/// The relative deviation of the time of a piece before times have shown it, and the number of pieces that this
/// assumption is worth.
pub(super) const UNKNOWN_NOISE: f64 = 0.1;
const ASSUMED_PIECES: f64 = 4.0;
/// Times and times per unit are at least this, so that no speed is infinite.
const LEAST: f64 = 1e-30;
const LEAST_SECONDS: f64 = 1e-9;

/// A piece that ended, or that runs and has already taken longer than expected.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    /// More than 0.
    pub work: f64,
    pub seconds: f64,
}

/// An expected value and its standard deviation, before times are known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Prior {
    pub mean: f64,
    pub deviation: f64,
}

/// What is assumed of a line before its pieces are known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Priors {
    pub start_up: Prior,
    /// `None`: any time per unit is as likely as another.
    pub per_unit: Option<Prior>,
}

/// A line with the variances and the covariance of its two numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fitted {
    pub start_up: f64,
    pub per_unit: f64,
    pub start_up_variance: f64,
    pub per_unit_variance: f64,
    pub covariance: f64,
    /// Relative standard deviation of the time of one piece.
    pub noise: f64,
}

impl Fitted {
    /// The expected time of a piece.
    pub(crate) fn seconds(&self, work: f64) -> f64 {
        self.start_up + self.per_unit * work
    }

    /// The standard deviation of the time of a piece: its noise and the uncertainty of the line.
    pub(crate) fn deviation(&self, work: f64) -> f64 {
        let line =
            self.start_up_variance + 2.0 * work * self.covariance + work * work * self.per_unit_variance;
        ((self.noise * self.seconds(work)).powi(2) + line.max(0.0)).sqrt()
    }
}

/// The line of `pieces` by Bayesian linear regression, for times whose standard deviation is `noise` times
/// their length. `None` if neither pieces nor a prior say anything of the time per unit.
///
/// Neither number of the line becomes negative.
pub(super) fn fit(pieces: &[Piece], priors: Priors, noise: f64) -> Option<Fitted> {
    let recent = &pieces[pieces.len().saturating_sub(WINDOW)..];
    let precisions: Vec<f64> = (0..recent.len())
        .map(|i| {
            let age = (recent.len() - 1 - i) as i32;
            DECAY.powi(age) / (recent[i].seconds.max(LEAST_SECONDS) * noise).powi(2)
        })
        .collect();
    let sum = |of: &dyn Fn(&Piece) -> f64| {
        recent.iter().zip(&precisions).map(|(piece, g)| g * of(piece)).sum::<f64>()
    };
    // The normal equations, [start_up, work; work, square] times the line = [seconds, product].
    let precision =
        |prior: Prior| 1.0 / (prior.deviation * prior.deviation).max(LEAST_SECONDS * LEAST_SECONDS);
    let assumed = precision(priors.start_up);
    let observed = sum(&|_| 1.0);
    let start_up = assumed + observed;
    let work = sum(&|piece| piece.work);
    let seconds = assumed * priors.start_up.mean + sum(&|piece| piece.seconds);
    let slope = priors.per_unit.map_or(0.0, |prior| 1.0 / (prior.deviation * prior.deviation).max(LEAST));
    let square = slope + sum(&|piece| piece.work * piece.work);
    let product =
        slope * priors.per_unit.map_or(0.0, |prior| prior.mean) + sum(&|piece| piece.work * piece.seconds);
    // An upper bound of the time per unit: the whole time of a piece.
    let most = recent
        .iter()
        .map(|piece| piece.seconds.max(LEAST_SECONDS) / piece.work)
        .chain(priors.per_unit.map(|prior| prior.mean))
        .fold(f64::INFINITY, f64::min);
    if most == f64::INFINITY {
        return None;
    }
    // start_up * square - work * work, without the difference of numbers that are nearly equal.
    let mean = if observed > 0.0 { work / observed } else { 0.0 };
    let spread = sum(&|piece| (piece.work - mean).powi(2));
    let determinant = assumed * square + observed * (slope + spread);
    let mut line = [
        (square * seconds - work * product) / determinant,
        (start_up * product - work * seconds) / determinant,
    ];
    // A time per unit of nearly nothing would be an accident of noise.
    let least = 0.05 * most;
    if line[0] < 0.0 {
        line = [0.0, product / square];
    } else if line[1] < least {
        line = [((seconds - least * work) / start_up).max(0.0), least];
    }
    Some(Fitted {
        start_up: line[0],
        per_unit: line[1].max(LEAST),
        start_up_variance: square / determinant,
        per_unit_variance: start_up / determinant,
        covariance: -work / determinant,
        noise,
    })
}

/// Relative differences between times and lines, of all processors together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Residuals {
    squares: f64,
    pieces: f64,
}

impl Residuals {
    pub(crate) fn new(assumed: f64) -> Self {
        Self { squares: ASSUMED_PIECES * assumed * assumed, pieces: ASSUMED_PIECES }
    }

    /// Adds the pieces of one processor. Its line took most of two of them.
    pub(crate) fn add(&mut self, pieces: &[Piece], line: &Fitted) {
        let recent = &pieces[pieces.len().saturating_sub(WINDOW)..];
        for piece in recent {
            self.squares += (piece.seconds / line.seconds(piece.work).max(LEAST_SECONDS) - 1.0).powi(2);
        }
        self.pieces += (recent.len() as f64 - 1.5).max(0.0);
    }

    pub(crate) fn noise(&self) -> f64 {
        (self.squares / self.pieces).sqrt()
    }
}

/// The time at which all processors end together that are free from `free` on, each with one more piece, when
/// `work` is left. Those that cannot start before that time take nothing.
///
/// This is the least time possible for pieces of any size: O(p log p).
pub(super) fn end_together(lines: &[Fitted], free: &[f64], work: f64) -> f64 {
    let start = |p: usize| free[p] + lines[p].start_up;
    let mut order: Vec<usize> = (0..free.len()).filter(|&p| free[p] < f64::INFINITY).collect();
    order.sort_unstable_by(|&p, &q| start(p).total_cmp(&start(q)));
    // The processors so far have done `done` at the time `time`, with `speed` from then on.
    let (mut time, mut done, mut speed) = (0.0, 0.0, 0.0);
    for p in order {
        let by_then = done + speed * (start(p) - time);
        if speed > 0.0 && by_then >= work {
            break;
        }
        time = start(p);
        done = by_then;
        speed += 1.0 / lines[p].per_unit;
    }
    time + (work - done) / speed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn line(start_up: f64, per_unit: f64) -> Fitted {
        Fitted {
            start_up,
            per_unit,
            start_up_variance: 0.0,
            per_unit_variance: 0.0,
            covariance: 0.0,
            noise: 0.0,
        }
    }

    /// Against every division of whole units: never later than the best of them, and no earlier than it by more
    /// than the time of a unit.
    #[test]
    fn all_end_together_no_later_than_by_any_division() {
        let mut random = Random::new(3);
        for _ in 0..200 {
            let processors = 1 + random.below(4);
            let units = 1 + random.below(12) as u64;
            let lines: Vec<Fitted> =
                (0..processors).map(|_| line(3.0 * random.unit(), 0.1 + random.unit())).collect();
            let free: Vec<f64> = (0..processors).map(|_| 4.0 * random.unit()).collect();
            let end = |parts: &Vec<u64>| {
                let ends = parts.iter().enumerate().filter(|(_, part)| **part > 0);
                ends.map(|(p, &part)| free[p] + lines[p].seconds(part as f64)).fold(0.0, f64::max)
            };
            let divisions = super::super::super::compositions(units, processors);
            let best = divisions.iter().map(end).fold(f64::INFINITY, f64::min);
            let found = end_together(&lines, &free, units as f64);
            assert!(found <= best + 1e-9, "{found} {best}");
            // A unit for each processor more than the fractions: that is a division too.
            let slowest = lines.iter().map(|line| line.per_unit).fold(0.0, f64::max);
            assert!(best <= found + slowest + 1e-9, "{found} {best}");
            // The parts add up.
            let parts = (0..processors)
                .map(|p| ((found - free[p] - lines[p].start_up) / lines[p].per_unit).max(0.0))
                .sum::<f64>();
            assert!((parts - units as f64).abs() < 1e-6, "{parts} of {units}");
        }
    }

    const UNKNOWN: Priors = Priors { start_up: Prior { mean: 1.0, deviation: 1e6 }, per_unit: None };

    #[test]
    fn exact_times_give_their_line() {
        let pieces = [1.0, 5.0, 20.0].map(|work| Piece { work, seconds: 0.5 + 0.25 * work });
        let fitted = fit(&pieces, UNKNOWN, 0.1).unwrap();
        assert!((fitted.start_up - 0.5).abs() < 1e-6, "{fitted:?}");
        assert!((fitted.per_unit - 0.25).abs() < 1e-6, "{fitted:?}");
        let mut residuals = Residuals::new(UNKNOWN_NOISE);
        residuals.add(&pieces, &fitted);
        assert!(residuals.noise() < UNKNOWN_NOISE);
    }

    /// One piece cannot tell start-up from work: the prior divides it, and says how uncertain that is.
    #[test]
    fn one_piece_is_divided_by_the_prior() {
        let priors = Priors { start_up: Prior { mean: 0.6, deviation: 0.3 }, per_unit: None };
        let fitted = fit(&[Piece { work: 10.0, seconds: 1.0 }], priors, 0.01).unwrap();
        assert!((fitted.start_up - 0.6).abs() < 1e-6 && (fitted.per_unit - 0.04).abs() < 1e-6, "{fitted:?}");
        assert!((fitted.deviation(10.0) - 0.01 * 2.0_f64.sqrt()).abs() < 1e-6);
        // Ten times the piece: the start-up's 0.3 s become 2.7.
        assert!((fitted.deviation(100.0) - 2.7).abs() < 0.1, "{}", fitted.deviation(100.0));
    }

    #[test]
    fn lines_are_never_negative() {
        let falling = [Piece { work: 1.0, seconds: 5.0 }, Piece { work: 10.0, seconds: 1.0 }];
        let steep = [Piece { work: 1.0, seconds: 1.0 }, Piece { work: 2.0, seconds: 4.0 }];
        for pieces in [&falling, &steep, &[Piece { work: 1e15, seconds: 0.0 }; 2]] {
            let fitted = fit(pieces, UNKNOWN, 0.1).unwrap();
            assert!(fitted.start_up >= 0.0 && fitted.per_unit > 0.0, "{fitted:?}");
        }
        assert!(fit(&[], UNKNOWN, 0.1).is_none());
    }
}
