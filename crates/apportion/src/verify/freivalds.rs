//! Freivalds' check: C x = alpha A (B x) + beta C0 x for random signs x, in quadratic time. The sign of a
//! column is weighted with a power of two, so that a column of large numbers does not hide the others.
//!
//! Each rank multiplies its own parts by the same vectors; the sums of vectors travel along trees. Source:
//! Freivalds 1979, "Fast probabilistic algorithms", doi:10.1007/3-540-09526-8_5.
//!
//! Rounding never fails the check: a suspicious row is recomputed, and is wrong only if an element is off by
//! more than (k + 1) ε |A| |B|. A single wrong element is certainly found if its error also exceeds
//! 8 sqrt(k + 1) ε sqrt(sum * largest) of its row of weighted |A| |B| (with k + 1 for 2 sqrt(k + 1) after
//! four suspicious rows turned out to be right). Several wrong elements together are missed with probability
//! 2^-16. Any order of summation passes, and either order of scaling and multiplying.
//!
//! Where infinities or NaN of the operands reach C, a finite element is certainly found. Which of infinity,
//! minus infinity and NaN is there, and columns that overflow, are sampled: each kind in each row.

use super::exact::{Exact, Overflow, Scale, Share, add_product, exponent, exponent_of, largest_and_others};
use super::parts::{Blocks, Parts, Pass, Place, WIDE, WORTH_A_THREAD, each_piece, elements_at, threads};
use super::samples::{DRAWS, Recipe, recompute};
use super::{Verified, wrong};
use crate::error::Result;
use crate::kernels::{Loop, widest};
use crate::matrix::Element;
use crate::random::Random;
use crate::run::World;
use crate::threads::share_out;
use std::sync::{Mutex, PoisonError};

/// Number of rows that may become suspicious by rounding alone before the margin is widened.
const FALSE_ALARMS: usize = 4;

/// Checks that C = alpha A B + beta C0 up to rounding. Time O(16 elements) on each rank.
///
/// # Errors
/// The first wrong element of the first row found wrong, the same on every rank; interrupted.
pub(super) fn verify<T: Element>(parts: &Parts<'_, T>, seed: u64, world: &World) -> Result<Verified> {
    let mut random = Random::new(seed);
    let mut check = Check::new(parts, Exponents::of(parts, world)?, &mut random, world)?;
    if let Some(exponents) = check.without_overflow(world)? {
        check = Check::new(parts, exponents, &mut random, world)?;
    }
    let (exceptional, places) = check.exceptional(&mut random, world)?;
    let found = [check.rows(&exceptional, world)?, check.sample(&places, world)?];
    match found.into_iter().flatten().min_by_key(|found| found.place) {
        None => Ok(Verified {
            error_probability: 0.5f64.powi(LANES as i32),
            sampled: None,
            exceptional: places.len() as u64,
        }),
        Some(Wrong { place, seen, wanted }) => {
            Err(wrong(place, format_args!("{seen:e}"), format_args!("{wanted:e}")))
        }
    }
}

/// A wrong element, and its right value.
struct Wrong {
    place: Place,
    seen: f64,
    wanted: f64,
}

/// A check in progress; all its fields and decisions are the same on every rank.
struct Check<'a, T> {
    parts: &'a Parts<'a, T>,
    exponents: Exponents,
    /// Sum of the weights of all columns.
    weights: f64,
    /// For each row of C.
    seen: Vec<Sums>,
    /// For each row of alpha A (B x) + beta C0 x, and of |alpha A| |B| + |beta C0|.
    wanted: Vec<Sums>,
    false_alarms: usize,
}

impl<'a, T: Element> Check<'a, T> {
    fn new(
        parts: &'a Parts<'a, T>,
        exponents: Exponents,
        random: &mut Random,
        world: &World,
    ) -> Result<Self> {
        let threads = threads(world);
        // Columns with infinities are not checked here.
        let signs = |(j, exceptional): (usize, &bool)| -> Sums {
            let (bits, weight) = (random.word(), exponents.weight_of_column(j));
            let sign = |t: usize| if t < LANES { 1.0 - 2.0 * (bits >> t & 1) as f64 } else { 1.0 };
            std::array::from_fn(|t| if *exceptional { 0.0 } else { weight * sign(t) })
        };
        let x: Vec<Sums> = exponents.exceptional_columns.iter().enumerate().map(signs).collect();
        let weights = x.iter().map(|x| x[SIZE]).sum();
        let x = Projection::of(&x);
        let (m, k) = (parts.shape.m as usize, parts.shape.k as usize);
        let zeros = |rows: usize| vec![[0.0; LANES + 2]; rows];
        let together = |x: Sums, y: Sums, largest: fn(f64, f64) -> f64| -> Sums {
            std::array::from_fn(|t| if t == LARGEST { largest(x[t], y[t]) } else { x[t] + y[t] })
        };
        let plus = |x: f64, y: f64| x + y;
        world.check()?;
        let mut y = zeros(k);
        let of_b = exponents.scale_of_b();
        each_piece(&parts.b, &mut y, threads, &x.largest_of(|_| of_b));
        let y = Projection::of(&world.all_reduce(&y, |x, y| together(x, y, f64::max))?);
        world.check()?;
        let (exponents, wanted) = products_of_rows(parts, exponents, &y, threads, world)?;
        let wanted = world.all_reduce(&wanted, |x, y| together(x, y, plus))?;
        let mut initial = zeros(m);
        if let Some(blocks) = &parts.initial {
            let of = |i: usize| exponents.scale_of_initial(i).times(exponents.factor_of_initial(i));
            each_piece(blocks, &mut initial, threads, &x.largest_of(of));
            initial = world.all_reduce(&initial, |x, y| together(x, y, f64::max))?;
        }
        let wanted = wanted.iter().zip(&initial).map(|(x, y)| together(*x, *y, plus)).collect();
        let mut seen = zeros(m);
        each_piece(&parts.c, &mut seen, threads, &x.largest_of(|i| exponents.scale_of_c(i)));
        let seen = world.all_reduce(&seen, |x, y| together(x, y, f64::max))?;
        Ok(Self { parts, exponents, weights, seen, wanted, false_alarms: 0 })
    }

    /// The rows that infinities or NaN reach, and places to recompute, sorted: those rows and such columns,
    /// or a sample of them; and where A is finite and C overflowed or is wrong, the first such element of
    /// each row.
    fn exceptional(&self, random: &mut Random, world: &World) -> Result<(Vec<bool>, Vec<Place>)> {
        let (m, n) = (self.seen.len(), self.exponents.exceptional_columns.len());
        let mut exceptional: Vec<bool> = (0..m).map(|i| self.exponents.exceptional_row(i)).collect();
        let doubtful = self.doubtful();
        let mut places: Vec<Place> = self.finite_among_exceptional(world)?.into_iter().collect();
        for (i, j) in doubtful.iter().zip(self.first_exceptional(&doubtful, world)?) {
            if j < n as u64 {
                exceptional[*i] = true;
                places.push((*i, j as usize));
            }
        }
        let columns = &self.exponents.exceptional_columns;
        let [rows, cols] = [&exceptional, columns].map(|flags| flags.iter().filter(|flag| **flag).count());
        let reached = |i: usize, j: usize| exceptional[i] || columns[j];
        if (rows * n + cols * (m - rows)) as u64 <= DRAWS {
            let some = (0..m).filter(|i| cols > 0 || exceptional[*i]);
            places.extend(some.flat_map(|i| (0..n).map(move |j| (i, j))).filter(|(i, j)| reached(*i, *j)));
        } else {
            places.extend(self.some_of_each_kind(random, world)?);
            for i in (0..m).filter(|i| exceptional[*i]) {
                places.extend((0..LANES).map(|_| (i, random.below(n))));
            }
            for j in (0..n).filter(|j| columns[*j]) {
                places.extend((0..LANES).map(|_| (random.below(m), j)));
            }
            let drawn = (0..DRAWS).map(|_| (random.below(m), random.below(n)));
            places.extend(drawn.filter(|(i, j)| reached(*i, *j)));
        }
        places.sort_unstable();
        places.dedup();
        Ok((exceptional, places))
    }

    /// Of each row of C, one element that is infinity, one that is minus infinity and one that is NaN, as far
    /// as there are any: the first from a random column on.
    fn some_of_each_kind(&self, random: &mut Random, world: &World) -> Result<Vec<Place>> {
        let (m, n) = (self.seen.len(), self.exponents.exceptional_columns.len());
        let from = random.below(n);
        // The distance from there to the right, and round.
        let mut nearest = vec![[u64::MAX; 3]; m];
        for (rect, elements) in self.parts.c.iter().filter(|(rect, _)| !rect.is_empty()) {
            let rows = elements.chunks_exact(rect.cols.len() as usize);
            for (row, nearest) in rows.zip(&mut nearest[rect.rows.start as usize..]) {
                let strange = (rect.cols.start as usize..).zip(row.iter().map(|x| x.to_f64()));
                for (j, x) in strange.filter(|(_, x)| !x.is_finite()) {
                    let kind = if x.is_nan() { 2 } else { usize::from(x < 0.0) };
                    nearest[kind] = nearest[kind].min(((j + n - from) % n) as u64);
                }
            }
        }
        let nearer = |x: [u64; 3], y: [u64; 3]| std::array::from_fn(|kind| x[kind].min(y[kind]));
        let nearest = world.all_reduce(&nearest, nearer)?.into_iter().enumerate();
        let places = nearest.flat_map(|(i, distances)| distances.map(|distance| (i, distance)));
        let found = places.filter(|(_, distance)| *distance < u64::MAX);
        Ok(found.map(|(i, distance)| (i, (from + distance as usize) % n)).collect())
    }

    /// The rows of finite numbers whose sums are not finite: an element of C overflowed, or is wrong.
    fn doubtful(&self) -> Vec<usize> {
        let finite = |sums: &Sums| sums[..LANES].iter().all(|sum| sum.is_finite());
        let sound = |i: usize| {
            self.exponents.exceptional_row(i) || (finite(&self.seen[i]) && finite(&self.wanted[i]))
        };
        (0..self.seen.len()).filter(|i| !sound(*i)).collect()
    }

    /// If many rows of C overflow: the exponents with the columns that do so marked as exceptional, so that
    /// the other columns of those rows are checked in full.
    fn without_overflow(&self, world: &World) -> Result<Option<Exponents>> {
        let rows = self.doubtful();
        if rows.is_empty() {
            return Ok(None);
        }
        let mut columns = vec![0u8; self.exponents.exceptional_columns.len()];
        for (rect, elements) in self.parts.c.iter().filter(|(rect, _)| !rect.is_empty()) {
            let width = rect.cols.len() as usize;
            for i in rows.iter().filter(|i| (rect.rows.start..rect.rows.end).contains(&(**i as u64))) {
                let row = &elements[(*i - rect.rows.start as usize) * width..][..width];
                let flags = &mut columns[rect.cols.start as usize..];
                flags.iter_mut().zip(row).for_each(|(flag, x)| *flag |= u8::from(!x.to_f64().is_finite()));
            }
        }
        let columns = world.all_reduce(&columns, u8::max)?;
        Ok(Some(self.exponents.with_exceptional(&columns)))
    }

    /// The first element of C that is finite although an infinity or NaN of A or B reaches it: a product with
    /// either is never finite, nor is a sum.
    fn finite_among_exceptional(&self, world: &World) -> Result<Option<Place>> {
        let n = self.exponents.exceptional_columns.len();
        let mut first = u64::MAX;
        for (rect, elements) in self.parts.c.iter().filter(|(rect, _)| !rect.is_empty()) {
            let (left, width) = (rect.cols.start as usize, rect.cols.len() as usize);
            let columns = &self.exponents.reached_columns[left..][..width];
            let any = columns.contains(&true);
            for (row, i) in elements.chunks_exact(width).zip(rect.rows.start as usize..) {
                let whole = self.exponents.exceptional_row(i);
                if !whole && !any {
                    continue;
                }
                let finite = |(x, reached): (&T, &bool)| (whole || *reached) && x.to_f64().is_finite();
                if let Some(at) = row.iter().zip(columns).position(finite) {
                    first = first.min((i * n + left + at) as u64);
                    break;
                }
            }
        }
        let first = world.all_reduce(&[first], u64::min)?[0];
        Ok((first < u64::MAX).then(|| ((first as usize) / n, (first as usize) % n)))
    }

    /// For each of these rows, the first column without infinities in B in which C or the initial C has one;
    /// otherwise a column beyond the last.
    fn first_exceptional(&self, rows: &[usize], world: &World) -> Result<Vec<u64>> {
        let mut first = vec![u64::MAX; rows.len()];
        for (rect, elements) in self.parts.c.iter().chain(self.parts.initial.iter().flatten()) {
            for (i, first) in rows.iter().zip(&mut first) {
                if !(rect.rows.start..rect.rows.end).contains(&(*i as u64)) {
                    continue;
                }
                let width = rect.cols.len() as usize;
                let row = &elements[(*i - rect.rows.start as usize) * width..][..width];
                let columns = &self.exponents.exceptional_columns[rect.cols.start as usize..];
                let at = row.iter().zip(columns).position(|(v, column)| !column && !v.to_f64().is_finite());
                *first = at.map_or(*first, |at| (*first).min(rect.cols.start + at as u64));
            }
        }
        world.all_reduce(&first, u64::min)
    }

    /// The first wrong element of the first row that differs by more than rounding explains and is wrong.
    fn rows(&mut self, exceptional: &[bool], world: &World) -> Result<Option<Wrong>> {
        for i in (0..exceptional.len()).filter(|i| !exceptional[*i]) {
            let margin = self.margin(i);
            let differences =
                self.seen[i].iter().zip(&self.wanted[i]).take(LANES).map(|(s, w)| (s - w).abs());
            if differences.clone().any(|difference| difference > margin || difference.is_nan()) {
                let found = self.row(i, world)?;
                if found.is_some() {
                    return Ok(found);
                }
                self.false_alarms += 1;
            }
        }
        Ok(None)
    }

    /// The largest permitted difference of the two sums of row i. Errors of random sign add up like the norm
    /// of the row of |A| |B|, which is at most sqrt(sum * largest).
    fn margin(&self, i: usize) -> f64 {
        let [k, n] = [self.parts.shape.k, self.parts.shape.n].map(|size| size as f64);
        let (sum, largest, roundings) = (self.wanted[i][SIZE], self.wanted[i][LARGEST], self.roundings());
        let usual = if self.false_alarms < FALSE_ALARMS { 4.0 * roundings.sqrt() } else { 2.0 * roundings };
        let rounding = usual * T::EPSILON * sum.sqrt() * largest.sqrt();
        rounding + (k + 2.0 * n) * f64::EPSILON * sum + self.underflow(i) * self.weights
    }

    /// Number of roundings of an element: each product and each sum, and the scaling.
    fn roundings(&self) -> f64 {
        let scaled = self.parts.scaling.alpha.to_f64() != 1.0 || self.parts.initial.is_some();
        self.parts.shape.k as f64 + if scaled { 4.0 } else { 1.0 }
    }

    /// The largest error of one scaled element of row i that underflow of products can cause: numbers below
    /// [`Element::TINY`] are rounded to multiples of the smallest one. (A library that sets them to 0 instead
    /// is not taken as right.)
    fn underflow(&self, i: usize) -> f64 {
        let alpha = self.parts.scaling.alpha.to_f64().abs();
        let tiny = T::TINY * T::EPSILON * if alpha.is_finite() { alpha.max(1.0) } else { 1.0 };
        2.0 * self.roundings() * (self.exponents.scale_of_c(i).of(tiny) + f64::MIN_POSITIVE)
    }

    /// Recomputes a row: all ranks receive its row of A, and each multiplies its part of B. O(k n / p) on
    /// each rank.
    fn row(&self, i: usize, world: &World) -> Result<Option<Wrong>> {
        let (k, n) = (self.parts.shape.k as usize, self.parts.shape.n as usize);
        let row = elements_at(&self.parts.a, (0..k).map(|l| (i, l)), world)?;
        let mut shares = vec![[0.0; 3]; n];
        for (rect, elements) in self.parts.b.iter().filter(|(rect, _)| !rect.is_empty()) {
            let shares = &mut shares[rect.cols.start as usize..rect.cols.end as usize];
            for (l, right) in (rect.rows.start as usize..).zip(elements.chunks_exact(shares.len())) {
                for (share, y) in shares.iter_mut().zip(right) {
                    self.add(share, i, &row[l..=l], std::slice::from_ref(y));
                }
            }
        }
        let shares = world.all_reduce(&shares, |x, y| self.join(x, y))?;
        let places: Vec<Place> = (0..n).map(|j| (i, j)).collect();
        self.compare(&places, &shares, world)
    }

    /// Recomputes these places.
    fn sample(&self, places: &[Place], world: &World) -> Result<Option<Wrong>> {
        if places.is_empty() {
            return Ok(None);
        }
        self.compare(places, &recompute(self.parts, places, self, world)?, world)
    }

    /// The first of these elements that is wrong, given those of A B.
    fn compare(&self, places: &[Place], product: &[Share], world: &World) -> Result<Option<Wrong>> {
        let at = |blocks| elements_at(blocks, places.iter().copied(), world);
        let seen = at(&self.parts.c)?;
        let before = self.parts.initial.as_ref().map(at).transpose()?;
        let [alpha, beta] = self.parts.scaling.scalars().map(Element::to_f64);
        let rounding = self.roundings() * (T::EPSILON + f64::EPSILON);
        // Sums in another order may reach it a little earlier.
        let largest = T::LARGEST * (1.0 - (4.0 * rounding).min(0.5));
        for (at, place) in places.iter().enumerate() {
            let (i, mut exact) = (place.0, Exact::from(product[at]));
            let (unscaled, scale) = (self.exponents.scale_of_product(i), self.exponents.scale_of_c(i));
            let mut overflow = exact.overflow(|sum| unscaled.back(sum) >= largest);
            if alpha.is_finite() {
                exact.times(self.exponents.factor_of_product(i));
                overflow = overflow.times(alpha);
            } else {
                exact.times_exceptional(alpha, rounding * exact.size() + self.underflow(i), overflow);
                overflow = Overflow::default();
            }
            match before.as_ref().map(|before| before[at].to_f64()) {
                Some(x) if x.is_finite() && beta.is_finite() => {
                    let scaled = self.exponents.scale_of_initial(i).of(x);
                    exact.add(scaled * self.exponents.factor_of_initial(i));
                }
                Some(x) => exact.add_exceptional(x * beta),
                None => {}
            }
            overflow = overflow.or(exact.overflow(|sum| scale.back(sum) >= largest));
            let seen = seen[at].to_f64();
            let margin = rounding * exact.size() + self.underflow(i);
            if !exact.allows(seen, scale.of(seen), margin, overflow) {
                let wanted = exact.value(|sum| scale.back(sum));
                return Ok(Some(Wrong { place: *place, seen, wanted }));
            }
        }
        Ok(None)
    }
}

/// This rank's rows of alpha A times the sums of B, scaled, and the exponents with those of the rows. Unless
/// they are known, they are noted on the way: most matrices are read once.
fn products_of_rows<T: Element>(
    parts: &Parts<'_, T>,
    mut exponents: Exponents,
    y: &Projection,
    threads: usize,
    world: &World,
) -> Result<(Exponents, Vec<Sums>)> {
    let m = parts.shape.m as usize;
    if !exponents.has_rows() {
        let mut noted = vec![Noted::NOTHING; m];
        each_piece(&parts.a, &mut noted, threads, &Noting(y.sum_of(|_| Scale::down(0))));
        let notes: Vec<RowNote> = noted.iter().map(|row| row.note).collect();
        exponents = exponents.with_rows_of_a(&notes, world)?;
        if exponents.moderate_rows() {
            let scaled = |(i, row): (usize, &Noted)| {
                let (scale, factor) = (exponents.scale_of_a(i), exponents.factor_of_product(i));
                // Sizes have no sign.
                let of = |t: usize| if t < LANES { scale.times(factor) } else { scale.times(factor.abs()) };
                std::array::from_fn(|t| of(t).of(row.sums[t]))
            };
            let wanted = noted.iter().enumerate().map(scaled).collect();
            return Ok((exponents, wanted));
        }
    }
    let mut wanted = vec![[0.0; LANES + 2]; m];
    let of_a = |i: usize| exponents.scale_of_a(i).times(exponents.factor_of_product(i));
    each_piece(&parts.a, &mut wanted, threads, &y.sum_of(of_a));
    Ok((exponents, wanted))
}

/// Sums of scaled products in double precision.
impl<T: Element> Recipe<T> for Check<'_, T> {
    type Share = Share;

    fn nothing(&self) -> Share {
        [0.0; 3]
    }

    fn add(&self, share: &mut Share, i: usize, left: &[T], right: &[T]) {
        let (of_a, of_b): (Scale, Scale) = (self.exponents.scale_of_a(i), self.exponents.scale_of_b());
        for (x, y) in left.iter().zip(right).map(|(x, y)| (x.to_f64(), y.to_f64())) {
            add_product(share, of_a.of(x) * of_b.of(y), x, y);
        }
    }

    fn join(&self, x: Share, y: Share) -> Share {
        std::array::from_fn(|t| x[t] + y[t])
    }
}

// Positions of infinities and NaN, and the powers of two that scale finite numbers to about 1.

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
    pub(crate) reached_columns: Vec<bool>,
    /// The same and columns of C that overflow: random vectors leave these out.
    pub(crate) exceptional_columns: Vec<bool>,
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
    pub(crate) fn of<T: Element>(parts: &Parts<'_, T>, world: &World) -> Result<Self> {
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
    pub(crate) fn with_rows(self, of_a: &[RowNote], of_initial: &[i32], world: &World) -> Result<Self> {
        let rows: Vec<[i32; 3]> =
            of_a.iter().zip(of_initial).map(|(a, initial)| [a[0], a[1], *initial]).collect();
        let greater = |x: [i32; 3], y: [i32; 3]| std::array::from_fn(|i| x[i].max(y[i]));
        let rows = world.all_reduce(&rows, greater)?.into_iter();
        let rows = rows.map(|[of_a, flag, of_initial]| Row { of_a, of_initial, exceptional: flag == 1 });
        Ok(Self { rows: rows.collect(), ..self })
    }

    /// The same with the rows of A, where there is no initial C.
    pub(crate) fn with_rows_of_a(self, of_a: &[RowNote], world: &World) -> Result<Self> {
        self.with_rows(of_a, &vec![NO_INITIAL; of_a.len()], world)
    }

    /// True if the rows of A are known.
    pub(crate) fn has_rows(&self) -> bool {
        !self.rows.is_empty()
    }

    /// True if sums of products with A neither overflow nor underflow without scaling: each of its rows is
    /// zero or within 2^±100, and finite.
    pub(crate) fn moderate_rows(&self) -> bool {
        let moderate = |row: &Row| !row.exceptional && (row.of_a == NONE || row.of_a.abs() <= MODERATE);
        self.rows.iter().all(moderate)
    }

    /// The same with more exceptional columns, those with a flag of 1.
    pub(crate) fn with_exceptional(&self, flags: &[u8]) -> Self {
        let more = self.exceptional_columns.iter().zip(flags).map(|(known, flag)| *known || *flag == 1);
        Self { exceptional_columns: more.collect(), ..self.clone() }
    }

    /// The factor of column j of C that makes all columns about equally large: a power of two, 1 at least.
    pub(crate) fn weight_of_column(&self, j: usize) -> f64 {
        Scale::down(self.columns[j]).of(1.0)
    }

    /// True if sums say nothing about row i of C, because infinities or NaN reach all of it.
    pub(crate) fn exceptional_row(&self, i: usize) -> bool {
        self.exceptional_scalars || self.rows[i].exceptional
    }

    /// Scales B to 2^HEADROOM.
    pub(crate) fn scale_of_b(&self) -> Scale {
        Scale::down(self.of_b - HEADROOM)
    }

    /// Scales row i of A.
    pub(crate) fn scale_of_a(&self, i: usize) -> Scale {
        Scale::down(self.rows[i].of_a)
    }

    /// Scales row i of the initial C.
    pub(crate) fn scale_of_initial(&self, i: usize) -> Scale {
        Scale::down(self.rows[i].of_initial.max(-1500) - HEADROOM)
    }

    /// Scales row i of A B.
    pub(crate) fn scale_of_product(&self, i: usize) -> Scale {
        Scale::down((self.rows[i].of_a + self.of_b).max(-1500) - HEADROOM)
    }

    /// Scales row i of C.
    pub(crate) fn scale_of_c(&self, i: usize) -> Scale {
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
    pub(crate) fn factor_of_product(&self, i: usize) -> f64 {
        let [product, _, c] = self.exponents_of_c(i);
        normalise(self.alpha, product - c)
    }

    /// Beta, from the scale of row i of the initial C to the scale of C.
    pub(crate) fn factor_of_initial(&self, i: usize) -> f64 {
        let [_, initial, c] = self.exponents_of_c(i);
        normalise(self.beta, initial - c)
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
fn normalise(scalar: f64, exponent_of_rest: i32) -> f64 {
    let own = Scale::down(exponent(&[scalar]).unwrap_or(0)).of(scalar);
    own * Scale::down((-exponent_of_rest).clamp(-2000, 2000)).of(1.0)
}

// Rows of a matrix times the random vectors of Freivalds' check: its hot loop.

/// Number of random vectors, and of elements recomputed in each row and column that infinities or NaN reach.
pub(super) const LANES: usize = 16;

/// Of a row of a matrix of numbers: the sums with each random vector, the sum of the absolute values, and an
/// upper bound of the largest of them.
pub(super) type Sums = [f64; LANES + 2];
pub(super) const SIZE: usize = LANES;
pub(super) const LARGEST: usize = LANES + 1;

/// Partial sums of absolute values, so that they fill a register.
const PARTIAL: usize = 8;

/// Sums of many rows, apart, so that each kind fills registers.
pub(super) struct Projection {
    vectors: Vec<[f64; LANES]>,
    sizes: Vec<f64>,
    largest: Vec<f64>,
}

impl Projection {
    pub(crate) fn of(sums: &[Sums]) -> Self {
        Self {
            vectors: sums.iter().map(|sums| std::array::from_fn(|t| sums[t])).collect(),
            sizes: sums.iter().map(|sums| sums[SIZE]).collect(),
            largest: sums.iter().map(|sums| sums[LARGEST]).collect(),
        }
    }

    /// The pass that multiplies rows by the vectors, where `of` scales a row, and keeps the largest absolute
    /// value.
    pub(crate) fn largest_of<F: Fn(usize) -> Scale>(&self, of: F) -> Project<'_, F, true> {
        Project { projection: self, of }
    }

    /// The same, but with the sum of the largest absolute values.
    pub(crate) fn sum_of<F: Fn(usize) -> Scale>(&self, of: F) -> Project<'_, F, false> {
        Project { projection: self, of }
    }
}

/// A pass over a matrix; see [`Projection`].
pub(super) struct Project<'a, F, const MAX: bool> {
    projection: &'a Projection,
    of: F,
}

impl<T: Element, F: Fn(usize) -> Scale + Sync, const MAX: bool> Pass<T, Sums> for Project<'_, F, MAX> {
    /// Adds the products with each vector to the row's sums, and the same for absolute values. Where the
    /// vectors are 0, the row may hold infinities.
    #[inline(always)]
    fn add(&self, i: usize, from: usize, row: &[T], sums: &mut Sums) {
        let scale = (self.of)(i);
        let Projection { vectors, sizes, largest } = self.projection;
        let greater = |x: f64, y: f64| {
            if !MAX {
                x + y
            } else if x > y {
                x
            } else {
                y
            }
        };
        let (sizes, largest) = (&sizes[from..][..row.len()], &largest[from..][..row.len()]);
        let mut values = [0.0; WIDE];
        let values = &mut values[..row.len()];
        for ((value, x), size) in values.iter_mut().zip(row).zip(sizes) {
            let x = scale.of(x.to_f64());
            *value = if *size == 0.0 { 0.0 } else { x };
        }
        let mut partial = [[0.0; PARTIAL]; 2];
        let ((values8, rest), (sizes8, _), (largest8, _)) =
            (values.as_chunks::<PARTIAL>(), sizes.as_chunks::<PARTIAL>(), largest.as_chunks::<PARTIAL>());
        for ((values, sizes), largest) in values8.iter().zip(sizes8).zip(largest8) {
            for t in 0..PARTIAL {
                partial[0][t] += values[t].abs() * sizes[t];
                partial[1][t] = greater(partial[1][t], values[t].abs() * largest[t]);
            }
        }
        let done = values.len() - rest.len();
        for ((x, size), largest) in rest.iter().zip(&sizes[done..]).zip(&largest[done..]) {
            partial[0][0] += x.abs() * size;
            partial[1][0] = greater(partial[1][0], x.abs() * largest);
        }
        sums[SIZE] += partial[0].iter().sum::<f64>();
        sums[LARGEST] = partial[1].iter().fold(sums[LARGEST], |most, x| greater(most, *x));
        // Two sets of sums: each waits for its last addition while the other adds.
        let mut own = [[0.0; LANES]; 2];
        let vectors = &vectors[from..][..row.len()];
        let ((pairs, rest), (vectors, last)) = (values.as_chunks::<2>(), vectors.as_chunks::<2>());
        for (values, vectors) in pairs.iter().zip(vectors) {
            for half in 0..2 {
                for t in 0..LANES {
                    own[half][t] += values[half] * vectors[half][t];
                }
            }
        }
        for (x, vector) in rest.iter().zip(last) {
            for t in 0..LANES {
                own[0][t] += x * vector[t];
            }
        }
        for (t, sum) in sums[..LANES].iter_mut().enumerate() {
            *sum += own[0][t] + own[1][t];
        }
    }
}

/// A row's sums and its exponent, found in one pass.
#[derive(Debug, Clone, Copy)]
pub(super) struct Noted {
    pub(crate) sums: Sums,
    pub(crate) note: RowNote,
}

impl Noted {
    pub(crate) const NOTHING: Self = Self { sums: [0.0; LANES + 2], note: NO_NOTE };
}

/// A pass that also notes exponents.
pub(super) struct Noting<P>(pub P);

impl<T: Element, P: Pass<T, Sums>> Pass<T, Noted> for Noting<P> {
    #[inline(always)]
    fn add(&self, i: usize, from: usize, row: &[T], found: &mut Noted) {
        self.0.add(i, from, row, &mut found.sums);
        Note.add(i, from, row, &mut found.note);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_multiplied_by_each_vector() {
        let sums = |j: usize| -> Sums { std::array::from_fn(|t| if j == 3 { 0.0 } else { (j * t) as f64 }) };
        let projection = Projection::of(&(0..40).map(sums).collect::<Vec<_>>());
        let mut row: Vec<f64> = (0..35).map(|i| f64::from(i) - 17.0).collect();
        row[1] = f64::INFINITY;
        let mut found = [1.0; LANES + 2];
        projection.largest_of(|_| Scale::down(-1)).add(7, 2, &row, &mut found);
        for (t, found) in found.into_iter().enumerate() {
            let terms = (0..35).filter(|&i| i != 1).map(|i| 2.0 * row[i] * ((i + 2) * t) as f64);
            let wanted = match t {
                LARGEST => terms.map(f64::abs).fold(1.0, f64::max),
                SIZE => 1.0 + terms.map(f64::abs).sum::<f64>(),
                _ => 1.0 + terms.sum::<f64>(),
            };
            // Whole numbers: exact.
            assert_eq!(found, wanted, "{t}");
        }
    }
}
