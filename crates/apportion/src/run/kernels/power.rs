//! Powers of a matrix over a semiring.

#![allow(unsafe_code)]

use super::{
    BitMatrix, Semiring, Tropical, View, ViewMut, check_max_plus, check_min_plus, max_plus, min_plus,
};
use crate::error::{Error, Result};

/// An element type that all four semirings take: `f64`, `f32`, `i64`, `i32`.
pub trait Number: Tropical {
    /// The usual product of two n x n matrices, row by row; integers wrap.
    fn plus_times(a: &[Self], b: &[Self], n: usize) -> Vec<Self>;
}

macro_rules! float {
    ($float:ident) => {
        impl Number for $float {
            fn plus_times(a: &[Self], b: &[Self], n: usize) -> Vec<Self> {
                assert!(a.len() == n * n && b.len() == n * n, "both are {n} x {n}");
                let (mut c, stride, one_thread) = (vec![0.0; n * n], n as isize, gemm::Parallelism::None);
                let (to, a, b) = (c.as_mut_ptr(), a.as_ptr(), b.as_ptr());
                // SAFETY: all three hold n x n elements with rows n apart, and C overlaps neither of the others.
                unsafe {
                    gemm::gemm(
                        n, n, n, to, 1, stride, false, a, 1, stride, b, 1, stride, 0.0, 1.0, false, false,
                        false, one_thread,
                    );
                }
                c
            }
        }
    };
}

macro_rules! integer {
    ($integer:ident) => {
        impl Number for $integer {
            fn plus_times(a: &[Self], b: &[Self], n: usize) -> Vec<Self> {
                let mut c: Vec<Self> = vec![0; n * n];
                for (c, a) in c.chunks_exact_mut(n.max(1)).zip(a.chunks_exact(n.max(1))) {
                    for (x, b) in a.iter().zip(b.chunks_exact(n)) {
                        c.iter_mut().zip(b).for_each(|(z, y)| *z = z.wrapping_add(x.wrapping_mul(*y)));
                    }
                }
                c
            }
        }
    };
}

float!(f64);
float!(f32);
integer!(i64);
integer!(i32);

/// The `exponent`-th power of a square matrix, row by row, by repeated squaring: at most 2 log2(exponent)
/// products. The power 0 is the identity: ones of the semiring on the diagonal, its zeros elsewhere.
///
/// Over or-and, any element but 0 is true, and the result holds 0 and 1.
///
/// # Errors
/// If the matrix is not square, or has an element that the semiring does not take.
///
/// # Example
/// ```
/// use apportion::kernels::{Semiring, View, power};
/// let a = [1.0, 1.0, 1.0, 0.0];
/// assert_eq!(power(View::dense(&a, 2, 2), 10, Semiring::PlusTimes).unwrap(), [89.0, 55.0, 55.0, 34.0]);
/// ```
pub fn power<T: Number>(a: View<T>, mut exponent: u64, semiring: Semiring) -> Result<Vec<T>> {
    let mut square = checked(a, semiring)?;
    let n = a.rows();
    let mut result: Option<Vec<T>> = None;
    if semiring == Semiring::OrAnd {
        return Ok(from_bits(&to_bits(a).power(exponent)));
    }
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = Some(match result {
                None => square.clone(),
                Some(so_far) => times(&so_far, &square, n, semiring),
            });
        }
        exponent >>= 1;
        if exponent > 0 {
            square = times(&square, &square, n, semiring);
        }
    }
    Ok(result.unwrap_or_else(|| {
        let mut identity = vec![semiring.zero(); n * n];
        identity.iter_mut().step_by(n + 1).for_each(|x| *x = semiring.one());
        identity
    }))
}

/// The product of two n x n matrices over plus-times, max-plus or min-plus.
fn times<T: Number>(a: &[T], b: &[T], n: usize, semiring: Semiring) -> Vec<T> {
    let mut c = vec![semiring.zero(); n * n];
    let (a_view, b_view) = (View::dense(a, n, n), View::dense(b, n, n));
    match semiring {
        Semiring::PlusTimes => return T::plus_times(a, b, n),
        Semiring::MaxPlus => max_plus(a_view, b_view, ViewMut::dense(&mut c, n, n)),
        Semiring::MinPlus => min_plus(a_view, b_view, ViewMut::dense(&mut c, n, n)),
        Semiring::OrAnd => unreachable!("bits have a product of their own"),
    }
    c
}

/// The elements row by row, if the matrix is square and the semiring takes them all.
pub(super) fn checked<T: Tropical>(a: View<T>, semiring: Semiring) -> Result<Vec<T>> {
    let (m, n) = (a.rows(), a.cols());
    if m != n {
        return Err(Error::input("A", format!("{m} x {n} elements are not square"), "give a square matrix"));
    }
    let elements: Vec<T> = (0..m).flat_map(|i| a.row(i)).copied().collect();
    let taken = match semiring {
        Semiring::MaxPlus => check_max_plus(&elements),
        Semiring::MinPlus => check_min_plus(&elements),
        Semiring::PlusTimes | Semiring::OrAnd => Ok(()),
    };
    match taken {
        Ok(()) => Ok(elements),
        Err(at) => Err(Error::input(
            format!("A({}, {})", at / n, at % n),
            format!("{semiring} does not take {:?}", elements[at]),
            "use numbers, and the semiring's own infinity for what is absent",
        )),
    }
}

/// Any element but 0 as a 1.
pub(super) fn to_bits<T: Tropical>(a: View<T>) -> BitMatrix {
    let bytes: Vec<u8> = (0..a.rows()).flat_map(|i| a.row(i)).map(|x| u8::from(*x != T::NOUGHT)).collect();
    BitMatrix::from_bytes(&bytes, a.rows(), a.cols())
}

/// Bits as the numbers 0 and 1.
pub(super) fn from_bits<T: Tropical>(bits: &BitMatrix) -> Vec<T> {
    bits.to_bytes().into_iter().map(|bit| if bit == 1 { T::UNIT } else { T::NOUGHT }).collect()
}

impl BitMatrix {
    /// The `exponent`-th power over or-and, by repeated squaring; the power 0 is the identity.
    ///
    /// # Panics
    /// If the matrix is not square.
    pub fn power(&self, mut exponent: u64) -> Self {
        assert_eq!(self.rows(), self.cols(), "only square matrices have powers");
        let (mut square, mut result) = (self.clone(), Self::identity(self.rows()));
        while exponent > 0 {
            if exponent & 1 == 1 {
                result = result.times(&square);
            }
            square = square.times(&square);
            exponent >>= 1;
        }
        result
    }

    /// The product over or-and.
    fn times(&self, other: &Self) -> Self {
        let mut product = Self::zeros(self.rows(), other.cols());
        product.or_product(self, other);
        product
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Step by step, from the identity.
    fn by_steps(a: &[i64], n: usize, exponent: u64, semiring: Semiring) -> Vec<i64> {
        let zero: i64 = semiring.zero();
        let mut result: Vec<i64> =
            (0..n * n).map(|at| if at % (n + 1) == 0 { semiring.one() } else { zero }).collect();
        for _ in 0..exponent {
            result = (0..n * n)
                .map(|at| {
                    let pairs = (0..n).map(|p| (result[at / n * n + p], a[p * n + at % n]));
                    let sums = pairs.clone().filter(|&(x, y)| x != zero && y != zero).map(|(x, y)| x + y);
                    match semiring {
                        Semiring::PlusTimes => {
                            pairs.map(|(x, y)| x.wrapping_mul(y)).fold(0, i64::wrapping_add)
                        }
                        Semiring::MaxPlus => sums.max().unwrap_or(zero),
                        Semiring::MinPlus => sums.min().unwrap_or(zero),
                        Semiring::OrAnd => pairs.map(|(x, y)| i64::from(x != 0 && y != 0)).max().unwrap_or(0),
                    }
                })
                .collect();
        }
        result
    }

    proptest! {
        #[test]
        fn equals_a_product_step_by_step(
            n in 1usize..9,
            exponent in 0u64..12,
            numbers in prop::collection::vec(prop::option::of(-9i64..10), 64),
        ) {
            for semiring in Semiring::ALL {
                let a: Vec<i64> = numbers[..n * n].iter().map(|x| x.unwrap_or(semiring.zero())).collect();
                let found = power(View::dense(&a, n, n), exponent, semiring).unwrap();
                prop_assert_eq!(&found, &by_steps(&a, n, exponent, semiring), "{}", semiring);
            }
        }
    }

    #[test]
    fn floats_of_every_semiring() {
        let a = [0.0, 2.0, 1.0, 3.0];
        let square = |semiring| power(View::dense(&a, 2, 2), 2, semiring).unwrap();
        assert_eq!(square(Semiring::PlusTimes), [2.0, 6.0, 3.0, 11.0]);
        assert_eq!(square(Semiring::MaxPlus), [3.0, 5.0, 4.0, 6.0]);
        assert_eq!(square(Semiring::MinPlus), [0.0, 2.0, 1.0, 3.0]);
        assert_eq!(square(Semiring::OrAnd), [1.0, 1.0, 1.0, 1.0]);
        assert_eq!(power(View::dense(&a, 2, 2), 0, Semiring::MinPlus).unwrap()[..2], [0.0, f64::INFINITY]);
        assert!(power(View::<f32>::dense(&[], 0, 0), 3, Semiring::PlusTimes).unwrap().is_empty());
    }

    #[test]
    fn bad_matrices_are_refused() {
        let refusal = |a: View<f64>, semiring| power(a, 2, semiring).unwrap_err().to_string();
        assert_eq!(
            refusal(View::dense(&[0.0; 6], 2, 3), Semiring::PlusTimes),
            "A: 2 x 3 elements are not square (give a square matrix)"
        );
        let bad = [0.0, 1.0, f64::INFINITY, 2.0];
        assert_eq!(
            refusal(View::dense(&bad, 2, 2), Semiring::MaxPlus),
            "A(1, 0): max-plus does not take inf (use numbers, and the semiring's own infinity for what is absent)"
        );
    }
}
