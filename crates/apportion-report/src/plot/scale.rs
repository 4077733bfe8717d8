//! From numbers to places on the page.

use apportion::units::show_figures;

/// Desired number of ticks on each axis, and the least distance of two in pixels.
const TICKS: f64 = 8.0;
const TICK_DISTANCE: f64 = 42.0;
/// An axis starts at zero unless the values fill less than this fraction of it.
const FILLED: f64 = 0.35;

#[derive(Debug, Clone)]
pub(super) struct Scale {
    pub(crate) least: f64,
    pub(crate) most: f64,
    step: f64,
    pub(crate) from: f64,
    pub(crate) to: f64,
    /// Number of ticks that are wanted.
    wanted: f64,
    /// Bounds are decimal logarithms.
    pub(crate) logarithmic: bool,
    /// The smallest value shown, which gets a tick if there is room.
    first: Option<f64>,
}

impl Scale {
    pub(crate) fn horizontal(
        values: impl Iterator<Item = f64> + Clone,
        logarithmic: bool,
        area: [f64; 4],
    ) -> Self {
        let whole = values.clone().all(|x| x.fract() == 0.0);
        let scale = Self::over(values, area[0], area[2], logarithmic);
        let scale = if logarithmic { scale } else { scale.starting_at_zero() };
        if whole && !logarithmic { scale.counting() } else { scale }
    }

    pub(crate) fn vertical(values: impl Iterator<Item = f64>, logarithmic: bool, area: [f64; 4]) -> Self {
        let scale = Self::over(values, area[3], area[1], logarithmic);
        let scale = if logarithmic { scale } else { scale.starting_at_zero() };
        Self { first: None, ..scale.align_to_ticks() }
    }

    /// A scale that shows all values.
    fn over(values: impl Iterator<Item = f64>, from: f64, to: f64, logarithmic: bool) -> Self {
        let values = values.filter(|x| !logarithmic || *x > 0.0);
        let values = values.map(|x| if logarithmic { x.log10() } else { x });
        let (mut least, mut most) =
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
        if least > most {
            (least, most) = (0.0, 1.0);
        }
        if most - least <= 1e-9 * most.abs().max(1e-9) {
            let room = if logarithmic || least == 0.0 { 0.5 } else { 0.1 * least.abs() };
            (least, most) = (least - room, most + room);
        }
        let first = (!logarithmic && least > 0.0).then_some(least);
        let wanted = ((to - from).abs() / TICK_DISTANCE).floor().clamp(2.0, TICKS);
        Self { least, most, step: step((most - least) / wanted), from, to, wanted, logarithmic, first }
    }

    /// Starts at zero where that leaves room for the values.
    fn starting_at_zero(mut self) -> Self {
        if self.least > 0.0 && (self.most - self.least) >= FILLED * self.most {
            self.least = 0.0;
            self.step = step(self.most / self.wanted);
        }
        self
    }

    /// Has ticks at whole numbers only.
    fn counting(mut self) -> Self {
        while self.step.fract() > 0.0 {
            self.step = step(self.step * 1.01);
        }
        self
    }

    /// Begins and ends at a tick.
    fn align_to_ticks(mut self) -> Self {
        if self.logarithmic {
            // A little room, so that no curve is on the border.
            let room = 0.04 * (self.most - self.least);
            (self.least, self.most) = (self.least - room, self.most + room);
        } else {
            // A value on the border except for rounding errors stays on it.
            self.least = (self.least / self.step + 1e-4).floor() * self.step;
            self.most = (self.most / self.step - 1e-4).ceil() * self.step;
        }
        self
    }

    pub(crate) fn place(&self, x: f64) -> f64 {
        let x = match self.logarithmic {
            true if x > 0.0 => x.log10().max(self.least),
            true => self.least,
            false => x,
        };
        self.from + (x - self.least) / (self.most - self.least) * (self.to - self.from)
    }

    /// The start of an axis that shows positive values only and leaves out zero.
    pub(crate) fn broken(&self) -> Option<String> {
        let hidden = !self.logarithmic && self.least > 1e-9 * self.step;
        hidden.then(|| self.label(self.least))
    }

    fn label(&self, x: f64) -> String {
        let decimals = (-self.step.log10().floor()).max(0.0) as usize;
        // 0.25 needs one decimal more than its power of ten.
        let more = (self.step * 10f64.powi(decimals as i32)).fract() > 0.01;
        show_figures(if x == 0.0 { 0.0 } else { x }, decimals + usize::from(more))
    }

    /// The ticks with their labels.
    pub(crate) fn ticks(&self) -> Vec<(f64, String)> {
        if self.logarithmic {
            return self.round_ratios();
        }
        let first = (self.least / self.step - 1e-6).ceil() as i64;
        let last = (self.most / self.step + 1e-6).floor() as i64;
        let round = (first..=last).map(|i| i as f64 * self.step);
        let mut ticks: Vec<(f64, String)> = round.map(|x| (x, self.label(x))).collect();
        // Ratios and counts start at 1: the smallest value is named too.
        if let Some(x) = self.first.filter(|x| x.fract() == 0.0)
            && ticks.iter().all(|(t, _)| (self.place(*t) - self.place(x)).abs() > 14.0)
        {
            ticks.push((x, show_figures(x, 0)));
        }
        ticks
    }

    /// Powers of ten, with twice and five times them if there is room.
    fn round_ratios(&self) -> Vec<(f64, String)> {
        let decades = self.most - self.least;
        let factors: &[f64] = match decades * TICKS / self.wanted {
            d if d > 3.2 => &[1.0],
            d if d > 0.8 => &[1.0, 2.0, 5.0],
            _ => &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0],
        };
        let every = (decades / self.wanted).ceil().max(1.0) as i32;
        let powers = (self.least.floor() as i32..=self.most.ceil() as i32).filter(|p| p % every == 0);
        let ticks = powers.flat_map(|power| factors.iter().map(move |f| (power, *f)));
        let value = |(power, factor): (i32, f64)| {
            let decimals =
                usize::try_from(-power).unwrap_or(0) + usize::from(factor.fract() > 0.0 && power <= 0);
            let x = factor * 10f64.powi(power);
            let label = if power.abs() > 5 { format!("{factor}e{power}") } else { show_figures(x, decimals) };
            (x, label)
        };
        let shown = |x: f64| (self.least - 1e-9..=self.most + 1e-9).contains(&x.log10());
        ticks.map(value).filter(|(x, _)| shown(*x)).collect()
    }
}

/// The smallest of 1, 2, 2.5 and 5 times a power of ten that is no smaller than `least`.
fn step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    let factors = [1.0, 2.0, 2.5, 5.0, 10.0];
    let factor = factors.into_iter().find(|f| f * power >= least * (1.0 - 1e-9)).unwrap_or(10.0);
    factor * power
}

#[cfg(test)]
mod tests {
    use super::super::AREA;
    use super::*;

    fn labels(scale: &Scale) -> Vec<String> {
        scale.ticks().into_iter().map(|t| t.1).collect()
    }

    #[test]
    fn steps_are_round() {
        for (least, round) in
            [(0.013, 0.02), (1.0, 1.0), (0.21, 0.25), (3.0, 5.0), (600.0, 1000.0), (0.02, 0.02)]
        {
            assert!((step(least) - round).abs() < 1e-12, "{least}: {}", step(least));
        }
    }

    #[test]
    fn an_axis_starts_at_zero_or_says_that_it_does_not() {
        let near = Scale::vertical([1.0, 1.105].into_iter(), false, AREA);
        assert_eq!(labels(&near), ["1.00", "1.02", "1.04", "1.06", "1.08", "1.10", "1.12"]);
        assert_eq!(near.broken().unwrap(), "1.00");
        let far = Scale::vertical([10.0, 100.0].into_iter(), false, AREA);
        assert_eq!((far.least, far.broken()), (0.0, None));
        assert_eq!(labels(&Scale::vertical([0.0, 2.0].into_iter(), false, AREA))[1], "0.25");
        assert_eq!(labels(&Scale::vertical([-40.0, 40.0].into_iter(), false, AREA))[0], "-40");
        assert_eq!(Scale::vertical([-40.0, 40.0].into_iter(), false, AREA).broken(), None);
        let flat = Scale::vertical([3.0, 3.0].into_iter(), false, AREA);
        assert!(flat.least < 3.0 && flat.most > 3.0 && (AREA[1]..=AREA[3]).contains(&flat.place(3.0)));
    }

    /// A sweep of ratios from 1 has a tick there.
    #[test]
    fn the_smallest_ratio_has_a_tick() {
        let scale = Scale::horizontal((1..=25).map(f64::from), false, AREA);
        assert!(labels(&scale).contains(&"1".to_owned()), "{:?}", labels(&scale));
        assert_eq!(scale.least, 0.0);
    }

    /// There are no twelve and a half processors.
    #[test]
    fn whole_numbers_have_whole_ticks() {
        let labels = |values: &[f64]| labels(&Scale::horizontal(values.iter().copied(), false, AREA));
        assert_eq!(labels(&[10.0, 15.0, 20.0]), ["0", "5", "10", "15", "20"]);
        assert_eq!(labels(&[1.0, 2.0]), ["0", "1", "2"]);
        assert!(labels(&[0.5, 2.0]).contains(&"0.50".to_owned()));
        assert!(!labels(&[1e308, -1e308]).iter().any(String::is_empty));
    }

    #[test]
    fn thousands_are_separated() {
        assert_eq!(labels(&Scale::vertical([0.0, 80_000.0].into_iter(), false, AREA))[1], "10,000");
    }

    #[test]
    fn ratios_have_ticks_of_their_own() {
        let scale = Scale::horizontal([100.0, 10_000.0].into_iter(), true, AREA);
        assert_eq!(labels(&scale), ["100", "200", "500", "1,000", "2,000", "5,000", "10,000"]);
        assert!((scale.place(1000.0) - (AREA[0] + AREA[2]) / 2.0).abs() < 1e-9);
        assert_eq!(scale.place(0.0), AREA[0]);
        let small = Scale::horizontal([0.05, 0.5].into_iter(), true, AREA);
        assert_eq!(labels(&small), ["0.05", "0.1", "0.2", "0.5"]);
        let many = Scale::horizontal([1.0, 1e30].into_iter(), true, AREA);
        assert!((4..=12).contains(&many.ticks().len()), "{:?}", labels(&many));
        assert!(labels(&Scale::horizontal([1.0, 2.0].into_iter(), true, AREA)).contains(&"1.5".to_owned()));
    }
}
