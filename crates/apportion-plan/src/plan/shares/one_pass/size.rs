//! The policy: how large the next piece of a processor is.

use super::line::{Fitted, Piece, Prior, Priors, Residuals, UNKNOWN_NOISE, end_together, fit};
use super::{OnePass, Processor};

/// A first piece is so small that a processor about this many times slower than another does not hold up the end.
const SLOWEST: f64 = 33.0;
/// An equal part is at least this many first pieces.
const FIRST_PIECES: f64 = 4.0;
/// The start-up as a fraction of the shortest piece, before pieces of two sizes have shown it: mean and deviation.
const START_UP_PART: Prior = Prior { mean: 0.75, deviation: 0.45 };
/// How far the start-up of one processor may be from that of the others.
const START_UP_DIFFERS: f64 = 0.25;
/// How far the line of an earlier run may be from today's, relatively, and the noise assumed with it.
const LINE_DIFFERS: f64 = 0.015;
/// Standard deviations that stay in reserve, for two equal processors.
const RESERVE: f64 = 1.5;
/// The time that a reserve saves, in standard deviations, for two equal processors.
const SAVED: f64 = 0.5;

/// Where a start-up is less than this part of the share, no piece is more than `MOST_IF_CHEAP` of the share: whatever
/// happens to a processor, the others can take over half of what it would have done.
const CHEAP: f64 = 0.01;
const MOST_IF_CHEAP: f64 = 0.5;
/// The same for processes that stay, whose pieces cost a message.
const MOST_BY_MESSAGE: f64 = 0.25;
/// A process that stays takes at most this many times the work that it has done: its trial may deceive.
const GROWTH: f64 = 8.0;

/// What is believed of the processors at a time.
pub(super) struct Outlook {
    pub lines: Vec<Fitted>,
    /// When each is free, by expectation; infinite for one that is lost.
    pub free: Vec<f64>,
}

impl OnePass {
    /// What is known and believed at the time `now`; `None` while no piece has ended and no line is known.
    pub(super) fn outlook(&self, now: f64) -> Option<Outlook> {
        let assumed = match self.processors.iter().all(|p| p.known.is_some()) {
            true => LINE_DIFFERS,
            false => UNKNOWN_NOISE,
        };
        let shortest = self
            .processors
            .iter()
            .flat_map(|p| &p.ended)
            .fold(f64::INFINITY, |t, piece| t.min(piece.seconds));
        let mut common = match self.options.message {
            Some(seconds) => Prior { mean: seconds, deviation: seconds },
            None if shortest < f64::INFINITY => {
                Prior { mean: START_UP_PART.mean * shortest, deviation: START_UP_PART.deviation * shortest }
            }
            None => Prior { mean: 0.0, deviation: 1.0 },
        };
        let mut noise = assumed;
        // Start-ups and noise that several pieces show are those of the others too; these improve the lines.
        for _ in 0..2 {
            let mut residuals = Residuals::new(assumed);
            let (mut precision, mut start_up) = (0.0, 0.0);
            for p in self.processors.iter().filter(|p| p.ended.len() >= 2 || p.known.is_some()) {
                let Some(line) = fit(&p.ended, p.priors(common), noise) else { continue };
                residuals.add(&p.ended, &line);
                precision += 1.0 / line.start_up_variance;
                start_up += line.start_up / line.start_up_variance;
            }
            noise = residuals.noise();
            if precision > 0.0 {
                let mean = start_up / precision;
                common = Prior { mean, deviation: precision.sqrt().recip() + START_UP_DIFFERS * mean };
            }
        }
        let mut fitted: Vec<Option<Fitted>> =
            self.processors.iter().map(|p| fit(&p.ended, p.priors(common), noise)).collect();
        self.compare_trials(&mut fitted, common, now);
        self.heed_late_pieces(&mut fitted, common, now);
        // Processors that have shown nothing yet are like the others, by their hints.
        let of_hint_1: Vec<f64> = (0..fitted.len())
            .filter_map(|p| fitted[p].map(|line| 1.0 / (line.per_unit * self.hint(p))))
            .collect();
        if of_hint_1.is_empty() {
            return None;
        }
        let usual = of_hint_1.len() as f64 / of_hint_1.iter().sum::<f64>();
        let lines: Vec<Fitted> = (0..fitted.len())
            .map(|p| fitted[p].unwrap_or_else(|| self.unseen(p, usual / self.hint(p), common, now)))
            .collect();
        let free = self.processors.iter().zip(&lines).map(|(p, line)| p.free(line, now)).collect();
        Some(Outlook { lines, free })
    }

    /// A process that has had its trial only becomes as much faster as another did after its own.
    fn compare_trials(&self, fitted: &mut [Option<Fitted>], common: Prior, now: f64) {
        let gain = |p: &Processor, line: &Fitted| Some(p.trial?.seconds / (p.trial?.work * line.per_unit));
        let gains = self.processors.iter().zip(&*fitted).filter_map(|(p, line)| gain(p, line.as_ref()?));
        let Some(gain) = gains.reduce(f64::max) else { return };
        for (p, line) in fitted.iter_mut().enumerate() {
            let me = &self.processors[p];
            if let (Some(_), None, [trial]) = (self.options.message, me.trial, me.ended.as_slice()) {
                *line = Some(self.unseen(p, trial.seconds / trial.work / gain, common, now));
            }
        }
    }

    /// Pieces that run for longer than expected count as if they ended now.
    fn heed_late_pieces(&self, fitted: &mut [Option<Fitted>], common: Prior, now: f64) {
        for (p, line) in self.processors.iter().zip(fitted) {
            let (Some(running), Some(known)) = (&p.running, *line) else { continue };
            let late = Piece { work: running.work, seconds: now - running.started };
            if late.work > 0.0 && late.seconds > known.seconds(late.work) {
                let pieces: Vec<Piece> = p.ended.iter().copied().chain([late]).collect();
                *line = fit(&pieces, p.priors(common), known.noise);
            }
        }
    }

    /// The line of a processor of which no piece has ended.
    fn unseen(&self, processor: usize, usual: f64, common: Prior, now: f64) -> Fitted {
        let mut per_unit = usual;
        if let Some(running) = self.processors[processor].running.as_ref().filter(|piece| piece.work > 0.0) {
            let shown = 1.2 * (now - running.started) - common.mean;
            per_unit = per_unit.max(shown / running.work);
        }
        Fitted {
            start_up: common.mean,
            per_unit,
            start_up_variance: common.deviation.powi(2),
            per_unit_variance: (0.5 * per_unit).powi(2),
            covariance: 0.0,
            noise: UNKNOWN_NOISE,
        }
    }

    pub(super) fn hint(&self, processor: usize) -> f64 {
        self.options.hints.as_ref().map_or(1.0, |hints| hints[processor])
    }

    /// The work of the next piece of a free processor; 0 if it had better leave the rest to the others.
    pub(super) fn size(&self, processor: usize, now: f64) -> f64 {
        let left = self.rest.work();
        let present = self.processors.iter().filter(|p| !p.lost).count();
        if present <= 1 {
            return left;
        }
        if self.options.fixed {
            return self.size_by_quota(processor);
        }
        let me = &self.processors[processor];
        if me.ended.is_empty() && me.known.is_none() {
            return self.first_size(processor, present);
        }
        let Some(Outlook { lines, free }) = self.outlook(now) else { return left };
        let line = &lines[processor];
        let share = (end_together(&lines, &free, left) - now - line.start_up) / line.per_unit;
        // NaN, where nothing is left but units without cost, counts as nothing too.
        if share.is_nan() || share <= 0.0 {
            return 0.0;
        }
        let share = share.min(left);
        let mut deviation = line.deviation(share);
        if me.ended.len() == 1 {
            deviation = deviation.hypot(self.disagreement() * line.per_unit * share);
        }
        // A processor with a small part of the whole speed cannot hold up the others as cheaply as they can take
        // over what it leaves. This is 1 for one of two equal processors, 0 for one that is nearly all.
        let speed: f64 =
            (0..lines.len()).filter(|&p| free[p] < f64::INFINITY).map(|p| 1.0 / lines[p].per_unit).sum();
        let caution = (2.0 * (speed * line.per_unit).ln()).max(0.0).sqrt() / (2.0 * 2.0_f64.ln()).sqrt();
        let part = match line.start_up >= SAVED * caution * deviation {
            true => 1.0,
            false => 1.0 / (1.0 + RESERVE * caution * deviation / line.seconds(share)),
        };
        let is_cheap = part < 1.0 && line.start_up < CHEAP * line.seconds(share);
        match self.options.message {
            None if is_cheap => share * part.min(MOST_IF_CHEAP),
            None => share * part,
            Some(_) => {
                let most = if is_cheap { MOST_BY_MESSAGE } else { 1.0 };
                let done: f64 = me.trial.iter().chain(&me.ended).map(|piece| piece.work).sum();
                (share * part.min(most)).min(GROWTH * done)
            }
        }
    }

    /// The work of a first piece: by hints if there are any, else the same for all.
    fn first_size(&self, processor: usize, present: usize) -> f64 {
        if self.options.message.is_some() {
            return f64::MIN_POSITIVE;
        }
        let all: f64 = (0..self.processors.len()).map(|p| self.hint(p)).sum();
        let part = self.hint(processor) * self.processors.len() as f64 / all;
        let present = present as f64;
        part * self.total / (present + SLOWEST - 1.0).max(FIRST_PIECES * present)
    }

    /// How much the first pieces of the processors differ, relative to their mean time per unit. While each
    /// processor has shown one piece only, this is all that is known of the costs of units.
    fn disagreement(&self) -> f64 {
        let first: Vec<f64> = (0..self.processors.len())
            .filter_map(|p| {
                self.processors[p].ended.first().map(|first| first.seconds * self.hint(p) / first.work)
            })
            .collect();
        let mean = first.iter().sum::<f64>() / first.len() as f64;
        let squares: f64 = first.iter().map(|x| (x - mean).powi(2)).sum();
        match mean > 0.0 {
            true => (squares / (first.len() as f64 - 1.0).max(1.0)).sqrt() / mean,
            false => 0.0,
        }
    }

    /// What is left of the part of a processor that does not change.
    fn size_by_quota(&self, processor: usize) -> f64 {
        // What rounding has left of the part of one that has had its piece is of no more use.
        let waits = |p: &Processor| p.running.is_none() && p.pieces == 0;
        let others = self.processors.iter().enumerate().filter(|(p, other)| *p != processor && waits(other));
        let others: f64 = others.map(|(_, other)| other.quota).sum();
        match others > 0.0 || self.processors[processor].quota == 0.0 {
            true => self.processors[processor].quota,
            false => self.rest.work(),
        }
    }

    /// If nothing is divided again, divides what nobody has taken among the processors that have had no piece yet, by
    /// lines, or else by hints.
    pub(super) fn set_quotas(&mut self) {
        if !self.options.fixed {
            return;
        }
        let lines: Vec<Fitted> = match self.outlook(f64::NEG_INFINITY) {
            Some(outlook) => outlook.lines,
            None => (0..self.processors.len()).map(|p| by_speed(self.hint(p))).collect(),
        };
        let is_new = |p: &Processor| !p.lost && p.running.is_none() && p.pieces == 0;
        let free: Vec<f64> =
            self.processors.iter().map(|p| if is_new(p) { 0.0 } else { f64::INFINITY }).collect();
        let end = end_together(&lines, &free, self.rest.work());
        for (p, me) in self.processors.iter_mut().enumerate() {
            me.quota = match is_new(me) {
                true => ((end - lines[p].start_up) / lines[p].per_unit).max(0.0),
                false => 0.0,
            };
        }
    }
}

impl Processor {
    fn priors(&self, common: Prior) -> Priors {
        let near = |mean: f64| Prior { mean, deviation: LINE_DIFFERS * mean };
        match self.known {
            Some(line) => Priors { start_up: near(line.start_up), per_unit: Some(near(line.per_unit)) },
            None => Priors { start_up: common, per_unit: None },
        }
    }

    /// When the processor is free, by its line: after `now` if its piece is late.
    fn free(&self, line: &Fitted, now: f64) -> f64 {
        match &self.running {
            _ if self.lost => f64::INFINITY,
            None => now,
            Some(running) => {
                let expected = line.seconds(running.work);
                (running.started + expected).max(now + 0.05 * expected)
            }
        }
    }
}

/// The line of a processor of which only a relative speed is known.
fn by_speed(speed: f64) -> Fitted {
    Fitted {
        start_up: 0.0,
        per_unit: 1.0 / speed,
        start_up_variance: 0.0,
        per_unit_variance: 0.0,
        covariance: 0.0,
        noise: 0.0,
    }
}
