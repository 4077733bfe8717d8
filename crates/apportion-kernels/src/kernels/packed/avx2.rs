//! Tiles in 256-bit registers: 6 rows of 2 vectors of C in 12 of the 16, or 4 rows in 8; and 4 rows of 3 vectors of
//! unknowns.

#![allow(unsafe_code)]

use crate::kernels::packed::block;
use crate::kernels::packed::block::{MicroKernel, tile};
use crate::kernels::packed::substitution::{
    self, Pointers, Squares, Substituted, Substitution, substitutions,
};
use crate::kernels::packed::together::{self, Stage};
use crate::kernels::packed::vector::Operation;
use crate::kernels::packed::vector::{Fused, Ordered, Tiled, Vector, micro_kernels, vector};
use crate::kernels::tropical::Element;
use crate::kernels::{Real, View, ViewMut, has};
use std::arch::x86_64::*;
use std::ops::Range;

vector!(F64(__m256d) of f64: _mm256_set1_pd, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_add_pd, _mm256_max_pd,
    _mm256_min_pd, fused: _mm256_fmadd_pd);
vector!(F32(__m256) of f32: _mm256_set1_ps, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_add_ps, _mm256_max_ps,
    _mm256_min_ps, fused: _mm256_fmadd_ps);
vector!(I64(__m256i) of i64: _mm256_set1_epi64x, _mm256_loadu_si256, _mm256_storeu_si256, _mm256_add_epi64,
    max_epi64, min_epi64, finish: finish_i64);
vector!(I32(__m256i) of i32: _mm256_set1_epi32, _mm256_loadu_si256, _mm256_storeu_si256, _mm256_add_epi32,
    _mm256_max_epi32, _mm256_min_epi32, finish: finish_i32);

micro_kernels!("AVX2", "avx2,fma" if has!(Avx2: "avx2", "fma"), 6 x 2 of F64, F32, I32;
    Some(interleave::<_, 6>));
// A maximum takes a register for its mask: with six rows, others would be kept in memory.
micro_kernels!("AVX2", "avx2,fma" if has!(Avx2: "avx2", "fma"), 4 x 2 of I64; Some(interleave::<_, 4>));
substitutions!("avx2,fma" if has!(Avx2: "avx2", "fma"), 4 x 3 of F64, F32;
    Some(Squares { size: 4, transpose: interleave::<_, 4> }));

/// AVX2 has no maximum of 64-bit integers.
#[target_feature(enable = "avx2")]
#[inline]
fn max_epi64(x: __m256i, y: __m256i) -> __m256i {
    _mm256_blendv_epi8(y, x, _mm256_cmpgt_epi64(x, y))
}

/// AVX2 has no minimum of 64-bit integers.
#[target_feature(enable = "avx2")]
#[inline]
fn min_epi64(x: __m256i, y: __m256i) -> __m256i {
    _mm256_blendv_epi8(y, x, _mm256_cmpgt_epi64(y, x))
}

#[target_feature(enable = "avx2")]
#[inline]
fn finish_i64<const MIN: bool>(sum: __m256i, over: __m256i, other: __m256i) -> __m256i {
    let untrue = if MIN {
        _mm256_cmpgt_epi64(sum, _mm256_set1_epi64x(i64::REACH))
    } else {
        _mm256_cmpgt_epi64(_mm256_set1_epi64x(-i64::REACH), sum)
    };
    _mm256_blendv_epi8(over, other, untrue)
}

#[target_feature(enable = "avx2")]
#[inline]
fn finish_i32<const MIN: bool>(sum: __m256i, over: __m256i, other: __m256i) -> __m256i {
    let untrue = if MIN {
        _mm256_cmpgt_epi32(sum, _mm256_set1_epi32(i32::REACH))
    } else {
        _mm256_cmpgt_epi32(_mm256_set1_epi32(-i32::REACH), sum)
    };
    _mm256_blendv_epi8(over, other, untrue)
}

/// [`MicroKernel::interleave`] for 4 or 6 rows: four by squares of 4 x 4, and two by pairs.
///
/// # Safety
/// The rows have `columns` elements, a multiple of 4; there is room for them all at `to`, where columns are `stride`
/// apart; the processor has AVX2.
#[target_feature(enable = "avx2,fma")]
unsafe fn interleave<T, const ROWS: usize>(columns: usize, rows: &[*const T], to: *mut T, stride: usize) {
    for p in (0..columns).step_by(4) {
        // SAFETY: guaranteed by the caller; elements have 4 or 8 bytes, and are only moved.
        unsafe {
            let to = |column: usize, row: usize| to.add((p + column) * stride + row);
            if size_of::<T>() == 4 {
                let row = |i: usize| _mm_loadu_ps(rows[i].add(p).cast());
                let (a, b, c, d) = (row(0), row(1), row(2), row(3));
                let (ab_low, ab_high) = (_mm_unpacklo_ps(a, b), _mm_unpackhi_ps(a, b));
                let (cd_low, cd_high) = (_mm_unpacklo_ps(c, d), _mm_unpackhi_ps(c, d));
                _mm_storeu_ps(to(0, 0).cast(), _mm_movelh_ps(ab_low, cd_low));
                _mm_storeu_ps(to(1, 0).cast(), _mm_movehl_ps(cd_low, ab_low));
                _mm_storeu_ps(to(2, 0).cast(), _mm_movelh_ps(ab_high, cd_high));
                _mm_storeu_ps(to(3, 0).cast(), _mm_movehl_ps(cd_high, ab_high));
                if ROWS == 4 {
                    continue;
                }
                let (e, f) = (row(4), row(5));
                let (low, high) =
                    (_mm_castps_pd(_mm_unpacklo_ps(e, f)), _mm_castps_pd(_mm_unpackhi_ps(e, f)));
                _mm_storel_pd(to(0, 4).cast(), low);
                _mm_storeh_pd(to(1, 4).cast(), low);
                _mm_storel_pd(to(2, 4).cast(), high);
                _mm_storeh_pd(to(3, 4).cast(), high);
            } else {
                let row = |i: usize| _mm256_loadu_pd(rows[i].add(p).cast());
                let pair = |x, y| (_mm256_unpacklo_pd(x, y), _mm256_unpackhi_pd(x, y));
                let ((ab_even, ab_odd), (cd_even, cd_odd)) = (pair(row(0), row(1)), pair(row(2), row(3)));
                _mm256_storeu_pd(to(0, 0).cast(), _mm256_permute2f128_pd::<0x20>(ab_even, cd_even));
                _mm256_storeu_pd(to(1, 0).cast(), _mm256_permute2f128_pd::<0x20>(ab_odd, cd_odd));
                _mm256_storeu_pd(to(2, 0).cast(), _mm256_permute2f128_pd::<0x31>(ab_even, cd_even));
                _mm256_storeu_pd(to(3, 0).cast(), _mm256_permute2f128_pd::<0x31>(ab_odd, cd_odd));
                if ROWS == 4 {
                    continue;
                }
                let (ef_even, ef_odd) = pair(row(4), row(5));
                _mm_storeu_pd(to(0, 4).cast(), _mm256_castpd256_pd128(ef_even));
                _mm_storeu_pd(to(1, 4).cast(), _mm256_castpd256_pd128(ef_odd));
                _mm_storeu_pd(to(2, 4).cast(), _mm256_extractf128_pd::<1>(ef_even));
                _mm_storeu_pd(to(3, 4).cast(), _mm256_extractf128_pd::<1>(ef_odd));
            }
        }
    }
}
