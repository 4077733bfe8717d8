//! What the flows of a bottleneck take of other links, summed up over bundles.

/// Most bottlenecks for which all pairs are kept, in 3 MiB.
const MOST: usize = 512;

/// For every pair of bottlenecks the sum of count x share / weight of the first's flows on the second. A new
/// level of the first changes what is left of all others by a multiple of its row, whatever the number of its
/// bundles. Pairs are not kept where there are many bottlenecks: then few bundles cross two of them.
#[derive(Debug, Default)]
pub(super) struct Rows {
    sums: Vec<f64>,
    /// Bundles of each pair.
    counts: Vec<u32>,
    /// By bottleneck: the links that its bundles use as well.
    links: Vec<Vec<u32>>,
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
        let wide = bottlenecks.next_power_of_two().max(16);
        (self.sums, self.counts) =
            (widened(&self.sums, self.wide, wide), widened(&self.counts, self.wide, wide));
        self.links.resize(wide, Vec::new());
        self.wide = wide;
    }

    /// The place of a pair, if it is kept.
    fn place(&self, at: u32, link: u32) -> Option<usize> {
        (!self.off).then_some(at as usize * self.wide + link as usize)
    }

    /// A bundle whose flows take this much of a link is at a bottleneck now.
    pub fn join(&mut self, at: u32, link: u32, amount: f64) {
        let Some(place) = self.place(at, link) else { return };
        self.sums[place] += amount;
        self.counts[place] += 1;
        if self.counts[place] == 1 {
            self.links[at as usize].push(link);
        }
    }

    /// A bundle leaves a bottleneck.
    pub fn leave(&mut self, at: u32, link: u32, amount: f64) {
        let Some(place) = self.place(at, link) else { return };
        self.sums[place] -= amount;
        self.counts[place] -= 1;
        if self.counts[place] == 0 {
            self.sums[place] = 0.0;
            let links = &mut self.links[at as usize];
            if let Some(known) = links.iter().position(|&other| other == link) {
                links.swap_remove(known);
            }
        }
    }

    /// The flows of a bundle take more of a link.
    pub fn add(&mut self, at: u32, link: u32, by: f64) {
        if let Some(place) = self.place(at, link) {
            self.sums[place] += by;
        }
    }

    /// Forgets all bundles.
    pub fn clear(&mut self) {
        self.sums.fill(0.0);
        self.counts.fill(0);
        self.links.iter_mut().for_each(Vec::clear);
    }

    /// True if it is known that no bundle of a bottleneck uses the link.
    pub fn apart(&self, at: u32, link: u32) -> bool {
        self.place(at, link).is_some_and(|place| self.counts[place] == 0)
    }

    /// Takes `by` times the row of a bottleneck from what is left of the others, and returns those that its
    /// bundles use; nothing if rows are not kept.
    pub fn subtract(&self, at: u32, by: f64, rest: &mut [f64]) -> Option<&[u32]> {
        let row = &self.sums[self.place(at, 0)?..];
        let links = &self.links[at as usize];
        if 4 * links.len() < rest.len() {
            links.iter().for_each(|&link| rest[link as usize] -= by * row[link as usize]);
        } else {
            // One pass over consecutive numbers.
            rest.iter_mut().zip(row).for_each(|(rest, sum)| *rest -= by * sum);
        }
        Some(links)
    }
}

/// A table with longer rows, and more of them.
fn widened<T: Copy + Default>(table: &[T], from: usize, to: usize) -> Vec<T> {
    let mut wide = vec![T::default(); to * to];
    for (new, old) in wide.chunks_exact_mut(to).zip(table.chunks_exact(from.max(1))) {
        new[..from].copy_from_slice(old);
    }
    wide
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums outlast the growth of the table, and are nothing again once the last bundle has left; beyond the
    /// limit none are kept.
    #[test]
    fn sums_stay_while_the_table_grows() {
        let mut rows = Rows::default();
        rows.grow(2);
        rows.join(0, 1, 1.9);
        rows.add(0, 1, 0.1);
        rows.join(1, 0, 5.0);
        rows.grow(40);
        rows.join(0, 39, 3.0);
        let mut rest = vec![10.0; 40];
        assert_eq!(rows.subtract(0, 2.0, &mut rest), Some(&[1, 39][..]));
        assert_eq!((rest[0], rest[1], rest[39]), (10.0, 6.0, 4.0));
        rows.leave(0, 1, 0.3);
        assert!(rows.apart(0, 1) && !rows.apart(1, 0));
        assert_eq!(rows.subtract(0, 1.0, &mut rest), Some(&[39][..]));
        assert_eq!((rest[1], rest[39]), (6.0, 1.0));
        // Many links at once.
        (2..30).for_each(|link| rows.join(1, link, 0.5));
        assert_eq!(rows.subtract(1, 2.0, &mut rest).map(<[u32]>::len), Some(29));
        assert_eq!((rest[0], rest[1], rest[2], rest[39]), (0.0, 6.0, 9.0, 1.0));
        rows.grow(MOST + 1);
        rows.join(MOST as u32, 0, 1.0);
        assert!(rows.subtract(0, 1.0, &mut rest).is_none() && !rows.apart(0, 39));
    }
}
