//! What the pieces of a run tell of the costs of units along their range.
//!
//! Where pieces next to each other, of whichever processors, agree better than all pieces do, costs change along the range:
//! start-ups and times per unit are then fitted again, each processor's pieces against those of the others between which
//! they lie, and a unit costs what the line between the nearest pieces says. Heavy units here and there are no such change,
//! and nothing is claimed of them.

use super::Line;
use std::ops::Range;

/// A time per unit that differs by more than this factor from that of the whole run is none.
const OFF: f64 = 2.0;
/// Relative error of times by lines below which units are alike.
const ALIKE: f64 = 0.1;
/// The part of the errors' squares that neighbours may leave.
const UNEXPLAINED: f64 = 0.4;
/// The least part of a piece's time that is not its start-up.
const LEAST_WORK: f64 = 0.05;
/// The weight of a piece that does not lie between those of other processors.
const BEYOND: f64 = 0.3;
/// How much the ratio of two speeds may differ from that of the run's lines.
const MOST_MOVED: f64 = 4.0;
const ROUNDS: usize = 60;
/// More units than this are not told apart: each gets a number.
const MOST_UNITS: u64 = 1 << 22;
/// Pieces beyond this are not compared, each with all others.
const MOST_PIECES: usize = 1000;

/// A piece that ended well.
#[derive(Debug, Clone, PartialEq)]
pub struct TimedPiece {
    /// The processor.
    pub rank: usize,
    /// Its units.
    pub units: Range<u64>,
    /// Its seconds.
    pub seconds: f64,
}

impl TimedPiece {
    fn count(&self) -> f64 {
        (self.units.end - self.units.start) as f64
    }

    fn middle(&self) -> f64 {
        f64::midpoint(self.units.start as f64, self.units.end as f64)
    }

    /// The logarithm of its cost for each unit, by a line.
    fn cost(&self, line: Line) -> f64 {
        let work = (self.seconds - line.start_up).max(LEAST_WORK * self.seconds);
        (work / (line.per_unit * self.count())).ln()
    }
}

/// The lines of a run for the next one. Those of a run follow its last pieces: where these are small and costs change, a
/// time per unit may come out that has little to do with the whole run, and is replaced by the run's.
pub fn whole_lines(pieces: &[TimedPiece], lines: &[Option<Line>]) -> Vec<Option<Line>> {
    let of = |(rank, line): (usize, &Option<Line>)| {
        let line = (*line)?;
        let own = || pieces.iter().filter(move |piece| piece.rank == rank);
        let (count, seconds) = own().fold((0.0, 0.0), |(n, t), piece| (n + piece.count(), t + piece.seconds));
        let shortest = own().map(|piece| piece.seconds).fold(f64::INFINITY, f64::min);
        let start_up = line.start_up.min((1.0 - LEAST_WORK) * shortest);
        let per_unit = (seconds - start_up * own().count() as f64) / count;
        let is_off = per_unit > OFF * line.per_unit || OFF * per_unit < line.per_unit;
        Some(if is_off { Line { start_up, per_unit } } else { line })
    };
    lines.iter().enumerate().map(of).collect()
}

/// The costs of all units, whose mean is 1, and the lines of the processors by them, from pieces that are the whole range
/// from 0 on; `None` where units seem alike, or their costs do not change steadily along the range.
pub fn learnt_costs(pieces: &[TimedPiece], lines: &[Option<Line>]) -> Option<(Vec<f64>, Vec<Option<Line>>)> {
    let mut pieces: Vec<&TimedPiece> = pieces.iter().collect();
    pieces.sort_by_key(|piece| piece.units.start);
    let end = pieces.iter().try_fold(0, |end, piece| {
        let follows = piece.units.start == end && !piece.units.is_empty() && piece.seconds > 0.0;
        follows.then_some(piece.units.end)
    })?;
    if end > MOST_UNITS
        || !(4..=MOST_PIECES).contains(&pieces.len())
        || pieces.iter().any(|piece| lines[piece.rank].is_none())
    {
        return None;
    }
    let all = end as f64;
    // Mean squares of the relative errors of times: of those by the run's lines, and of those by the neighbours.
    let error = |piece: &TimedPiece, line: Option<Line>, cost: f64| {
        let expected = line.map_or(f64::NAN, |l| l.start_up + l.per_unit * piece.count() * cost);
        piece.count() * (piece.seconds / expected).ln().powi(2) / all
    };
    let by_lines: f64 = pieces.iter().map(|piece| error(piece, lines[piece.rank], 1.0)).sum();
    if by_lines < ALIKE * ALIKE {
        return None;
    }
    let mut fitted = lines.to_vec();
    for _ in 0..ROUNDS {
        refine(&pieces, &mut fitted);
    }
    let moved =
        fitted.iter().zip(lines).filter_map(|(new, old)| Some(((*new)?.per_unit / (*old)?.per_unit).ln()));
    let (least, most) = moved.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, m), by| (l.min(by), m.max(by)));
    if most - least > MOST_MOVED.ln() {
        return None;
    }
    let cost = |piece: &TimedPiece| fitted[piece.rank].map_or(0.0, |line| piece.cost(line));
    let costs: Vec<(f64, f64)> = pieces.iter().map(|piece| (piece.middle(), cost(piece))).collect();
    let by_neighbours = pieces.iter().enumerate().map(|(i, piece)| {
        let others = [&costs[..i], &costs[i + 1..]].concat();
        error(piece, fitted[piece.rank], between(&others, piece.middle()).exp())
    });
    let by_neighbours: f64 = by_neighbours.sum();
    if by_neighbours.is_nan() || by_neighbours > UNEXPLAINED * by_lines {
        return None;
    }
    // The times that were measured hold for whole pieces, and the lines between them within.
    let plain: Vec<(f64, f64)> = costs.iter().map(|(middle, cost)| (*middle, cost.exp())).collect();
    let mut of_units = Vec::with_capacity(end as usize);
    for (piece, (_, cost)) in pieces.iter().zip(&plain) {
        let begin = of_units.len();
        of_units.extend(piece.units.clone().map(|unit| beyond(&plain, unit as f64 + 0.5)));
        let sum: f64 = of_units[begin..].iter().sum();
        let scale = cost * piece.count() / sum;
        of_units[begin..].iter_mut().for_each(|unit| *unit *= scale);
    }
    let mean = of_units.iter().sum::<f64>() / all;
    of_units.iter_mut().for_each(|unit| *unit /= mean);
    let fitted = fitted.into_iter().map(|line| line.map(|l| Line { per_unit: l.per_unit * mean, ..l }));
    Some((of_units, fitted.collect()))
}

/// Moves all lines half of the way to those by which each processor's pieces cost what the others' say.
fn refine(pieces: &[&TimedPiece], lines: &mut [Option<Line>]) {
    let line = |rank: usize| lines[rank].unwrap_or(Line { start_up: 0.0, per_unit: 1.0 });
    let costs: Vec<f64> = pieces.iter().map(|piece| piece.cost(line(piece.rank))).collect();
    // With the weight of a piece: beyond the others' pieces, little is known.
    let expected: Vec<(f64, f64)> = (pieces.iter().zip(&costs))
        .map(|(piece, own)| {
            let others = pieces.iter().zip(&costs).filter(|(other, _)| other.rank != piece.rank);
            let others: Vec<(f64, f64)> = others.map(|(other, cost)| (other.middle(), *cost)).collect();
            let (Some(first), Some(last)) = (others.first(), others.last()) else { return (*own, 1.0) };
            let is_between = (first.0..=last.0).contains(&piece.middle());
            (between(&others, piece.middle()), if is_between { 1.0 } else { BEYOND })
        })
        .collect();
    // One start-up for all, by least squares of relative errors.
    let (mut precision, mut start_up, mut shortest) = (0.0, 0.0, f64::INFINITY);
    let mut factors = vec![(0.0, 0.0); lines.len()];
    for ((piece, (expected, known)), cost) in pieces.iter().zip(&expected).zip(&costs) {
        let weight = known * piece.seconds.powi(-2);
        precision += weight;
        start_up += weight * (piece.seconds - line(piece.rank).per_unit * piece.count() * expected.exp());
        shortest = shortest.min(piece.seconds);
        factors[piece.rank].0 += known * piece.count() * (cost - expected);
        factors[piece.rank].1 += known * piece.count();
    }
    let start_up = (start_up / precision).clamp(0.0, (1.0 - LEAST_WORK) * shortest);
    for (line, (factor, count)) in lines.iter_mut().zip(factors) {
        if let Some(line) = line.as_mut().filter(|_| count > 0.0) {
            line.start_up = f64::midpoint(line.start_up, start_up);
            line.per_unit *= (0.5 * factor / count).exp();
        }
    }
}

/// The value at a place by the line between the nearest points, and by the nearest beyond them.
fn between(points: &[(f64, f64)], place: f64) -> f64 {
    let after = points.partition_point(|(x, _)| *x < place);
    if after == 0 || after == points.len() {
        return points[after.saturating_sub(1)].1;
    }
    line_through(points[after - 1], points[after], place)
}

/// The same where the lines go on beyond the ends, at least to a tenth of the value there.
fn beyond(points: &[(f64, f64)], place: f64) -> f64 {
    let after = points.partition_point(|(x, _)| *x < place).clamp(1, points.len() - 1);
    let (one, two) = (points[after - 1], points[after]);
    line_through(one, two, place).max(0.1 * one.1.min(two.1))
}

fn line_through(one: (f64, f64), two: (f64, f64), place: f64) -> f64 {
    one.1 + (two.1 - one.1) * (place - one.0) / (two.0 - one.0)
}

#[cfg(test)]
mod tests {
    use super::super::simulator::{Job, Kind, Policy, Step, Truth};
    use super::super::{OnePass, OnePassOptions, Order};
    use super::*;

    /// A first run, and what it shows.
    struct Watched {
        pass: OnePass,
        begun: Vec<(f64, Range<u64>)>,
        pieces: Vec<TimedPiece>,
    }

    impl Policy for Watched {
        fn next(&mut self, processor: usize, now: f64) -> Step {
            match self.pass.next(processor, now) {
                Order::Run(units) => {
                    self.begun[processor] = (now, units.clone());
                    Step::Run(units.end - units.start)
                }
                Order::Wait { until } => Step::Wait(until),
                Order::Leave => Step::Leave,
            }
        }

        fn ended(&mut self, rank: usize, now: f64) {
            let (begun, units) = self.begun[rank].clone();
            self.pieces.push(TimedPiece { rank, units, seconds: now - begun });
            self.pass.ended(rank, now);
        }
    }

    fn options(processors: usize) -> OnePassOptions {
        OnePassOptions { processors, ..OnePassOptions::default() }
    }

    fn first_run(job: &Job, seed: u64) -> (Vec<TimedPiece>, Vec<Option<Line>>) {
        let p = job.truths.len();
        let pass = OnePass::new(std::slice::from_ref(&(0..job.units())), options(p)).unwrap();
        let mut watched = Watched { pass, begun: vec![(0.0, 0..0); p], pieces: Vec::new() };
        job.seconds(&mut watched, seed);
        let lines = (0..p).map(|rank| watched.pass.estimate(rank).map(|known| known.line)).collect();
        (watched.pieces, lines)
    }

    /// Seconds of the second run over the ideal: with what was learnt, or as if units were alike.
    fn second_run(job: &Job, seed: u64, learns: bool) -> f64 {
        let (pieces, lines) = first_run(job, seed);
        let lines = if learns { whole_lines(&pieces, &lines) } else { lines };
        let learnt = if learns { learnt_costs(&pieces, &lines) } else { None };
        let (costs, lines) = match learnt {
            Some((costs, lines)) => (Some(costs.into()), lines),
            None => (None, lines),
        };
        let options = OnePassOptions { lines: Some(lines), costs, ..options(job.truths.len()) };
        let mut second = OnePass::new(std::slice::from_ref(&(0..job.units())), options).unwrap();
        job.seconds(&mut second, seed + 50) / job.ideal()
    }

    /// On simulated machines: units alike are never taken for others, heavy ones here and there cost a second run
    /// nothing, and on a ramp, whose second run took 1.36 times the ideal, and 3.96 times at worst, it takes 1.14 and
    /// 1.96 times. Where every processor starts two or three pieces only, there is too little to see.
    #[test]
    fn a_second_run_knows_a_ramp() {
        let (mut before, mut after, mut rows) = (0.0, 0.0, 0.0);
        for speeds in [&[1.0, 1.0][..], &[3.0, 1.0], &[4.0, 2.0, 1.0, 1.0]] {
            for (start_up, work) in
                [(0.0, 5.0), (0.05, 5.0), (0.5, 5.0), (0.05, 30.0), (0.5, 30.0), (2.0, 30.0)]
            {
                for kind in [Kind::Alike, Kind::Ramp, Kind::Heavy] {
                    let truths: Vec<Truth> = speeds.iter().map(|&v| Truth::new(start_up, v)).collect();
                    let ratios = |learns: bool| {
                        let job = |seed: u64| Job::new(kind, work, truths.clone(), 5 + seed);
                        let mut all: Vec<f64> =
                            (0..9).map(|seed| second_run(&job(seed), 100 + seed, learns)).collect();
                        all.sort_by(f64::total_cmp);
                        (all[4], all[8])
                    };
                    let (old, new) = (ratios(false), ratios(true));
                    let name = format!("{speeds:?} {start_up} {work} {kind:?}: {old:?} {new:?}");
                    match kind {
                        Kind::Alike => assert_eq!(old, new, "{name}"),
                        Kind::Heavy => assert!(new.1 <= old.1 + 0.01 && new.0 <= old.0 + 0.01, "{name}"),
                        Kind::Ramp => {
                            assert!(new.0 <= old.0 + 0.01 && new.1 < 2.0, "{name}");
                            (before, after, rows) = (before + old.0, after + new.0, rows + 1.0);
                        }
                    }
                }
            }
        }
        assert!(before / rows > 1.3 && after / rows < 1.15, "{} {}", before / rows, after / rows);
    }

    /// By hand: unit i costs 1 + i / 5; pieces of 20 units on two processors, the second of half the speed.
    #[test]
    fn speeds_are_told_from_costs() {
        let cost = |i: u64| 0.1 * (1.0 + i as f64 / 5.0);
        let piece = |k: u64| {
            let (rank, units) = ((k % 2) as usize, 20 * k..20 * k + 20);
            let work: f64 = units.clone().map(cost).sum();
            TimedPiece { rank, units, seconds: 1.0 + work * if rank == 1 { 2.0 } else { 1.0 } }
        };
        let pieces: Vec<TimedPiece> = (0..8).map(piece).collect();
        let lines =
            vec![Some(Line { start_up: 1.0, per_unit: 1.6 }), Some(Line { start_up: 1.0, per_unit: 3.4 })];
        let (costs, learnt) = learnt_costs(&pieces, &lines).unwrap();
        assert!((costs.iter().sum::<f64>() - 160.0).abs() < 1e-9);
        let ratio = learnt[1].unwrap().per_unit / learnt[0].unwrap().per_unit;
        assert!((ratio / 2.0 - 1.0).abs() < 0.1, "{ratio}");
        let half = costs[..80].iter().sum::<f64>() / 160.0;
        let wanted = (0..80).map(cost).sum::<f64>() / (0..160).map(cost).sum::<f64>();
        assert!((half - wanted).abs() < 0.03, "{half} {wanted}");
        // Parts of a range, and a processor without a line, tell nothing.
        assert_eq!(learnt_costs(&pieces[1..], &lines), None);
        assert_eq!(learnt_costs(&pieces, &[lines[0], None]), None);
        assert_eq!(learnt_costs(&[], &lines), None);
    }
}
