//! Positions of infinities and NaN, and the powers of two that scale finite numbers to about 1.

use super::parts::{Parts, each_piece, threads};
use super::scale::{Scale, exponent};
use crate::error::Result;
use crate::matrix::Element;
use crate::run::World;

/// Exponents of a row of A and of the initial C, the same on all ranks.
#[derive(Debug, Clone, Copy)]
struct Row {
    of_a: i32,
    of_initial: i32,
    /// True if the row of A holds an infinity or NaN.
    exceptional: bool,
}

/// Binary exponents of B as a whole and of each row of A and of the initial C: scaled by them, no sum
/// overflows. The same on all ranks. If all elements are zero, any exponent will do.
pub(super) struct Exponents {
    of_b: i32,
    rows: Vec<Row>,
    /// True for each column of B that holds an infinity or NaN.
    pub exceptional_columns: Vec<bool>,
    /// True if alpha or beta is infinite or NaN and its operand is used.
    exceptional_scalars: bool,
    alpha: f64,
    beta: f64,
}

/// Exponents of rows that hold only zeros: of the factors, and of the initial C, whose exponent is then not
/// the larger one.
const NONE: i32 = -1000;
const NO_INITIAL: i32 = -2000;

impl Exponents {
    pub fn of<T: Element>(parts: &Parts<'_, T>, world: &World) -> Result<Self> {
        let (m, k, n) = (parts.shape.m as usize, parts.shape.k as usize, parts.shape.n as usize);
        let threads = threads(world);
        let finite = |row: &[T]| row.iter().all(|x| x.to_f64().is_finite());
        // The exponent of finite elements, and 1 if there are others.
        let note = |row: &[T], found: &mut [i32; 2]| {
            found[0] = found[0].max(exponent(row).unwrap_or(NONE));
            found[1] |= i32::from(!finite(row));
        };
        let mut of_b = vec![[NONE, 0]; k];
        each_piece(&parts.b, &mut of_b, threads, |_, _, row, found| note(row, found));
        let mut columns = vec![0u8; n];
        for (rect, elements) in parts.b.iter().filter(|(rect, _)| !rect.is_empty()) {
            let rows = elements.chunks_exact(rect.cols.len() as usize).zip(rect.rows.start as usize..);
            for (row, _) in rows.filter(|(_, l)| of_b[*l][1] == 1) {
                let flags = &mut columns[rect.cols.start as usize..][..row.len()];
                flags.iter_mut().zip(row).for_each(|(flag, x)| *flag |= u8::from(!x.to_f64().is_finite()));
            }
        }
        let mut of_a = vec![[NONE, 0]; m];
        each_piece(&parts.a, &mut of_a, threads, |_, _, row, found| note(row, found));
        let mut of_initial = vec![NO_INITIAL; m];
        if let Some(initial) = &parts.initial {
            each_piece(initial, &mut of_initial, threads, |_, _, row, found| {
                *found = (*found).max(exponent(row).unwrap_or(NO_INITIAL));
            });
        }
        let of_b = of_b.iter().map(|of| of[0]).fold(NONE, i32::max);
        let rows: Vec<[i32; 3]> =
            of_a.iter().zip(&of_initial).map(|(a, initial)| [a[0], a[1], *initial]).collect();
        let greater = |x: [i32; 3], y: [i32; 3]| std::array::from_fn(|i| x[i].max(y[i]));
        let rows = world.all_reduce(&rows, greater)?.into_iter();
        let rows = rows.map(|[of_a, flag, of_initial]| Row { of_a, of_initial, exceptional: flag == 1 });
        let [alpha, beta] = parts.scaling.scalars().map(Element::to_f64);
        Ok(Self {
            of_b: world.all_reduce(&[of_b], i32::max)?[0],
            rows: rows.collect(),
            exceptional_columns: world.all_reduce(&columns, u8::max)?.iter().map(|x| *x == 1).collect(),
            exceptional_scalars: !alpha.is_finite() || (parts.initial.is_some() && !beta.is_finite()),
            alpha,
            beta,
        })
    }

    /// True if sums say nothing about row i of C, because infinities or NaN reach all of it.
    pub fn exceptional_row(&self, i: usize) -> bool {
        self.exceptional_scalars || self.rows[i].exceptional
    }

    /// Scales B.
    pub fn scale_of_b(&self) -> Scale {
        Scale::down(self.of_b)
    }

    /// Scales row i of A.
    pub fn scale_of_a(&self, i: usize) -> Scale {
        Scale::down(self.rows[i].of_a)
    }

    /// Scales row i of the initial C.
    pub fn scale_of_initial(&self, i: usize) -> Scale {
        Scale::down(self.rows[i].of_initial)
    }

    /// Scales row i of A B.
    pub fn scale_of_product(&self, i: usize) -> Scale {
        Scale::down(self.rows[i].of_a + self.of_b)
    }

    /// Scales row i of C.
    pub fn scale_of_c(&self, i: usize) -> Scale {
        Scale::down(self.exponents_of_c(i)[2])
    }

    /// Exponents of row i of alpha A B, of beta C0, and of their sum.
    fn exponents_of_c(&self, i: usize) -> [i32; 3] {
        let Row { of_a, of_initial, .. } = self.rows[i];
        let product = of_a + self.of_b + exponent(&[self.alpha]).unwrap_or(0);
        let initial = of_initial + exponent(&[self.beta]).unwrap_or(0);
        [product, initial, product.max(initial).clamp(-2000, 2000)]
    }

    /// Alpha, from the scale of row i of A B to the scale of C.
    pub fn factor_of_product(&self, i: usize) -> f64 {
        let [product, _, c] = self.exponents_of_c(i);
        rescaled(self.alpha, product - c)
    }

    /// Beta, from the scale of row i of the initial C to the scale of C.
    pub fn factor_of_initial(&self, i: usize) -> f64 {
        let [_, initial, c] = self.exponents_of_c(i);
        rescaled(self.beta, initial - c)
    }
}

/// A scalar scaled to about 1, times 2^exponent.
fn rescaled(scalar: f64, exponent_of_rest: i32) -> f64 {
    let own = Scale::down(exponent(&[scalar]).unwrap_or(0)).of(scalar);
    own * Scale::down((-exponent_of_rest).clamp(-2000, 2000)).of(1.0)
}
