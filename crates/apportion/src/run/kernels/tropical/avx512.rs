//! Tiles in 512-bit registers: 8 rows of 3 vectors of C in 24 of the 32.

#![allow(unsafe_code)]

use super::element::Element;
use super::tile::{Tile, Vector, tile};
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
pub(super) fn tile_of<V: Vector, const MIN: bool>() -> Option<Tile<V::Element>> {
    is_x86_feature_detected!("avx512f").then_some(Tile {
        name: "AVX-512",
        rows: 8,
        cols: 3 * V::LANES,
        update: update::<V, MIN>,
    })
}

/// # Safety
/// As [`Tile::update`], on a processor with AVX-512F.
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
