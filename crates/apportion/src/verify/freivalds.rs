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

use super::exact::{Exact, Overflow, Share, add_product};
use super::exponents::{Exponents, RowNote};
use super::parts::{Parts, Place, each_piece, elements_at, threads};
use super::projection::{LANES, LARGEST, Noted, Noting, Projection, SIZE, Sums};
use super::recompute::{Recipe, recompute};
use super::samples::DRAWS;
use super::scale::Scale;
use super::{Verified, wrong};
use crate::error::Result;
use crate::matrix::Element;
use crate::random::Random;
use crate::run::World;

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
            if !exact.allows((seen, scale.of(seen)), margin, overflow) {
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
            add_product(share, of_a.of(x) * of_b.of(y), (x, y));
        }
    }

    fn join(&self, x: Share, y: Share) -> Share {
        std::array::from_fn(|t| x[t] + y[t])
    }
}
