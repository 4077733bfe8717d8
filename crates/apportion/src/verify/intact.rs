//! Whether the factors are still what they were: a library computes where they lie, and what it writes there
//! would be believed by every check that reads them afterwards.

use super::parts::{Blocks, Pass, each_piece, threads};
use crate::error::{Error, Result};
use crate::matrix::{BlockViews, Element};
use crate::run::World;

/// Digests of the rows of A and of B, as this rank holds them. One changed element changes a digest for
/// certain. Time O(elements), a few bytes of memory for each row.
pub(crate) struct Digests([Vec<u64>; 2]);

impl Digests {
    /// Those of the factors now.
    pub fn of<T: Element>(a: &BlockViews<'_, T>, b: &BlockViews<'_, T>, world: &World) -> Self {
        let of = |blocks: &Blocks<'_, T>| {
            let rows = blocks.iter().map(|(rect, _)| rect.rows.end).max().unwrap_or(0);
            let mut digests = vec![0; rows as usize];
            each_piece(blocks, &mut digests, threads(world), &Digest);
            digests
        };
        Self([of(a), of(b)])
    }

    /// Compares them with those of the factors `now`.
    ///
    /// # Errors
    /// [`Error::WrongResult`] names the first row that has changed.
    pub fn check(&self, now: &Self) -> Result<()> {
        for (name, (before, after)) in ["A", "B"].into_iter().zip(self.0.iter().zip(&now.0)) {
            if let Some(row) = before.iter().zip(after).position(|(x, y)| x != y) {
                let what = format!(
                    "the library has written into row {row} of {name}, counted from 0, which it was to read"
                );
                return Err(Error::WrongResult { what });
            }
        }
        Ok(())
    }
}

/// Adds the digest of a piece to that of its row.
struct Digest;

impl<T: Element> Pass<T, u64> for Digest {
    #[inline(always)]
    fn add(&self, _: usize, _: usize, row: &[T], sum: &mut u64) {
        const LANES: usize = 8;
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        // Sums, and sums of sums, which tell places apart (Fletcher 1982, doi:10.1109/TCOM.1982.1095369).
        let mut sums = [[0u64; LANES]; 2];
        let (whole, rest) = bytemuck::cast_slice::<T, u8>(row).as_chunks::<{ 8 * LANES }>();
        for chunk in whole {
            for (lane, word) in chunk.as_chunks::<8>().0.iter().enumerate() {
                sums[0][lane] = sums[0][lane].wrapping_add(u64::from_le_bytes(*word));
                sums[1][lane] = sums[1][lane].wrapping_add(sums[0][lane]);
            }
        }
        let add = |digest: u64, word: u64| digest.wrapping_add(word).wrapping_mul(ODD).rotate_left(29);
        let digest = sums.into_iter().flatten().fold(*sum, add);
        *sum = rest.iter().fold(digest, |digest, byte| add(digest, u64::from(*byte)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{Rect, Span};
    use crate::run::Monitor;

    #[test]
    fn any_change_of_an_element_is_noticed_with_its_row() {
        let (m, n) = (5, 300);
        let matrix: Vec<f32> = (0..m * n).map(|i| (i % 7) as f32).collect();
        let halves = |matrix: &[f32]| -> Vec<(Rect, Vec<f32>)> {
            let half = |cols: Span| {
                let row = |i: usize| &matrix[i * n + cols.start as usize..i * n + cols.end as usize];
                (Rect::new(Span::new(0, m as u64), cols), (0..m).flat_map(row).copied().collect())
            };
            vec![half(Span::new(0, 131)), half(Span::new(131, n as u64))]
        };
        let world = World::solo(&Monitor::new());
        let digests = |matrix: &[f32]| {
            let blocks = halves(matrix);
            let views = crate::matrix::views_of(&blocks);
            Digests::of(&views, &views, &world)
        };
        let before = digests(&matrix);
        before.check(&digests(&matrix)).unwrap();
        for at in 0..m * n {
            let mut changed = matrix.clone();
            changed[at] = f32::from_bits(changed[at].to_bits() ^ 1 << (at % 32));
            let error = before.check(&digests(&changed)).unwrap_err().to_string();
            assert!(error.contains(&format!("row {} of A", at / n)), "{at}: {error}");
            // Exchanged with a neighbour.
            changed.copy_from_slice(&matrix);
            changed.swap(at, (at + 1) % (m * n));
            assert_eq!(before.check(&digests(&changed)).is_err(), changed != matrix, "{at}");
        }
    }
}
