//! Positions of infinities and NaN, and the powers of two that scale finite numbers to about 1.

use super::parts::{Blocks, Parts, Pass, WORTH_A_THREAD, each_piece, threads};
use super::scale::{Scale, exponent, exponent_of, largest_and_others};
use crate::error::Result;
use crate::kernels::{Loop, widest};
use crate::matrix::Element;
use crate::run::World;
use crate::threads::share_out;
use std::sync::{Mutex, PoisonError};

/// Exponents of a row of A and of the initial C, the same on all ranks.
#[derive(Debug, Clone, Copy)]
struct Row {
    of_a: i32,
    of_initial: i32,
    /// True if the row of A holds an infinity or NaN.
    exceptional: bool,
}

/// Binary exponents of B as a whole, of each row of A and of the initial C, and of each column of C: scaled
/// by them, no sum overflows, and no column hides the others. The same on all ranks. If all elements are
/// zero, any exponent will do.
#[derive(Debug, Clone)]
pub(super) struct Exponents {
    of_b: i32,
    rows: Vec<Row>,
    /// Of each column of B and of the initial C, the larger one, when their rows are scaled: 0 at most.
    columns: Vec<i32>,
    /// True for each column of B that holds an infinity or NaN.
    pub reached_columns: Vec<bool>,
    /// The same and columns of C that overflow: random vectors leave these out.
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

/// The exponent of a row's finite elements, and 1 if there are others.
pub(super) type RowNote = [i32; 2];
/// Of a row of which nothing is known yet.
pub(super) const NO_NOTE: RowNote = [NONE, 0];

/// Exponents, up or down, of rows that need not be scaled: with [`HEADROOM`] their sums are far from
/// overflow, and what underflows is below 2^-975 of a row.
const MODERATE: i32 = 100;

/// B and C are scaled to about 2^500 instead of 1, so that columns that are smaller by 10^450 are not yet
/// subnormal.
const HEADROOM: i32 = 500;

impl Exponents {
    /// Those of a claim. Without an initial C, rows of A are left out: the product with A notes them
    /// ([`Exponents::with_rows`]).
    pub fn of<T: Element>(parts: &Parts<'_, T>, world: &World) -> Result<Self> {
        let n = parts.shape.n as usize;
        let threads = threads(world);
        let of_b = Columns::of(&parts.b, n, threads, |_| Scale::down(0));
        let largest = of_b.largest.iter().copied().fold(0, u64::max);
        let reached_columns: Vec<bool> =
            world.all_reduce(&of_b.others, u8::max)?.iter().map(|x| *x == 1).collect();
        let [alpha, beta] = parts.scaling.scalars().map(Element::to_f64);
        let mut exponents = Self {
            of_b: world.all_reduce(&[exponent_of(largest).unwrap_or(NONE)], i32::max)?[0],
            rows: Vec::new(),
            columns: Vec::new(),
            exceptional_columns: reached_columns.clone(),
            reached_columns,
            exceptional_scalars: !alpha.is_finite() || (parts.initial.is_some() && !beta.is_finite()),
            alpha,
            beta,
        };
        let scale = exponents.scale_of_b();
        let mut columns: Vec<u64> =
            of_b.largest.iter().map(|bits| scale.of(f64::from_bits(*bits)).to_bits()).collect();
        if let Some(initial) = &parts.initial {
            let mut of_a = vec![NO_NOTE; parts.shape.m as usize];
            each_piece(&parts.a, &mut of_a, threads, &Note);
            let mut of_initial = vec![NO_INITIAL; of_a.len()];
            each_piece(initial, &mut of_initial, threads, &NoteInitial);
            exponents = exponents.with_rows(&of_a, &of_initial, world)?;
            let of = |i: usize| exponents.scale_of_initial(i).times(exponents.factor_of_initial(i));
            let of_initial = Columns::of(initial, n, threads, of).largest;
            columns.iter_mut().zip(of_initial).for_each(|(x, y)| *x = (*x).max(y));
        }
        let columns = world.all_reduce(&columns, u64::max)?.into_iter();
        let relative = |bits| exponent_of(bits).map_or(0, |exponent| (exponent - HEADROOM).min(0));
        Ok(Self { columns: columns.map(relative).collect(), ..exponents })
    }

    /// The same with the rows of A and of the initial C, as this rank has found them.
    pub fn with_rows(self, of_a: &[RowNote], of_initial: &[i32], world: &World) -> Result<Self> {
        let rows: Vec<[i32; 3]> =
            of_a.iter().zip(of_initial).map(|(a, initial)| [a[0], a[1], *initial]).collect();
        let greater = |x: [i32; 3], y: [i32; 3]| std::array::from_fn(|i| x[i].max(y[i]));
        let rows = world.all_reduce(&rows, greater)?.into_iter();
        let rows = rows.map(|[of_a, flag, of_initial]| Row { of_a, of_initial, exceptional: flag == 1 });
        Ok(Self { rows: rows.collect(), ..self })
    }

    /// The same with the rows of A, where there is no initial C.
    pub fn with_rows_of_a(self, of_a: &[RowNote], world: &World) -> Result<Self> {
        self.with_rows(of_a, &vec![NO_INITIAL; of_a.len()], world)
    }

    /// True if the rows of A are known.
    pub fn has_rows(&self) -> bool {
        !self.rows.is_empty()
    }

    /// True if sums of products with A neither overflow nor underflow without scaling: each of its rows is
    /// zero or within 2^±100, and finite.
    pub fn moderate_rows(&self) -> bool {
        let moderate = |row: &Row| !row.exceptional && (row.of_a == NONE || row.of_a.abs() <= MODERATE);
        self.rows.iter().all(moderate)
    }

    /// The same with more exceptional columns, those with a flag of 1.
    pub fn with_exceptional(&self, flags: &[u8]) -> Self {
        let more = self.exceptional_columns.iter().zip(flags).map(|(known, flag)| *known || *flag == 1);
        Self { exceptional_columns: more.collect(), ..self.clone() }
    }

    /// The factor of column j of C that makes all columns about equally large: a power of two, 1 at least.
    pub fn weight_of_column(&self, j: usize) -> f64 {
        Scale::down(self.columns[j]).of(1.0)
    }

    /// True if sums say nothing about row i of C, because infinities or NaN reach all of it.
    pub fn exceptional_row(&self, i: usize) -> bool {
        self.exceptional_scalars || self.rows[i].exceptional
    }

    /// Scales B to 2^HEADROOM.
    pub fn scale_of_b(&self) -> Scale {
        Scale::down(self.of_b - HEADROOM)
    }

    /// Scales row i of A.
    pub fn scale_of_a(&self, i: usize) -> Scale {
        Scale::down(self.rows[i].of_a)
    }

    /// Scales row i of the initial C.
    pub fn scale_of_initial(&self, i: usize) -> Scale {
        Scale::down(self.rows[i].of_initial.max(-1500) - HEADROOM)
    }

    /// Scales row i of A B.
    pub fn scale_of_product(&self, i: usize) -> Scale {
        Scale::down((self.rows[i].of_a + self.of_b).max(-1500) - HEADROOM)
    }

    /// Scales row i of C.
    pub fn scale_of_c(&self, i: usize) -> Scale {
        Scale::down(self.exponents_of_c(i)[2] - HEADROOM)
    }

    /// Exponents of row i of alpha A B, of beta C0, and of their sum.
    fn exponents_of_c(&self, i: usize) -> [i32; 3] {
        let Row { of_a, of_initial, .. } = self.rows[i];
        let product = of_a + self.of_b + exponent(&[self.alpha]).unwrap_or(0);
        let initial = of_initial + exponent(&[self.beta]).unwrap_or(0);
        [product, initial, product.max(initial).clamp(-1500, 2000)]
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

/// What a pass finds in the columns of a matrix.
struct Columns {
    /// The bits of the largest finite absolute value: positive doubles are ordered as their bits are.
    largest: Vec<u64>,
    /// 1 where there are infinities or NaN.
    others: Vec<u8>,
}

impl Columns {
    /// The `n` columns of a matrix. `of` returns the scale of a row.
    fn of<T: Element>(
        blocks: &Blocks<'_, T>,
        n: usize,
        threads: usize,
        of: impl Fn(usize) -> Scale + Sync,
    ) -> Self {
        let mut columns = Self { largest: vec![0; n], others: vec![0; n] };
        for (rect, elements) in blocks.iter().filter(|(rect, _)| !rect.is_empty()) {
            let (height, width) = (rect.rows.len() as usize, rect.cols.len() as usize);
            let here = rect.cols.start as usize..rect.cols.end as usize;
            let rows = height.div_ceil(threads.min(height)).max(WORTH_A_THREAD as usize / width.max(1));
            let parts = elements.chunks(rows * width).zip((rect.rows.start as usize..).step_by(rows));
            let found = Mutex::new((&mut columns.largest[here.clone()], &mut columns.others[here]));
            share_out(parts.collect(), threads, |(elements, first)| {
                let mut own = vec![0u64; width];
                let mut others = vec![0u8; width];
                for (row, i) in elements.chunks_exact(width).zip(first..) {
                    let mut infinite = false;
                    widest(Larger { row, of: &of(i), most: &mut own, infinite: &mut infinite });
                    if infinite {
                        let flags = others.iter_mut().zip(row);
                        flags.for_each(|(flag, x)| *flag |= u8::from(!x.to_f64().is_finite()));
                    }
                }
                let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                found.0.iter_mut().zip(own).for_each(|(x, y)| *x = (*x).max(y));
                found.1.iter_mut().zip(others).for_each(|(x, y)| *x |= y);
            });
        }
        columns
    }
}

/// Finds the larger of each column's largest finite number and a row's.
struct Larger<'a, T> {
    row: &'a [T],
    of: &'a Scale,
    most: &'a mut [u64],
    /// True if the row has infinities or NaN, also by scaling.
    infinite: &'a mut bool,
}

impl<T: Element> Loop for Larger<'_, T> {
    #[inline(always)]
    fn run(self) {
        let mut infinite = 0;
        for (most, x) in self.most.iter_mut().zip(self.row) {
            let size = self.of.of(x.to_f64()).abs().to_bits();
            let finite = size < f64::INFINITY.to_bits();
            *most = (*most).max(if finite { size } else { 0 });
            infinite |= u64::from(!finite);
        }
        *self.infinite = infinite != 0;
    }
}

/// Finds a [`RowNote`] of each row.
pub(super) struct Note;

impl<T: Element> Pass<T, RowNote> for Note {
    #[inline(always)]
    fn add(&self, _: usize, _: usize, row: &[T], found: &mut RowNote) {
        let (largest, others) = largest_and_others(row);
        found[0] = found[0].max(exponent_of(largest).unwrap_or(NONE));
        found[1] |= i32::from(others);
    }
}

/// Finds the exponent of each row of the initial C.
struct NoteInitial;

impl<T: Element> Pass<T, i32> for NoteInitial {
    #[inline(always)]
    fn add(&self, _: usize, _: usize, row: &[T], found: &mut i32) {
        *found = (*found).max(exponent(row).unwrap_or(NO_INITIAL));
    }
}

/// A scalar scaled to about 1, times 2^exponent.
fn rescaled(scalar: f64, exponent_of_rest: i32) -> f64 {
    let own = Scale::down(exponent(&[scalar]).unwrap_or(0)).of(scalar);
    own * Scale::down((-exponent_of_rest).clamp(-2000, 2000)).of(1.0)
}
