//! 512 bits in registers. Written with explicit vectors, since the compiler would gather single words from
//! many tables.

#![allow(unsafe_code)]

use crate::kernels::boolean::matrix::Chunk;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// A chunk in registers.
///
/// # Safety
/// Every function needs the processor feature that the implementing type names.
pub(super) trait Wide: Copy {
    unsafe fn load(chunk: &Chunk) -> Self;
    unsafe fn store(self, chunk: &mut Chunk);
    unsafe fn or(self, other: Self) -> Self;
    /// True if it has all ones of the other.
    unsafe fn covers(self, other: Self) -> bool;
    /// The words that have ones, the first in the lowest bit.
    unsafe fn places(self) -> u8;
}

/// Any processor.
impl Wide for Chunk {
    #[inline(always)]
    unsafe fn load(chunk: &Chunk) -> Self {
        *chunk
    }
    #[inline(always)]
    unsafe fn store(self, chunk: &mut Chunk) {
        *chunk = self;
    }
    #[inline(always)]
    unsafe fn or(mut self, other: Self) -> Self {
        for (x, y) in self.0.iter_mut().zip(other.0) {
            *x |= y;
        }
        self
    }
    #[inline(always)]
    unsafe fn covers(self, other: Self) -> bool {
        self.0.iter().zip(other.0).fold(0, |missing, (x, y)| missing | (y & !x)) == 0
    }
    #[inline(always)]
    unsafe fn places(self) -> u8 {
        self.0.iter().enumerate().fold(0, |places, (at, word)| places | u8::from(*word != 0) << at)
    }
}

/// AVX-512F.
#[cfg(target_arch = "x86_64")]
impl Wide for __m512i {
    #[inline(always)]
    unsafe fn load(chunk: &Chunk) -> Self {
        // SAFETY: a chunk has 64 bytes, aligned to them; the trait's contract grants the feature, here and
        // below.
        unsafe { _mm512_load_si512(chunk.0.as_ptr().cast()) }
    }
    #[inline(always)]
    unsafe fn store(self, chunk: &mut Chunk) {
        // SAFETY: as in `load`.
        unsafe { _mm512_store_si512(chunk.0.as_mut_ptr().cast(), self) }
    }
    #[inline(always)]
    unsafe fn or(self, other: Self) -> Self {
        // SAFETY: as in `load`.
        unsafe { _mm512_or_si512(self, other) }
    }
    #[inline(always)]
    unsafe fn covers(self, other: Self) -> bool {
        // SAFETY: as in `load`.
        unsafe {
            let missing = _mm512_andnot_si512(self, other);
            _mm512_test_epi64_mask(missing, missing) == 0
        }
    }
    #[inline(always)]
    unsafe fn places(self) -> u8 {
        // SAFETY: as in `load`.
        unsafe { _mm512_test_epi64_mask(self, self) }
    }
}

/// AVX2.
#[cfg(target_arch = "x86_64")]
impl Wide for [__m256i; 2] {
    #[inline(always)]
    unsafe fn load(chunk: &Chunk) -> Self {
        let from = chunk.0.as_ptr().cast::<__m256i>();
        // SAFETY: a chunk has twice 32 bytes, aligned to 64; the trait's contract grants the feature, here
        // and below.
        unsafe { [_mm256_load_si256(from), _mm256_load_si256(from.add(1))] }
    }
    #[inline(always)]
    unsafe fn store(self, chunk: &mut Chunk) {
        let to = chunk.0.as_mut_ptr().cast::<__m256i>();
        // SAFETY: as in `load`.
        unsafe {
            _mm256_store_si256(to, self[0]);
            _mm256_store_si256(to.add(1), self[1]);
        }
    }
    #[inline(always)]
    unsafe fn or(self, other: Self) -> Self {
        // SAFETY: as in `load`.
        unsafe { [_mm256_or_si256(self[0], other[0]), _mm256_or_si256(self[1], other[1])] }
    }
    #[inline(always)]
    unsafe fn covers(self, other: Self) -> bool {
        // SAFETY: as in `load`.
        unsafe {
            let missing = [_mm256_andnot_si256(self[0], other[0]), _mm256_andnot_si256(self[1], other[1])];
            let missing = _mm256_or_si256(missing[0], missing[1]);
            _mm256_testz_si256(missing, missing) == 1
        }
    }
    #[inline(always)]
    unsafe fn places(self) -> u8 {
        // SAFETY: as in `load`.
        let [low, high] = self.map(|words| unsafe {
            let empty = _mm256_cmpeq_epi64(words, _mm256_setzero_si256());
            _mm256_movemask_pd(_mm256_castsi256_pd(empty)) as u8
        });
        !(low | high << 4)
    }
}
