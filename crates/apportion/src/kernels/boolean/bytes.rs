//! Matrices of bytes: any byte but 0 is true.

use super::BitMatrix;
use crate::kernels::view::check_shapes;
use crate::kernels::{View, ViewMut};

/// Packs both factors, multiplies bits, and adds the result to C's bytes. Costs O(m k + k n + m n) bytes in
/// addition to the product.
pub(in crate::kernels) fn or_and(a: View<u8>, b: View<u8>, mut c: ViewMut<u8>) {
    check_shapes(&a, &b, &c);
    let (m, k, n) = (a.rows(), a.cols(), b.cols());
    let mut product = BitMatrix::zeros(m, n);
    product.or_product(&BitMatrix::from_rows(m, k, |i| a.row(i)), &BitMatrix::from_rows(k, n, |i| b.row(i)));
    for i in 0..m {
        for (bytes, &word) in c.row(i).chunks_mut(64).zip(product.words(i)) {
            if word != 0 {
                add(bytes, word);
            }
        }
    }
}

/// Adds the bits of a word to as many bytes, the lowest bit to the first byte.
fn add(bytes: &mut [u8], word: u64) {
    let (eights, rest) = bytes.as_chunks_mut::<8>();
    let first = 8 * eights.len();
    for (eight, bits) in eights.iter_mut().zip(word.to_le_bytes()) {
        *eight = (u64::from_le_bytes(*eight) | spread(bits)).to_le_bytes();
    }
    rest.iter_mut().enumerate().for_each(|(at, byte)| *byte |= (word >> (first + at) & 1) as u8);
}

/// Eight bits as eight bytes of 0 or 1, the lowest first.
fn spread(bits: u8) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const EACH: u64 = 0x8040_2010_0804_0201;
    // Each byte keeps one of the bits, which then moves to the lowest place by a carry to the highest.
    let kept = (u64::from(bits) * ONES) & EACH;
    ((kept + 0x7f * ONES) >> 7) & ONES
}

/// 1 if some pair of a row of A and a column of B is true, else 0.
pub(in crate::kernels) fn some_pair(row: &[u8], column: &[u8]) -> u8 {
    const WIDE: usize = 64;
    let ((rows, row), (columns, column)) = (row.as_chunks::<WIDE>(), column.as_chunks::<WIDE>());
    for (xs, ys) in rows.iter().zip(columns) {
        // Without branches, so that many are compared at once.
        let mut found = 0;
        xs.iter().zip(ys).for_each(|(x, y)| found |= u8::from(*x != 0) & u8::from(*y != 0));
        if found != 0 {
            return 1;
        }
    }
    row.iter().zip(column).any(|(x, y)| *x != 0 && *y != 0).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn bits_become_bytes() {
        let mut random = Random::new(1);
        for length in [0, 1, 7, 8, 9, 63, 64] {
            for _ in 0..50 {
                let word = (0..64).map(|bit| (random.below(2) as u64) << bit).sum::<u64>();
                let before: Vec<u8> = (0..length).map(|_| [0, 0, 1, 6][random.below(4)]).collect();
                let mut bytes = before.clone();
                add(&mut bytes, word);
                let wanted = before.iter().enumerate().map(|(at, byte)| byte | (word >> at & 1) as u8);
                assert_eq!(bytes, wanted.collect::<Vec<u8>>());
            }
        }
    }

    #[test]
    fn some_pair_is_any_pair() {
        let mut random = Random::new(2);
        for length in [0, 1, 63, 64, 65, 200] {
            for _ in 0..200 {
                let mut draw = || -> Vec<u8> {
                    (0..length)
                        .map(|_| if random.below(12) == 0 { 1 << random.below(8) } else { 0 })
                        .collect()
                };
                let (x, y) = (draw(), draw());
                let wanted = x.iter().zip(&y).any(|(x, y)| *x != 0 && *y != 0);
                assert_eq!(some_pair(&x, &y), u8::from(wanted));
            }
        }
    }
}
