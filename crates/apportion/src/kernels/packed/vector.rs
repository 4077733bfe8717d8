//! Registers full of elements: the operations that the innermost loop needs, and one implementation for every
//! instruction set, which supplies only its instructions.

#![allow(unsafe_code)]

use crate::kernels::packed::operation::{Number, Operation};
use crate::kernels::packed::tile::MicroKernel;
use crate::kernels::tropical::Element;

/// A register full of elements.
///
/// # Safety
/// Every function needs the processor features of the module that implements it; pointers are valid for
/// [`Vector::LANES`] elements, at any alignment.
pub(in crate::kernels) trait Vector: Copy {
    /// The type of its elements.
    type Element: Number;
    /// Number of its elements.
    const LANES: usize;
    unsafe fn splat(x: Self::Element) -> Self;
    unsafe fn load(from: *const Self::Element) -> Self;
    unsafe fn store(self, to: *mut Self::Element);
    /// Lane by lane, the sum; integers wrap.
    unsafe fn plus(self, other: Self) -> Self;
}

/// A register of elements that can be compared.
///
/// # Safety
/// As [`Vector`].
pub(in crate::kernels) trait Ordered: Vector<Element: Element> {
    /// Lane by lane, [`Element::over`].
    unsafe fn over<const MIN: bool>(self, other: Self) -> Self;
    /// Lane by lane, `self` over `other` where `self` [`Element::is_true`], else `other`.
    unsafe fn settled_over<const MIN: bool>(self, other: Self) -> Self;
}

/// A register of real numbers.
///
/// # Safety
/// As [`Vector`].
pub(in crate::kernels) trait Fused: Vector {
    /// Lane by lane, `self` times `other` plus `sum`, rounded once.
    unsafe fn times_plus(self, other: Self, sum: Self) -> Self;
}

/// A vector of one element type, by the instructions that fill, load, store, add and compare it. `$max` and
/// `$min` return their second operand if neither is better, or one is NaN. `settle` turns (sum, sum over
/// other, other) into the result of [`Vector::settled_over`]; without it, every sum is an actual one.
macro_rules! vector {
    ($name:ident($register:ty) of $element:ty: $splat:ident, $load:ident, $store:ident, $plus:ident, $max:ident,
     $min:ident $(, settle: $settle:ident)? $(, fused: $fused:ident)?) => {
        #[derive(Clone, Copy)]
        pub(in crate::kernels) struct $name($register);

        impl Vector for $name {
            type Element = $element;
            const LANES: usize = size_of::<$register>() / size_of::<$element>();

            #[inline(always)]
            unsafe fn splat(x: $element) -> Self {
                // SAFETY: the trait's contract grants the processor feature, here and below.
                Self(unsafe { $splat(x) })
            }
            #[inline(always)]
            unsafe fn load(from: *const $element) -> Self {
                // SAFETY: the trait's contract also grants the pointer.
                Self(unsafe { $load(from.cast()) })
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $element) {
                // SAFETY: as in `load`.
                unsafe { $store(to.cast(), self.0) }
            }
            #[inline(always)]
            unsafe fn plus(self, other: Self) -> Self {
                // SAFETY: as in `splat`.
                Self(unsafe { $plus(self.0, other.0) })
            }
        }

        $(
            impl Fused for $name {
                #[inline(always)]
                unsafe fn times_plus(self, other: Self, sum: Self) -> Self {
                    // SAFETY: the trait's contract grants the processor feature.
                    Self(unsafe { $fused(self.0, other.0, sum.0) })
                }
            }
        )?

        impl Ordered for $name {
            #[inline(always)]
            unsafe fn over<const MIN: bool>(self, other: Self) -> Self {
                // SAFETY: the trait's contract grants the processor feature, here and below.
                Self(unsafe { if MIN { $min(self.0, other.0) } else { $max(self.0, other.0) } })
            }
            #[inline(always)]
            unsafe fn settled_over<const MIN: bool>(self, other: Self) -> Self {
                // SAFETY: as in `over`.
                let over = unsafe { self.over::<MIN>(other) };
                $(
                    // SAFETY: as in `over`.
                    let over = Self(unsafe { $settle::<MIN>(self.0, over.0, other.0) });
                )?
                over
            }
        }
    };
}

/// A register with a micro-kernel.
pub(in crate::kernels) trait Tiled: Vector {
    /// The micro-kernel of an operation, if this processor has the registers.
    fn tile_of<O: Operation<Self>>() -> Option<MicroKernel<Self::Element>>;
}

/// The micro-kernels of an instruction set: [`Tiled`] for some of its vectors, with functions compiled for
/// the feature. The tile has `$rows` rows of `$wide` vectors.
macro_rules! micro_kernels {
    ($name:literal, $feature:literal if $detected:expr, $rows:literal x $wide:literal of $($vector:ident),+;
     $interleave:expr) => {
        $(impl Tiled for $vector {
            fn tile_of<O: Operation<Self>>() -> Option<MicroKernel<Self::Element>> {
                /// # Safety
                /// As [`MicroKernel::update`], on a processor that has the feature.
                #[target_feature(enable = $feature)]
                unsafe fn update<V: Vector, O: Operation<V>>(
                    depth: usize,
                    a: *const V::Element,
                    b: *const V::Element,
                    c: *mut V::Element,
                    stride: usize,
                ) {
                    // SAFETY: guaranteed by the caller.
                    unsafe { tile::<V, O, $rows, $wide>(depth, a, b, c, stride) }
                }

                /// [`block::product`] on a processor that has the feature.
                #[target_feature(enable = $feature)]
                fn product<V: Vector, O: Operation<V>>(
                    tile: &MicroKernel<V::Element>,
                    a: View<V::Element>,
                    b: View<V::Element>,
                    c: ViewMut<V::Element>,
                ) -> bool {
                    // SAFETY: this function is compiled for the feature, and only called where it is.
                    unsafe { block::product::<V, O>(tile, a, b, c) }
                }

                $detected.then_some(MicroKernel {
                    name: $name,
                    rows: $rows,
                    cols: $wide * Self::LANES,
                    update: update::<Self, O>,
                    interleave: $interleave,
                    product: product::<Self, O>,
                })
            }
        })+
    };
}

pub(super) use {micro_kernels, vector};
