//! The kernel of a run, chosen once: a semiring for an element type.

use crate::error::{Error, Result};
use crate::geometry::{Rank, Rect, Span};
use crate::kernels::boolean::{or_and, some_pair};
use crate::kernels::team::split_rows;
use crate::kernels::view::check_shapes;
use crate::kernels::{
    Alone, Blas, PackedMemory, PathElement, Real, Semiring, Team, Tropical, View, ViewMut, check_max_plus,
    check_min_plus, paths_product,
};
use crate::matrix::{Element, Matrix, Scaling};
use serde_json::{Value, json};
use std::ops::Range;

/// A semiring for elements of type T: the update of a tile of C, the initial value of C, and the definition
/// that results are checked against. It holds plain functions, so that the choice costs one indirect call per
/// update.
#[derive(Debug, Clone, Copy)]
pub struct Kernel<T> {
    semiring: Semiring,
    zero: T,
    one: T,
    update: Update<T>,
    entry: Entry<T>,
    refused: fn(&[T]) -> Option<usize>,
}

/// One element of a product, from a row and a column.
type Entry<T> = fn(&[T], &[T]) -> T;

/// C := C + A B over a semiring, on one thread.
type UpdateFn<T> = fn(View<T>, View<T>, ViewMut<T>);

/// The same by the threads of a team.
type TeamUpdateFn<T> = fn(View<T>, View<T>, ViewMut<T>, &dyn Team);

/// The function that updates a tile.
#[derive(Debug, Clone, Copy)]
enum Update<T> {
    BuiltIn(TeamUpdateFn<T>),
    /// A loop of the caller's.
    Own(UpdateFn<T>),
    Library(Blas, ByBlas<T>),
    /// By processor: its library, or `None` for the built-in function.
    Each(&'static [Option<Blas>], TeamUpdateFn<T>, ByBlas<T>),
}

/// C := C + A B by a library.
type ByBlas<T> = fn(&Blas, View<T>, View<T>, ViewMut<T>);

impl<T: Real> Kernel<T> {
    /// Sums of products, by [`gemm`](crate::kernels::gemm()).
    pub fn plus_times() -> Self {
        Self {
            semiring: Semiring::PlusTimes,
            zero: T::ZERO,
            one: T::from_f64(1.0),
            update: Update::BuiltIn(T::gemm_together),
            entry: sum::<T>,
            refused: |_| None,
        }
    }

    /// Sums of products, by a library.
    pub fn by_blas(blas: Blas) -> Self {
        Self { update: Update::Library(blas, T::by_blas), ..Self::plus_times() }
    }

    /// Sums of products by the kernel of each processor, by rank. The table is kept until the process ends.
    ///
    /// # Panics
    /// If no kernel is given, or one of another semiring.
    pub fn by_processor(kernels: &[Self]) -> Self {
        assert!(kernels.iter().all(|kernel| kernel.semiring == Semiring::PlusTimes), "kernels of plus-times");
        let library = |kernel: &Self| match kernel.update {
            Update::Library(blas, _) => Some(blas),
            _ => None,
        };
        if kernels.iter().all(|kernel| kernel.name() == kernels[0].name()) {
            return kernels[0];
        }
        let libraries: Vec<Option<Blas>> = kernels.iter().map(library).collect();
        Self { update: Update::Each(libraries.leak(), T::gemm_together, T::by_blas), ..Self::plus_times() }
    }

    /// The kernel of one of the three semirings of real numbers.
    ///
    /// # Errors
    /// Or-and, which takes truth values ([`Kernel::or_and`]): exit code 2.
    pub fn over(semiring: Semiring) -> Result<Self> {
        if semiring == Semiring::PlusTimes { Ok(Self::plus_times()) } else { Self::tropical(semiring) }
    }
}

impl<T: Element + Tropical> Kernel<T> {
    /// The largest of the sums, by [`max_plus`](crate::kernels::max_plus).
    pub fn max_plus() -> Self {
        Self::of(Semiring::MaxPlus, T::max_plus_together, best::<T, false>, |x| check_max_plus(x).err())
    }

    /// The smallest of the sums, by [`min_plus`](crate::kernels::min_plus).
    pub fn min_plus() -> Self {
        Self::of(Semiring::MinPlus, T::min_plus_together, best::<T, true>, |x| check_min_plus(x).err())
    }

    fn of(
        semiring: Semiring,
        update: TeamUpdateFn<T>,
        entry: Entry<T>,
        refused: fn(&[T]) -> Option<usize>,
    ) -> Self {
        let update = Update::BuiltIn(update);
        Self { semiring, zero: semiring.zero(), one: semiring.one(), update, entry, refused }
    }

    /// The kernel of max-plus or min-plus, over real numbers or integers.
    ///
    /// # Errors
    /// The other two semirings: exit code 2.
    pub fn tropical(semiring: Semiring) -> Result<Self> {
        let (takes, remedy) = match semiring {
            Semiring::MaxPlus => return Ok(Self::max_plus()),
            Semiring::MinPlus => return Ok(Self::min_plus()),
            Semiring::OrAnd => ("bool or u8", "save the matrix as numpy.bool_ or numpy.uint8"),
            Semiring::PlusTimes => ("f32 or f64", "save the matrix as numpy.float64"),
        };
        Err(Error::input("`semiring`", format!("{semiring} takes {takes}, not {}", T::NAME), remedy))
    }
}

impl<T: Tropical> Kernel<PathElement<T>>
where
    PathElement<T>: Element,
{
    /// The best paths over max-plus or min-plus, each with its last step.
    ///
    /// # Errors
    /// The other two semirings, whose paths have no length: exit code 2.
    pub fn paths(semiring: Semiring) -> Result<Self> {
        let of = |zero, update: TeamUpdateFn<PathElement<T>>, entry: Entry<PathElement<T>>| Self {
            semiring,
            zero: PathElement { length: zero, ..PathElement::empty() },
            one: PathElement::empty(),
            update: Update::BuiltIn(update),
            entry,
            refused: |_| None,
        };
        match semiring {
            Semiring::MaxPlus => Ok(of(T::LOWEST, paths_product::<T, false>, best_path::<T, false>)),
            Semiring::MinPlus => Ok(of(T::HIGHEST, paths_product::<T, true>, best_path::<T, true>)),
            other => Err(Error::input(
                "`predecessors`",
                format!("{other} has no best paths"),
                "use `semiring = min-plus` or `semiring = max-plus`",
            )),
        }
    }
}

impl Kernel<u8> {
    /// Or of ands, on packed bits by [`BitMatrix`](super::BitMatrix): any byte but 0 in a factor is true; the
    /// product holds 0 and 1.
    pub fn or_and() -> Self {
        Self {
            semiring: Semiring::OrAnd,
            zero: 0,
            one: 1,
            update: Update::BuiltIn(or_and),
            entry: some_pair,
            refused: |_| None,
        }
    }
}

impl<T: Element> Kernel<T> {
    /// The semiring.
    pub fn semiring(&self) -> Semiring {
        self.semiring
    }

    /// The name in models and caches: `"gemm-f64"`, `"gemm-f64-openblas"`, `"gemm-f64-mixed"` where
    /// processors differ, `"max-plus-f32"`, …, `"or-and"`.
    pub fn name(&self) -> String {
        match self.semiring {
            Semiring::PlusTimes => match self.update {
                Update::BuiltIn(_) | Update::Own(_) => format!("gemm-{}", T::NAME),
                Update::Library(blas, _) => format!("gemm-{}-{}", T::NAME, blas.name()),
                Update::Each(..) => format!("gemm-{}-mixed", T::NAME),
            },
            Semiring::OrAnd => "or-and".into(),
            tropical => format!("{tropical}-{}", T::NAME),
        }
    }

    /// The kernel of one processor.
    pub fn on(&self, rank: Rank) -> Self {
        let update = match self.update {
            Update::Each(libraries, built_in, by_blas) => match libraries.get(rank.0) {
                Some(Some(blas)) => Update::Library(*blas, by_blas),
                _ => Update::BuiltIn(built_in),
            },
            one => one,
        };
        Self { update, ..*self }
    }

    /// True if code from outside computes on any processor.
    pub fn by_library(&self) -> bool {
        matches!(self.update, Update::Library(..) | Update::Each(..))
    }

    /// True if the caller's own loop computes ([`Kernel::with_update`]).
    pub(crate) fn is_own(&self) -> bool {
        matches!(self.update, Update::Own(_))
    }

    /// The implementation, for `run.json`: the kernel's name, and for a library its name, file and version;
    /// where processors differ, their kernels.
    pub fn about(&self) -> Value {
        if let Update::Each(libraries, ..) = self.update {
            let kernels: Vec<Value> = (0..libraries.len()).map(|at| self.on(Rank(at)).about()).collect();
            return json!({"name": self.name(), "library": null, "by_processor": kernels});
        }
        let library = match self.update {
            Update::BuiltIn(_) | Update::Own(_) | Update::Each(..) => None,
            Update::Library(blas, _) => {
                Some(json!({"name": blas.name(), "file": blas.file(), "version": blas.version()}))
            }
        };
        json!({"name": self.name(), "library": library})
    }

    /// The same kernel with another loop, which adds the product of A and B to C: one of your own, or one with
    /// a defect that a test must find.
    #[must_use]
    pub fn with_update(self, update: fn(View<T>, View<T>, ViewMut<T>)) -> Self {
        Self { update: Update::Own(update), ..self }
    }

    /// The initial value of C: the neutral element of the semiring's sum.
    pub fn zero(&self) -> T {
        self.zero
    }

    /// The neutral element of the semiring's product.
    pub fn one(&self) -> T {
        self.one
    }

    /// C := C + A B over the semiring, for a tile of C, on one thread. Where processors differ, by the
    /// built-in function.
    ///
    /// # Panics
    /// If the shapes do not fit: A is m x k, B k x n, C m x n.
    pub fn update(&self, a: View<T>, b: View<T>, c: ViewMut<T>) {
        self.update_together(a, b, c, &Alone);
    }

    /// The same by the threads of a team: the same bits as on one thread, unless a library computes. The threads of
    /// a built-in kernel share the packed B; libraries and loops of the caller's are called for rows of C by each
    /// thread.
    ///
    /// # Panics
    /// As [`Kernel::update`], on this thread, also if another one of the team panics.
    pub fn update_together(&self, a: View<T>, b: View<T>, c: ViewMut<T>, team: &dyn Team) {
        let rows_of = |rows: Range<usize>| a.tile(rows.start, 0, rows.len(), a.cols());
        match self.update {
            Update::BuiltIn(update) | Update::Each(_, update, _) => update(a, b, c, team),
            Update::Own(update) if team.threads() == 1 => update(a, b, c),
            Update::Library(blas, update) if team.threads() == 1 => update(&blas, a, b, c),
            Update::Own(update) => {
                check_shapes(&a, &b, &c);
                split_rows(c, team, |rows, c| update(rows_of(rows), b, c));
            }
            Update::Library(blas, update) => {
                check_shapes(&a, &b, &c);
                split_rows(c, team, |rows, c| update(&blas, rows_of(rows), b, c));
            }
        }
    }

    /// Makes room for what the calling thread packs in an update of an m x n tile by k inner indices with a team, so that
    /// the first one takes no longer than those that follow. Nothing is packed by libraries and own loops.
    pub fn reserve(&self, [m, k, n]: [usize; 3], threads: usize) {
        let built_in = matches!(self.update, Update::BuiltIn(_) | Update::Each(..));
        // Numbers of four and eight bytes: those that are packed.
        if built_in && [4, 8].contains(&size_of::<T>()) {
            PackedMemory::reserve_for(size_of::<T>(), [m, k, n], threads);
        }
    }

    /// One element of a product by definition, from a row of A and a column of B.
    pub fn entry(&self, row: &[T], column: &[T]) -> T {
        (self.entry)(row, column)
    }

    /// Rejects a matrix with an element that the semiring does not accept: NaN, and +infinity over max-plus
    /// or -infinity over min-plus. `place` names the matrix in the error, usually by its file.
    ///
    /// # Errors
    /// The first such element with its row and column: exit code 2.
    pub(crate) fn check(&self, matrix: &Matrix<T>, place: &str) -> Result<()> {
        let whole = Rect::new(Span::new(0, matrix.rows() as u64), Span::new(0, matrix.cols() as u64));
        self.check_tile(whole, matrix.as_slice(), place)
    }

    /// [`Kernel::check`] of a rectangle of a matrix, row by row.
    ///
    /// # Errors
    /// As [`Kernel::check`].
    pub fn check_tile(&self, rect: Rect, elements: &[T], place: &str) -> Result<()> {
        let Some(at) = (self.refused)(elements) else { return Ok(()) };
        let (down, right) = (at as u64 / rect.cols.len(), at as u64 % rect.cols.len());
        let (i, j) = (rect.rows.start + down, rect.cols.start + right);
        let absent = if self.semiring == Semiring::MaxPlus { "-inf" } else { "inf" };
        Err(Error::input(
            place,
            format!(
                "element ({i}, {j}), counted from 0, is {}, which {} does not accept",
                elements[at], self.semiring
            ),
            format!("use numbers, and {absent} for absent entries"),
        ))
    }
}

/// The sum of the pairs' products, in double precision.
fn sum<T: Element>(row: &[T], column: &[T]) -> T {
    T::from_f64(row.iter().zip(column).map(|(x, y)| x.to_f64() * y.to_f64()).sum())
}

/// The best of the pairs' sums.
fn best<T: Tropical, const MIN: bool>(row: &[T], column: &[T]) -> T {
    // Independent of each other, so that they are compared side by side.
    let mut lanes = [T::zero::<MIN>(); 16];
    let ((rows, row), (columns, column)) = (row.as_chunks::<16>(), column.as_chunks::<16>());
    for (xs, ys) in rows.iter().zip(columns) {
        for (lane, (x, &y)) in lanes.iter_mut().zip(xs.iter().zip(ys)) {
            *lane = x.times::<MIN>(y).over::<MIN>(*lane);
        }
    }
    let rest = row.iter().zip(column).map(|(x, &y)| x.times::<MIN>(y));
    rest.chain(lanes).fold(T::zero::<MIN>(), |best, x| x.over::<MIN>(best))
}

/// The best of the pairs' paths.
fn best_path<T: Tropical, const MIN: bool>(
    row: &[PathElement<T>],
    column: &[PathElement<T>],
) -> PathElement<T> {
    let paths = row.iter().zip(column).map(|(x, &y)| x.times::<MIN>(y));
    paths.fold(PathElement::absent::<MIN>(), |best, path| path.over::<MIN>(best))
}

// From a product to alpha A B + beta C0, element by element.

impl<T: Element> Kernel<T> {
    /// Turns elements of A B into elements of alpha A B + beta C0, given those of C0 at the same places, if
    /// there is a C0. Each operation of the formula rounds once. O(length).
    ///
    /// # Panics
    /// If `initial` is shorter than `product` and beta is not the semiring's zero.
    pub fn finish(&self, scaling: Scaling<T>, product: &mut [T], initial: Option<&[T]>) {
        let Scaling { alpha, beta } = scaling;
        let (zero, one) = (self.zero(), self.one());
        if alpha == zero {
            product.fill(zero);
        }
        let Some(initial) = initial.filter(|_| beta != zero) else {
            if alpha != zero && alpha != one {
                product.iter_mut().for_each(|x| *x = self.entry(&[alpha], &[*x]));
            }
            return;
        };
        let initial = &initial[..product.len()];
        if self.semiring() == Semiring::PlusTimes {
            let (alpha, beta) = (alpha.to_f64(), beta.to_f64());
            for (x, before) in product.iter_mut().zip(initial) {
                *x = T::from_f64(alpha * x.to_f64() + beta * before.to_f64());
            }
        } else {
            for (x, before) in product.iter_mut().zip(initial) {
                *x = self.entry(&[alpha, beta], &[*x, *before]);
            }
        }
    }

    /// Rejects scalars that the semiring does not accept, as [`Kernel::check`] does.
    ///
    /// # Errors
    /// NaN over max-plus and min-plus, and infinities of the wrong sign: exit code 2.
    pub fn check_scaling(&self, scaling: &Scaling<T>) -> Result<()> {
        for (name, scalar) in [("alpha", scaling.alpha), ("beta", scaling.beta)] {
            self.check(&Matrix::new(1, 1, vec![scalar]), name)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tiles of awkward sizes with wide strides: every element inside matches the definition, every one
    /// outside is untouched.
    fn check<T: Element>(kernel: Kernel<T>, value: impl Fn(usize) -> T, same: impl Fn(T, T) -> bool) {
        for (m, k, n) in [(1, 1, 1), (2, 3, 5), (17, 13, 19), (3, 70, 129), (5, 0, 4), (0, 3, 3)] {
            let (lda, ldb, ldc) = (k + 3, n + 1, n + 2);
            let a: Vec<T> = (0..m * lda).map(&value).collect();
            let b: Vec<T> = (0..k * ldb).map(|i| value(i * 5 + 3)).collect();
            let mut c = vec![kernel.zero(); m * ldc];
            let views = (View::new(&a, m, k, lda), View::new(&b, k, n, ldb));
            kernel.update(views.0, views.1, ViewMut::new(&mut c, m, n, ldc));
            for (i, j) in (0..m * ldc).map(|at| (at / ldc, at % ldc)) {
                let column: Vec<T> = (0..k).map(|p| b[p * ldb + j.min(n)]).collect();
                let wanted = if j < n { kernel.entry(&a[i * lda..][..k], &column) } else { kernel.zero() };
                assert!(same(c[i * ldc + j], wanted), "{} at ({i}, {j}) of {m} x {k} x {n}", kernel.name());
            }
        }
    }

    #[test]
    fn updates_agree_with_the_definition() {
        // Small whole numbers are exact; an absent element here and there.
        let number = |i: usize| ((i * i) % 11) as f64 - 5.0;
        for semiring in [Semiring::PlusTimes, Semiring::MaxPlus, Semiring::MinPlus] {
            let kernel = Kernel::<f64>::over(semiring).unwrap();
            let zero = kernel.zero();
            check(kernel, |i| if i % 5 == 0 { zero } else { number(i) }, |x, y| x == y);
            check(Kernel::<f32>::over(semiring).unwrap(), |i| number(i) as f32, |x, y| x == y);
        }
        check(Kernel::or_and(), |i| if i % 7 == 0 { i as u8 | 1 } else { 0 }, |x, y| x == y);
        check(Kernel::or_and(), |i| u8::from(i % 7 != 0), |x, y| x == y);
    }

    #[test]
    fn names_and_refusals() {
        assert_eq!(Kernel::<f32>::plus_times().name(), "gemm-f32");
        let same = Kernel::by_processor(&[Kernel::<f64>::plus_times(); 3]);
        assert_eq!((same.name(), same.on(Rank(1)).name()), ("gemm-f64".into(), "gemm-f64".into()));
        assert_eq!(Kernel::<f64>::min_plus().name(), "min-plus-f64");
        assert_eq!(Kernel::or_and().name(), "or-and");
        assert_eq!(Kernel::<f64>::over(Semiring::OrAnd).unwrap_err().exit_code(), 2);
        let matrix = Matrix::new(2, 2, vec![0.0, 1.0, f64::NAN, f64::NEG_INFINITY]);
        let error = Kernel::max_plus().check(&matrix, "a.npy").unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert_eq!(
            error.to_string(),
            "a.npy: element (1, 0), counted from 0, is NaN, which max-plus does not accept \
             (use numbers, and -inf for absent entries)"
        );
        assert!(Kernel::plus_times().check(&matrix, "a.npy").is_ok());
    }

    fn finished<T: Element>(kernel: Kernel<T>, [alpha, beta]: [T; 2], p: T, c0: Option<T>) -> T {
        let mut product = [p];
        kernel.finish(Scaling { alpha, beta }, &mut product, c0.as_ref().map(std::slice::from_ref));
        product[0]
    }

    #[test]
    fn each_semiring_scales_by_its_own_product_and_adds_by_its_own_sum() {
        let plus = Kernel::<f64>::plus_times();
        assert_eq!(finished(plus, [2.0, -3.0], 5.0, Some(7.0)), -11.0);
        assert_eq!(finished(plus, [2.0, 9.0], 5.0, None), 10.0);
        assert_eq!(finished(Kernel::<f32>::max_plus(), [2.0, -3.0], 5.0, Some(7.0)), 7.0);
        assert_eq!(finished(Kernel::<f64>::min_plus(), [2.0, -3.0], 5.0, Some(7.0)), 4.0);
        assert_eq!(finished(Kernel::or_and(), [1, 1], 0, Some(1)), 1);
        assert_eq!(finished(Kernel::or_and(), [0, 1], 1, Some(0)), 0);
    }

    /// The rule of BLAS: if a scalar is zero, the matrix that it scales is not read.
    #[test]
    fn what_is_multiplied_by_zero_is_not_read() {
        let plus = Kernel::<f64>::plus_times();
        assert_eq!(finished(plus, [0.0, 2.0], f64::NAN, Some(7.0)), 14.0);
        assert_eq!(finished(plus, [2.0, 0.0], 5.0, Some(f64::NAN)), 10.0);
        assert_eq!(finished(plus, [0.0, 0.0], f64::NAN, Some(f64::INFINITY)), 0.0);
        let (never, first) = (f64::NEG_INFINITY, Kernel::<f64>::max_plus());
        assert_eq!(finished(first, [never, 1.0], 5.0, Some(2.0)), 3.0);
        assert_eq!(finished(first, [1.0, never], 5.0, Some(2.0)), 6.0);
    }

    #[test]
    fn scalars_outside_the_semiring_are_refused() {
        let scaling = Scaling { alpha: f64::INFINITY, beta: 0.0 };
        assert!(Kernel::min_plus().check_scaling(&scaling).is_ok());
        let refused = Kernel::max_plus().check_scaling(&scaling).unwrap_err().to_string();
        assert!(refused.starts_with("alpha: element (0, 0)"), "{refused}");
    }
}
