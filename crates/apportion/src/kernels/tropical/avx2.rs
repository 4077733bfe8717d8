//! Tiles in 256-bit registers: 6 rows of 2 vectors of C in 12 of the 16.

#![allow(unsafe_code)]

use crate::kernels::tropical::block;
use crate::kernels::tropical::element::Element;
use crate::kernels::tropical::tile::{MicroKernel, tile};
use crate::kernels::tropical::vector::{Vector, micro_kernels, vector};
use crate::kernels::{View, ViewMut};
use std::arch::x86_64::*;

vector!(F64(__m256d) of f64: _mm256_set1_pd, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_add_pd, _mm256_max_pd,
    _mm256_min_pd);
vector!(F32(__m256) of f32: _mm256_set1_ps, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_add_ps, _mm256_max_ps,
    _mm256_min_ps);
vector!(I64(__m256i) of i64: _mm256_set1_epi64x, _mm256_loadu_si256, _mm256_storeu_si256, _mm256_add_epi64,
    max_epi64, min_epi64, settle: settle_i64);
vector!(I32(__m256i) of i32: _mm256_set1_epi32, _mm256_loadu_si256, _mm256_storeu_si256, _mm256_add_epi32,
    _mm256_max_epi32, _mm256_min_epi32, settle: settle_i32);

micro_kernels!("AVX2", "avx2" if is_x86_feature_detected!("avx2"), 6 x 2, None);

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
fn settle_i64<const MIN: bool>(sum: __m256i, over: __m256i, other: __m256i) -> __m256i {
    let untrue = if MIN {
        _mm256_cmpgt_epi64(sum, _mm256_set1_epi64x(i64::REACH))
    } else {
        _mm256_cmpgt_epi64(_mm256_set1_epi64x(-i64::REACH), sum)
    };
    _mm256_blendv_epi8(over, other, untrue)
}

#[target_feature(enable = "avx2")]
#[inline]
fn settle_i32<const MIN: bool>(sum: __m256i, over: __m256i, other: __m256i) -> __m256i {
    let untrue = if MIN {
        _mm256_cmpgt_epi32(sum, _mm256_set1_epi32(i32::REACH))
    } else {
        _mm256_cmpgt_epi32(_mm256_set1_epi32(-i32::REACH), sum)
    };
    _mm256_blendv_epi8(over, other, untrue)
}
