//! Adds and comparisons that never leave the registers: the peak that a product is compared with.

#![allow(unsafe_code)]

use apportion::kernels::{Tropical, instruction_set};

/// An element type with a loop that stays in registers.
pub trait Peak: Tropical {
    /// A number from a small one.
    fn from_small(x: u16) -> Self;
    /// Adds and compares on registers alone; returns how many, lane by lane.
    fn in_registers(rounds: u64) -> u64;
}

/// `rounds` rounds of `x = max(x + step, floor)` on enough independent chains to hide the latency.
macro_rules! rounds {
    ($rounds:ident, $chains:literal, $splat:expr, $add:expr, $max:expr) => {{
        let (step, floor) = (black_box($splat(1u8.into())), black_box($splat(3u8.into())));
        let mut chains = [floor; $chains];
        for _ in 0..$rounds {
            for x in &mut chains {
                *x = $max($add(*x, step), floor);
            }
        }
        black_box(chains);
        $rounds * $chains * 2 * (size_of_val(&step) as u64)
    }};
}

macro_rules! peak {
    ($t:ident, $module:ident, [$($wide:ident),*], [$($narrow:ident),*]) => {
        mod $module {
            #[cfg(target_arch = "x86_64")]
            #[allow(unused_imports)]
            use {super::greater, std::arch::x86_64::*};
            use std::hint::black_box;

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f")]
            pub fn wide(rounds: u64) -> u64 {
                peak!(@rounds rounds, 16, $($wide),*)
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2")]
            pub fn narrow(rounds: u64) -> u64 {
                peak!(@rounds rounds, 12, $($narrow),*)
            }
            pub fn plain(rounds: u64) -> u64 {
                let over = |x: [$t; 4], y: [$t; 4]| std::array::from_fn(|i| if x[i] > y[i] { x[i] } else { y[i] });
                let plus = |x: [$t; 4], y: [$t; 4]| std::array::from_fn(|i| x[i] + y[i]);
                rounds!(rounds, 12, |x: $t| [x; 4], plus, over)
            }
        }
        impl Peak for $t {
            fn from_small(x: u16) -> Self {
                x as $t
            }
            fn in_registers(rounds: u64) -> u64 {
                let bytes = match instruction_set() {
                    // SAFETY: these names mean that the processor has them.
                    #[cfg(target_arch = "x86_64")]
                    "AVX-512" => unsafe { $module::wide(rounds) },
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: as above.
                    "AVX2" => unsafe { $module::narrow(rounds) },
                    _ => $module::plain(rounds / 8),
                };
                bytes / size_of::<$t>() as u64
            }
        }
    };
    (@rounds $rounds:ident, $chains:literal, $splat:ident, $add:ident, $max:ident) => {
        rounds!($rounds, $chains, |x| $splat(x), |x, y| $add(x, y), |x, y| $max(x, y))
    };
}

/// AVX2 has no maximum of 64-bit integers.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn greater(x: std::arch::x86_64::__m256i, y: std::arch::x86_64::__m256i) -> std::arch::x86_64::__m256i {
    use std::arch::x86_64::{_mm256_blendv_epi8, _mm256_cmpgt_epi64};
    _mm256_blendv_epi8(y, x, _mm256_cmpgt_epi64(x, y))
}

peak!(
    f64,
    of_f64,
    [_mm512_set1_pd, _mm512_add_pd, _mm512_max_pd],
    [_mm256_set1_pd, _mm256_add_pd, _mm256_max_pd]
);
peak!(
    f32,
    of_f32,
    [_mm512_set1_ps, _mm512_add_ps, _mm512_max_ps],
    [_mm256_set1_ps, _mm256_add_ps, _mm256_max_ps]
);
peak!(
    i32,
    of_i32,
    [_mm512_set1_epi32, _mm512_add_epi32, _mm512_max_epi32],
    [_mm256_set1_epi32, _mm256_add_epi32, _mm256_max_epi32]
);
peak!(
    i64,
    of_i64,
    [_mm512_set1_epi64, _mm512_add_epi64, _mm512_max_epi64],
    [_mm256_set1_epi64x, _mm256_add_epi64, greater]
);
