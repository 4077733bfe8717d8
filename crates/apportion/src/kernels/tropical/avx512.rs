//! Tiles in 512-bit registers: 8 rows of 3 vectors of C in 24 of the 32.

#![allow(unsafe_code)]

use crate::kernels::tropical::block;
use crate::kernels::tropical::element::Element;
use crate::kernels::tropical::tile::{MicroKernel, Vector, tile};
use crate::kernels::{View, ViewMut};
use std::arch::x86_64::*;

/// A vector of one element type. SAFETY of every block: the trait's contract grants AVX-512F and good pointers.
macro_rules! vector {
    ($name:ident($register:ty) of $element:ty: $splat:ident, $load:ident, $store:ident, $plus:ident, $max:ident,
     $min:ident, settle: $settle:ident) => {
        #[derive(Clone, Copy)]
        pub(super) struct $name($register);

        impl Vector for $name {
            type Element = $element;
            const LANES: usize = size_of::<$register>() / size_of::<$element>();

            #[inline(always)]
            unsafe fn splat(x: $element) -> Self {
                Self(unsafe { $splat(x) })
            }
            #[inline(always)]
            unsafe fn load(from: *const $element) -> Self {
                Self(unsafe { $load(from.cast()) })
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $element) {
                unsafe { $store(to.cast(), self.0) }
            }
            #[inline(always)]
            unsafe fn plus(self, other: Self) -> Self {
                Self(unsafe { $plus(self.0, other.0) })
            }
            // Where neither is better, or one is NaN, these give their second operand.
            #[inline(always)]
            unsafe fn over<const MIN: bool>(self, other: Self) -> Self {
                Self(unsafe { if MIN { $min(self.0, other.0) } else { $max(self.0, other.0) } })
            }
            #[inline(always)]
            unsafe fn settled_over<const MIN: bool>(self, other: Self) -> Self {
                unsafe { $settle!(self, other, MIN, $element) }
            }
            #[inline(always)]
            unsafe fn prefetch(at: *const $element) {
                unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
            }
        }
    };
}

/// Floats have no untrue sums.
macro_rules! at_once {
    ($x:ident, $y:ident, $min:ident, $element:ty) => {
        $x.over::<$min>($y)
    };
}

macro_rules! settle_i64 {
    ($x:ident, $y:ident, $min:ident, $element:ty) => {{
        let true_sums = if $min {
            _mm512_cmple_epi64_mask($x.0, _mm512_set1_epi64(<$element>::REACH))
        } else {
            _mm512_cmpge_epi64_mask($x.0, _mm512_set1_epi64(-<$element>::REACH))
        };
        Self(_mm512_mask_mov_epi64($y.0, true_sums, $x.over::<$min>($y).0))
    }};
}

macro_rules! settle_i32 {
    ($x:ident, $y:ident, $min:ident, $element:ty) => {{
        let true_sums = if $min {
            _mm512_cmple_epi32_mask($x.0, _mm512_set1_epi32(<$element>::REACH))
        } else {
            _mm512_cmpge_epi32_mask($x.0, _mm512_set1_epi32(-<$element>::REACH))
        };
        Self(_mm512_mask_mov_epi32($y.0, true_sums, $x.over::<$min>($y).0))
    }};
}

vector!(F64(__m512d) of f64: _mm512_set1_pd, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_add_pd, _mm512_max_pd,
    _mm512_min_pd, settle: at_once);
vector!(F32(__m512) of f32: _mm512_set1_ps, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_add_ps, _mm512_max_ps,
    _mm512_min_ps, settle: at_once);
vector!(I64(__m512i) of i64: _mm512_set1_epi64, _mm512_loadu_si512, _mm512_storeu_si512, _mm512_add_epi64,
    _mm512_max_epi64, _mm512_min_epi64, settle: settle_i64);
vector!(I32(__m512i) of i32: _mm512_set1_epi32, _mm512_loadu_si512, _mm512_storeu_si512, _mm512_add_epi32,
    _mm512_max_epi32, _mm512_min_epi32, settle: settle_i32);

/// The tile of vectors `V`, if this processor has the registers.
pub(super) fn tile_of<V: Vector, const MIN: bool>() -> Option<MicroKernel<V::Element>> {
    is_x86_feature_detected!("avx512f").then_some(MicroKernel {
        name: "AVX-512",
        rows: 8,
        cols: 3 * V::LANES,
        update: update::<V, MIN>,
        interleave: Some(interleave::<V::Element>),
        product: product::<V::Element, MIN>,
    })
}

/// # Safety
/// As [`MicroKernel::update`], on a processor with AVX-512F.
#[target_feature(enable = "avx512f")]
unsafe fn update<V: Vector, const MIN: bool>(
    depth: usize,
    a: *const V::Element,
    b: *const V::Element,
    c: *mut V::Element,
    stride: usize,
) {
    // SAFETY: the caller's promise, passed on.
    unsafe { tile::<V, 8, 3, MIN>(depth, a, b, c, stride) }
}

/// [`block::product`] on a processor that has the registers.
#[target_feature(enable = "avx512f")]
fn product<T: Element, const MIN: bool>(
    tile: &MicroKernel<T>,
    a: View<T>,
    b: View<T>,
    c: ViewMut<T>,
) -> bool {
    block::product::<T, MIN>(tile, a, b, c)
}

/// [`MicroKernel::interleave`]: squares of 8 x 8, turned in registers by pairs, by fours and by halves.
///
/// # Safety
/// Eight rows of `columns` elements, a multiple of 8, room for them all at `to`, and a processor with AVX-512F.
#[target_feature(enable = "avx512f")]
unsafe fn interleave<T: Element>(columns: usize, rows: [*const T; 8], to: *mut T) {
    for p in (0..columns).step_by(8) {
        // SAFETY: the caller's promise; elements are of 4 or 8 bytes, and only moved.
        unsafe {
            let to = to.add(p * 8);
            if size_of::<T>() == 4 {
                let half = |i: usize| _mm256_loadu_ps(rows[i].add(p).cast());
                // Row i beside row i + 4 makes one register of each pair.
                let pair = |i: usize| {
                    _mm512_castpd_ps(_mm512_insertf64x4::<1>(
                        _mm512_castps_pd(_mm512_castps256_ps512(half(i))),
                        _mm256_castps_pd(half(i + 4)),
                    ))
                };
                let (a, b, c, d) = (pair(0), pair(1), pair(2), pair(3));
                let (ab_low, ab_high) = (_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
                let (cd_low, cd_high) = (_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
                let columns = [
                    _mm512_shuffle_ps::<0x44>(ab_low, cd_low),
                    _mm512_shuffle_ps::<0xee>(ab_low, cd_low),
                    _mm512_shuffle_ps::<0x44>(ab_high, cd_high),
                    _mm512_shuffle_ps::<0xee>(ab_high, cd_high),
                ];
                // Each holds columns j and j + 4: of rows 0 to 3 in the lower half, of 4 to 7 in the upper.
                for (j, both) in columns.into_iter().enumerate() {
                    let both = _mm512_castps_pd(both);
                    let first = _mm512_shuffle_f64x2::<0b10_00_10_00>(both, both);
                    let second = _mm512_shuffle_f64x2::<0b11_01_11_01>(both, both);
                    _mm256_storeu_pd(to.add(j * 8).cast(), _mm512_castpd512_pd256(first));
                    _mm256_storeu_pd(to.add((j + 4) * 8).cast(), _mm512_castpd512_pd256(second));
                }
            } else {
                let row = |i: usize| _mm512_loadu_pd(rows[i].add(p).cast());
                // Pairs of rows: columns 0, 2, 4, 6 and 1, 3, 5, 7.
                let pairs: [[__m512d; 2]; 4] = std::array::from_fn(|i| {
                    let (x, y) = (row(2 * i), row(2 * i + 1));
                    [_mm512_unpacklo_pd(x, y), _mm512_unpackhi_pd(x, y)]
                });
                for odd in [0, 1] {
                    let [a, b, c, d] = pairs.map(|pair| pair[odd]);
                    let (ab_low, ab_high) =
                        (_mm512_shuffle_f64x2::<0x44>(a, b), _mm512_shuffle_f64x2::<0xee>(a, b));
                    let (cd_low, cd_high) =
                        (_mm512_shuffle_f64x2::<0x44>(c, d), _mm512_shuffle_f64x2::<0xee>(c, d));
                    let columns = [
                        _mm512_shuffle_f64x2::<0x88>(ab_low, cd_low),
                        _mm512_shuffle_f64x2::<0xdd>(ab_low, cd_low),
                        _mm512_shuffle_f64x2::<0x88>(ab_high, cd_high),
                        _mm512_shuffle_f64x2::<0xdd>(ab_high, cd_high),
                    ];
                    for (j, column) in columns.into_iter().enumerate() {
                        _mm512_storeu_pd(to.add((2 * j + odd) * 8).cast(), column);
                    }
                }
            }
        }
    }
}
