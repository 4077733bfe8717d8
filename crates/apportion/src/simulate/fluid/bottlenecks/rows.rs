//! What the flows of a bottleneck take of other links, summed up over bundles.

/// Most bottlenecks for which all pairs are kept: 2 MiB.
const MOST: usize = 512;

/// For every pair of bottlenecks the sum of count x share / weight of the first's flows on the second. A new level of
/// the first changes what is left of all others by a multiple of its row, in one pass over consecutive numbers.
/// Pairs are not kept where there are many bottlenecks: then few bundles cross two of them.
#[derive(Debug, Default)]
pub(super) struct Rows {
    sums: Vec<f64>,
    /// Numbers in a row.
    wide: usize,
    off: bool,
}

impl Rows {
    /// Makes room for this many bottlenecks.
    pub fn grow(&mut self, bottlenecks: usize) {
        if bottlenecks <= self.wide || self.off {
            return;
        }
        if bottlenecks > MOST {
            *self = Self { off: true, ..Self::default() };
            return;
        }
        let wide = (2 * self.wide).max(16);
        let mut sums = vec![0.0; wide * wide];
        for (new, old) in sums.chunks_exact_mut(wide).zip(self.sums.chunks_exact(self.wide.max(1))) {
            new[..self.wide].copy_from_slice(old);
        }
        (self.sums, self.wide) = (sums, wide);
    }

    /// The place of a pair, if it is kept.
    fn place(&self, at: u32, link: u32) -> Option<usize> {
        (!self.off).then_some(at as usize * self.wide + link as usize)
    }

    pub fn add(&mut self, at: u32, link: u32, by: f64) {
        if let Some(place) = self.place(at, link) {
            self.sums[place] += by;
        }
    }

    /// Forgets what flows of a bottleneck take.
    pub fn clear(&mut self, at: u32) {
        if let Some(place) = self.place(at, 0) {
            self.sums[place..place + self.wide].fill(0.0);
        }
    }

    /// Takes `by` times the row of a bottleneck from what is left of the others. Returns false if rows are not kept.
    pub fn subtract(&self, at: u32, by: f64, rest: &mut [f64]) -> bool {
        let Some(place) = self.place(at, 0) else { return false };
        for (rest, sum) in rest.iter_mut().zip(&self.sums[place..]) {
            *rest -= by * sum;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums outlast the growth of the table; beyond its limit none are kept.
    #[test]
    fn sums_stay_while_the_table_grows() {
        let mut rows = Rows::default();
        rows.grow(2);
        rows.add(0, 1, 2.0);
        rows.add(1, 0, 5.0);
        rows.grow(40);
        rows.add(0, 39, 3.0);
        let mut rest = vec![10.0; 40];
        assert!(rows.subtract(0, 2.0, &mut rest));
        assert_eq!((rest[0], rest[1], rest[39]), (10.0, 6.0, 4.0));
        rows.clear(0);
        assert!(rows.subtract(0, 2.0, &mut rest) && rest[1] == 6.0);
        assert!(rows.subtract(1, 1.0, &mut rest) && rest[0] == 5.0);
        rows.grow(MOST + 1);
        rows.add(MOST as u32, 0, 1.0);
        assert!(!rows.subtract(0, 1.0, &mut rest));
    }
}
