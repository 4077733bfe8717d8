//! Tiles in 512-bit registers: 8 rows of 3 vectors of C, or of unknowns, in 24 of the 32.

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

vector!(F64(__m512d) of f64: _mm512_set1_pd, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_add_pd, _mm512_max_pd,
    _mm512_min_pd, fused: _mm512_fmadd_pd);
vector!(F32(__m512) of f32: _mm512_set1_ps, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_add_ps, _mm512_max_ps,
    _mm512_min_ps, fused: _mm512_fmadd_ps);
vector!(I64(__m512i) of i64: _mm512_set1_epi64, _mm512_loadu_si512, _mm512_storeu_si512, _mm512_add_epi64,
    _mm512_max_epi64, _mm512_min_epi64, finish: finish_i64);
vector!(I32(__m512i) of i32: _mm512_set1_epi32, _mm512_loadu_si512, _mm512_storeu_si512, _mm512_add_epi32,
    _mm512_max_epi32, _mm512_min_epi32, finish: finish_i32);

micro_kernels!("AVX-512", "avx512f" if has!(Avx512: "avx512f"), 8 x 3 of F64, F32, I64, I32;
    Some(interleave));
substitutions!("avx512f" if has!(Avx512: "avx512f"), 8 x 3 of F64, F32;
    Some(Squares { size: 8, transpose: interleave }));

#[target_feature(enable = "avx512f")]
#[inline]
fn finish_i64<const MIN: bool>(sum: __m512i, over: __m512i, other: __m512i) -> __m512i {
    let true_sums = if MIN {
        _mm512_cmple_epi64_mask(sum, _mm512_set1_epi64(i64::REACH))
    } else {
        _mm512_cmpge_epi64_mask(sum, _mm512_set1_epi64(-i64::REACH))
    };
    _mm512_mask_mov_epi64(other, true_sums, over)
}

#[target_feature(enable = "avx512f")]
#[inline]
fn finish_i32<const MIN: bool>(sum: __m512i, over: __m512i, other: __m512i) -> __m512i {
    let true_sums = if MIN {
        _mm512_cmple_epi32_mask(sum, _mm512_set1_epi32(i32::REACH))
    } else {
        _mm512_cmpge_epi32_mask(sum, _mm512_set1_epi32(-i32::REACH))
    };
    _mm512_mask_mov_epi32(other, true_sums, over)
}

/// [`MicroKernel::interleave`]: squares of 8 x 8, turned in registers by pairs, by fours and by halves.
///
/// # Safety
/// Eight rows of `columns` elements, a multiple of 8, room for them all at `to`, where columns are `stride` apart, and
/// a processor with AVX-512F.
#[target_feature(enable = "avx512f")]
unsafe fn interleave<T>(columns: usize, rows: &[*const T], to: *mut T, stride: usize) {
    for p in (0..columns).step_by(8) {
        // SAFETY: guaranteed by the caller; elements have 4 or 8 bytes, and are only moved.
        unsafe {
            let to = |column: usize| to.add((p + column) * stride);
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
                    _mm256_storeu_pd(to(j).cast(), _mm512_castpd512_pd256(first));
                    _mm256_storeu_pd(to(j + 4).cast(), _mm512_castpd512_pd256(second));
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
                        _mm512_storeu_pd(to(2 * j + odd).cast(), column);
                    }
                }
            }
        }
    }
}
