//! Tiles in NEON's 128-bit registers: 8 rows of 2 vectors of C in 16 of the 32. Every aarch64 has them.

#![allow(unsafe_code)]

use crate::kernels::tropical::block;
use crate::kernels::tropical::element::Element;
use crate::kernels::tropical::tile::{MicroKernel, Vector, tile};
use std::arch::aarch64::*;

/// A vector of one element type. SAFETY of every block: NEON is part of aarch64, and the trait's contract grants
/// good pointers. Choosing by comparison, as elsewhere, passes over NaN and keeps the first of equals, which
/// NEON's own maximum does not.
macro_rules! vector {
    ($name:ident($register:ty) of $element:ty: $splat:ident, $load:ident, $store:ident, $plus:ident,
     $greater:ident, $choose:ident) => {
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
                Self(unsafe { $load(from) })
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $element) {
                unsafe { $store(to, self.0) }
            }
            #[inline(always)]
            unsafe fn plus(self, other: Self) -> Self {
                Self(unsafe { $plus(self.0, other.0) })
            }
            #[inline(always)]
            unsafe fn over<const MIN: bool>(self, other: Self) -> Self {
                unsafe {
                    let better = if MIN { $greater(other.0, self.0) } else { $greater(self.0, other.0) };
                    Self($choose(better, self.0, other.0))
                }
            }
            #[inline(always)]
            unsafe fn settled_over<const MIN: bool>(self, other: Self) -> Self {
                unsafe {
                    let reach = $splat(if MIN { <$element>::REACH } else { -<$element>::REACH });
                    let untrue = if MIN { $greater(self.0, reach) } else { $greater(reach, self.0) };
                    Self($choose(untrue, other.0, self.over::<MIN>(other).0))
                }
            }
        }
    };
}

vector!(F64(float64x2_t) of f64: vdupq_n_f64, vld1q_f64, vst1q_f64, vaddq_f64, vcgtq_f64, vbslq_f64);
vector!(F32(float32x4_t) of f32: vdupq_n_f32, vld1q_f32, vst1q_f32, vaddq_f32, vcgtq_f32, vbslq_f32);
vector!(I64(int64x2_t) of i64: vdupq_n_s64, vld1q_s64, vst1q_s64, vaddq_s64, vcgtq_s64, vbslq_s64);
vector!(I32(int32x4_t) of i32: vdupq_n_s32, vld1q_s32, vst1q_s32, vaddq_s32, vcgtq_s32, vbslq_s32);

/// The tile of vectors `V`.
pub(super) fn tile_of<V: Vector, const MIN: bool>() -> Option<MicroKernel<V::Element>> {
    Some(MicroKernel {
        name: "NEON",
        rows: 8,
        cols: 2 * V::LANES,
        update: tile::<V, 8, 2, MIN>,
        interleave: None,
        product: block::product::<V::Element, MIN>,
    })
}
