//! Tiles in 256-bit registers: 6 rows of 2 vectors of C in 12 of the 16.

#![allow(unsafe_code)]

use crate::kernels::tropical::block;
use crate::kernels::tropical::element::Element;
use crate::kernels::tropical::tile::{MicroKernel, Vector, tile};
use crate::kernels::{View, ViewMut};
use std::arch::x86_64::*;

/// A vector of one element type. SAFETY of every block: the trait's contract grants AVX2 and good pointers.
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
        let untrue = if $min {
            _mm256_cmpgt_epi64($x.0, _mm256_set1_epi64x(<$element>::REACH))
        } else {
            _mm256_cmpgt_epi64(_mm256_set1_epi64x(-<$element>::REACH), $x.0)
        };
        Self(_mm256_blendv_epi8($x.over::<$min>($y).0, $y.0, untrue))
    }};
}

macro_rules! settle_i32 {
    ($x:ident, $y:ident, $min:ident, $element:ty) => {{
        let untrue = if $min {
            _mm256_cmpgt_epi32($x.0, _mm256_set1_epi32(<$element>::REACH))
        } else {
            _mm256_cmpgt_epi32(_mm256_set1_epi32(-<$element>::REACH), $x.0)
        };
        Self(_mm256_blendv_epi8($x.over::<$min>($y).0, $y.0, untrue))
    }};
}

/// AVX2 has no greater of two 64-bit integers.
#[target_feature(enable = "avx2")]
#[inline]
fn max_epi64(x: __m256i, y: __m256i) -> __m256i {
    _mm256_blendv_epi8(y, x, _mm256_cmpgt_epi64(x, y))
}

/// AVX2 has no lesser of two 64-bit integers.
#[target_feature(enable = "avx2")]
#[inline]
fn min_epi64(x: __m256i, y: __m256i) -> __m256i {
    _mm256_blendv_epi8(y, x, _mm256_cmpgt_epi64(y, x))
}

vector!(F64(__m256d) of f64: _mm256_set1_pd, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_add_pd, _mm256_max_pd,
    _mm256_min_pd, settle: at_once);
vector!(F32(__m256) of f32: _mm256_set1_ps, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_add_ps, _mm256_max_ps,
    _mm256_min_ps, settle: at_once);
vector!(I64(__m256i) of i64: _mm256_set1_epi64x, _mm256_loadu_si256, _mm256_storeu_si256, _mm256_add_epi64,
    max_epi64, min_epi64, settle: settle_i64);
vector!(I32(__m256i) of i32: _mm256_set1_epi32, _mm256_loadu_si256, _mm256_storeu_si256, _mm256_add_epi32,
    _mm256_max_epi32, _mm256_min_epi32, settle: settle_i32);

/// The tile of vectors `V`, if this processor has the registers.
pub(super) fn tile_of<V: Vector, const MIN: bool>() -> Option<MicroKernel<V::Element>> {
    is_x86_feature_detected!("avx2").then_some(MicroKernel {
        name: "AVX2",
        rows: 6,
        cols: 2 * V::LANES,
        update: update::<V, MIN>,
        interleave: None,
        product: product::<V::Element, MIN>,
    })
}

/// # Safety
/// As [`MicroKernel::update`], on a processor with AVX2.
#[target_feature(enable = "avx2")]
unsafe fn update<V: Vector, const MIN: bool>(
    depth: usize,
    a: *const V::Element,
    b: *const V::Element,
    c: *mut V::Element,
    stride: usize,
) {
    // SAFETY: the caller's promise, passed on.
    unsafe { tile::<V, 6, 2, MIN>(depth, a, b, c, stride) }
}

/// [`block::product`] on a processor that has the registers.
#[target_feature(enable = "avx2")]
fn product<T: Element, const MIN: bool>(
    tile: &MicroKernel<T>,
    a: View<T>,
    b: View<T>,
    c: ViewMut<T>,
) -> bool {
    block::product::<T, MIN>(tile, a, b, c)
}
