//! Tiles in NEON's 128-bit registers: 8 rows of 2 vectors of C, or 4 rows of 4 vectors of unknowns, in 16 of the 32.
//! Every aarch64 has them.

#![allow(unsafe_code)]

use crate::kernels::packed::block;
use crate::kernels::packed::block::{MicroKernel, tile};
use crate::kernels::packed::substitution::{self, Pointers, Substituted, Substitution, substitutions};
use crate::kernels::packed::together::{self, Stage};
use crate::kernels::packed::vector::Operation;
use crate::kernels::packed::vector::{Fused, Ordered, Tiled, Vector, micro_kernels, vector};
use crate::kernels::tropical::Element;
use crate::kernels::{Instructions, Real, View, ViewMut};
use std::arch::aarch64::*;
use std::ops::Range;

/// The maximum, the minimum and the finish of one type, by comparison: unlike NEON's own maximum, they
/// ignore NaN and keep the second operand among equals, as on the other instruction sets.
macro_rules! comparisons {
    ($max:ident, $min:ident, $finish:ident of $register:ty: $element:ty, $splat:ident, $greater:ident, $choose:ident) => {
        #[target_feature(enable = "neon")]
        #[inline]
        fn $max(x: $register, y: $register) -> $register {
            $choose($greater(x, y), x, y)
        }

        #[target_feature(enable = "neon")]
        #[inline]
        fn $min(x: $register, y: $register) -> $register {
            $choose($greater(y, x), x, y)
        }

        #[target_feature(enable = "neon")]
        #[inline]
        fn $finish<const MIN: bool>(sum: $register, over: $register, other: $register) -> $register {
            let reach = $splat(if MIN { <$element>::REACH } else { -<$element>::REACH });
            let untrue = if MIN { $greater(sum, reach) } else { $greater(reach, sum) };
            $choose(untrue, other, over)
        }
    };
}

comparisons!(max_f64, min_f64, finish_f64 of float64x2_t: f64, vdupq_n_f64, vcgtq_f64, vbslq_f64);
comparisons!(max_f32, min_f32, finish_f32 of float32x4_t: f32, vdupq_n_f32, vcgtq_f32, vbslq_f32);
comparisons!(max_i64, min_i64, finish_i64 of int64x2_t: i64, vdupq_n_s64, vcgtq_s64, vbslq_s64);
comparisons!(max_i32, min_i32, finish_i32 of int32x4_t: i32, vdupq_n_s32, vcgtq_s32, vbslq_s32);

vector!(F64(float64x2_t) of f64: vdupq_n_f64, vld1q_f64, vst1q_f64, vaddq_f64, max_f64, min_f64,
    finish: finish_f64, fused: fused_f64);
vector!(F32(float32x4_t) of f32: vdupq_n_f32, vld1q_f32, vst1q_f32, vaddq_f32, max_f32, min_f32,
    finish: finish_f32, fused: fused_f32);
vector!(I64(int64x2_t) of i64: vdupq_n_s64, vld1q_s64, vst1q_s64, vaddq_s64, max_i64, min_i64, finish: finish_i64);
vector!(I32(int32x4_t) of i32: vdupq_n_s32, vld1q_s32, vst1q_s32, vaddq_s32, max_i32, min_i32, finish: finish_i32);

micro_kernels!("NEON", "neon" if Instructions::Avx2.is_allowed(), 8 x 2 of F64, F32, I64, I32; None);
substitutions!("neon" if Instructions::Avx2.is_allowed(), 4 x 4 of F64, F32; None);

/// `x` times `y` plus `sum`: the instruction takes the sum first.
#[target_feature(enable = "neon")]
#[inline]
fn fused_f64(x: float64x2_t, y: float64x2_t, sum: float64x2_t) -> float64x2_t {
    vfmaq_f64(sum, x, y)
}

/// As `fused_f64`.
#[target_feature(enable = "neon")]
#[inline]
fn fused_f32(x: float32x4_t, y: float32x4_t, sum: float32x4_t) -> float32x4_t {
    vfmaq_f32(sum, x, y)
}
