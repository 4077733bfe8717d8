//! From a product to alpha A B + beta C0, element by element.

use crate::error::Result;
use crate::kernels::Semiring;
use crate::kernels::kernel::Kernel;
use crate::matrix::{Element, Matrix, Scaling};

impl<T: Element> Kernel<T> {
    /// Turns elements of A B into elements of alpha A B + beta C0, given those of C0 at the same places, if
    /// there is a C0. Each operation of the formula rounds once. O(length).
    ///
    /// # Panics
    /// If `initial` is shorter than `product` and beta is not the semiring's zero.
    pub fn finish(&self, [alpha, beta]: [T; 2], product: &mut [T], initial: Option<&[T]>) {
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

    fn finished<T: Element>(kernel: Kernel<T>, [alpha, beta]: [T; 2], p: T, c0: Option<T>) -> T {
        let mut product = [p];
        kernel.finish([alpha, beta], &mut product, c0.as_ref().map(std::slice::from_ref));
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
