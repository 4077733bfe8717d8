//! 512 bits in registers. Written with explicit vectors, since the compiler would gather single words from
//! many tables.

#![allow(unsafe_code)]

use crate::kernels::boolean::matrix::CHUNK;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// 512 columns of one row.
pub(super) type Chunk = [u64; CHUNK];

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
        for (x, y) in self.iter_mut().zip(other) {
            *x |= y;
        }
        self
    }
    #[inline(always)]
    unsafe fn covers(self, other: Self) -> bool {
        self.iter().zip(other).fold(0, |missing, (x, y)| missing | (y & !x)) == 0
    }
}

/// AVX-512F.
#[cfg(target_arch = "x86_64")]
impl Wide for __m512i {
    #[inline(always)]
    unsafe fn load(chunk: &Chunk) -> Self {
        // SAFETY: a chunk has 64 bytes; the trait's contract grants the feature, here and below.
        unsafe { _mm512_loadu_si512(chunk.as_ptr().cast()) }
    }
    #[inline(always)]
    unsafe fn store(self, chunk: &mut Chunk) {
        // SAFETY: as in `load`.
        unsafe { _mm512_storeu_si512(chunk.as_mut_ptr().cast(), self) }
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
}

/// AVX2.
#[cfg(target_arch = "x86_64")]
impl Wide for [__m256i; 2] {
    #[inline(always)]
    unsafe fn load(chunk: &Chunk) -> Self {
        let from = chunk.as_ptr().cast::<__m256i>();
        // SAFETY: a chunk has twice 32 bytes; the trait's contract grants the feature, here and below.
        unsafe { [_mm256_loadu_si256(from), _mm256_loadu_si256(from.add(1))] }
    }
    #[inline(always)]
    unsafe fn store(self, chunk: &mut Chunk) {
        let to = chunk.as_mut_ptr().cast::<__m256i>();
        // SAFETY: as in `load`.
        unsafe {
            _mm256_storeu_si256(to, self[0]);
            _mm256_storeu_si256(to.add(1), self[1]);
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
}
