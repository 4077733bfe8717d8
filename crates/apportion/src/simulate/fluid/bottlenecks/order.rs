//! The order of bottlenecks by level.

use super::Bottlenecks;
use super::levels::EQUAL;

impl Bottlenecks {
    /// Moves a bottleneck before those with higher levels, whose bundles that use it change over to it.
    pub(super) fn forward(&mut self, at: u32, now: f64) -> usize {
        let mut spent = 0;
        while let Some(before) = self.place[at as usize].checked_sub(1) {
            let other = self.order[before as usize];
            if !self.above(other, at) {
                break;
            }
            self.swap(before);
            self.mark(other);
            spent += 1 + self.change_over(other, at, now);
        }
        spent
    }

    /// Moves a bottleneck after those with lower levels, to which its bundles that use them change over.
    pub(super) fn backward(&mut self, at: u32, now: f64) -> usize {
        let mut spent = 0;
        while let Some(&other) = self.order.get(self.place[at as usize] as usize + 1) {
            if !self.above(at, other) {
                break;
            }
            self.swap(self.place[at as usize]);
            self.mark(other);
            let bundles = self.change_over(at, other, now);
            spent += 1 + bundles;
            if bundles > self.all[at as usize].bundles.len() {
                self.mark(at);
                break;
            }
        }
        spent
    }

    /// True if a level is above another, and not by rounding only.
    fn above(&self, higher: u32, lower: u32) -> bool {
        let (x, y) = (self.level[higher as usize], self.level[lower as usize]);
        x > y && (x.is_infinite() || y.is_infinite() || x - y > EQUAL * x.abs())
    }

    /// The bottleneck at this place and the next change places.
    fn swap(&mut self, place: u32) {
        self.order.swap(place as usize, place as usize + 1);
        for place in [place, place + 1] {
            let at = self.order[place as usize];
            self.place[at as usize] = place;
        }
    }

    /// Bundles that may have another bottleneck change over to it. Returns the number of steps.
    fn change_over(&mut self, from: u32, to: u32, now: f64) -> usize {
        if self.all[to as usize].capacity.is_finite() && self.rows.apart(from, to) {
            return 0;
        }
        let mut captured = std::mem::take(&mut self.captured);
        captured.clear();
        captured
            .extend(self.all[from as usize].bundles.iter().copied().filter(|&bundle| self.may(bundle, to)));
        let mut spent = self.all[from as usize].bundles.len();
        if !captured.is_empty() {
            spent += self.capture(from, to, &captured, now);
            self.mark(from);
            self.mark(to);
        }
        self.captured = captured;
        spent
    }
}
