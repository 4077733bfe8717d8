//! Registers full of elements: the operations that the innermost loop needs, and one implementation for every
//! instruction set, which supplies only its instructions.

#![allow(unsafe_code)]

use crate::kernels::packed::block::MicroKernel;
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
    unsafe fn finish_over<const MIN: bool>(self, other: Self) -> Self;
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
/// `$min` return their second operand if neither is better, or one is NaN. `finish` turns (sum, sum over
/// other, other) into the result of [`Vector::finish_over`]; without it, every sum is an actual one.
macro_rules! vector {
    ($name:ident($register:ty) of $element:ty: $splat:ident, $load:ident, $store:ident, $plus:ident, $max:ident,
     $min:ident $(, finish: $finish:ident)? $(, fused: $fused:ident)?) => {
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
            unsafe fn finish_over<const MIN: bool>(self, other: Self) -> Self {
                // SAFETY: as in `over`.
                let over = unsafe { self.over::<MIN>(other) };
                $(
                    // SAFETY: as in `over`.
                    let over = Self(unsafe { $finish::<MIN>(self.0, over.0, other.0) });
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

                /// [`together::part`] on a processor that has the feature.
                ///
                /// # Safety
                /// As [`together::part`].
                #[target_feature(enable = $feature)]
                unsafe fn part<V: Vector, O: Operation<V>>(
                    tile: &MicroKernel<V::Element>,
                    stage: &Stage<'_, V::Element>,
                    units: Range<usize>,
                ) -> bool {
                    // SAFETY: this function is compiled for the feature; the rest is guaranteed by the caller.
                    unsafe { together::part::<V, O>(tile, stage, units) }
                }

                $detected.then_some(MicroKernel {
                    name: $name,
                    rows: $rows,
                    cols: $wide * Self::LANES,
                    update: update::<Self, O>,
                    interleave: $interleave,
                    product: product::<Self, O>,
                    part: part::<Self, O>,
                })
            }
        })+
    };
}

pub(super) use {micro_kernels, vector};

// The semirings as the innermost loop sees them.

/// An element of a packed block: a number of four or eight bytes, of which every bit pattern is one.
pub trait Number: Copy + Default + Send + Sync + std::fmt::Debug + 'static {
    /// The sum of two elements; integers wrap.
    fn plus(self, other: Self) -> Self;
}

macro_rules! number {
    ($($number:ident: $plus:expr),*) => {
        $(impl Number for $number {
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                $plus(self, other)
            }
        })*
    };
}
number!(f64: std::ops::Add::add, f32: std::ops::Add::add, i64: i64::wrapping_add, i32: i32::wrapping_add);

/// A semiring on vectors `V`.
///
/// # Safety
/// The functions on vectors need the processor features of `V`.
pub(in crate::kernels) trait Operation<V: Vector>: 'static {
    /// The neutral element of the sum, in a packed block; pads strips.
    fn zero() -> V::Element;
    /// `sum` with the product of `x` and `y` added.
    unsafe fn step(x: V, y: V, sum: V) -> V;
    /// What C becomes: its old value with the sum of a block added.
    unsafe fn finish(sum: V, old: V) -> V;
    /// Whether packed elements differ from others and must be checked: by `packed` and `is_tame`.
    const PREPARES: bool = false;
    /// Elements as they are in a packed block; `seen` collects what [`Operation::is_tame`] asks for.
    #[inline(always)]
    unsafe fn packed(x: V, _seen: &mut Seen<V>) -> V {
        x
    }
    /// Whether plain sums of the elements seen cannot overflow.
    #[inline(always)]
    unsafe fn is_tame(_seen: Seen<V>) -> bool {
        true
    }
}

/// Lane by lane, the least and the greatest element so far.
#[derive(Clone, Copy)]
pub(in crate::kernels) struct Seen<V> {
    least: V,
    greatest: V,
}

impl<V: Vector> Seen<V> {
    /// Nothing but the number 0.
    ///
    /// # Safety
    /// As [`Vector`].
    #[inline(always)]
    pub(super) unsafe fn nothing() -> Self {
        // SAFETY: guaranteed by the caller.
        let nought = unsafe { V::splat(V::Element::default()) };
        Self { least: nought, greatest: nought }
    }
}

/// Sums of products.
pub(in crate::kernels) struct PlusTimes;

impl<V: Fused> Operation<V> for PlusTimes {
    #[inline(always)]
    fn zero() -> V::Element {
        V::Element::default()
    }
    #[inline(always)]
    unsafe fn step(x: V, y: V, sum: V) -> V {
        // SAFETY: the trait's contract grants the processor feature, here and below.
        unsafe { x.times_plus(y, sum) }
    }
    #[inline(always)]
    unsafe fn finish(sum: V, old: V) -> V {
        // SAFETY: as in `step`.
        unsafe { sum.plus(old) }
    }
}

/// The most lanes of a vector.
const MOST_LANES: usize = 16;

/// The largest of the sums, or with `MIN` the smallest.
pub(in crate::kernels) struct Best<const MIN: bool>;

impl<V: Ordered, const MIN: bool> Operation<V> for Best<MIN>
where
    V::Element: Element,
{
    #[inline(always)]
    fn zero() -> V::Element {
        V::Element::zero::<MIN>()
    }
    #[inline(always)]
    unsafe fn step(x: V, y: V, sum: V) -> V {
        // SAFETY: the trait's contract grants the processor feature, here and below.
        unsafe { x.plus(y).over::<MIN>(sum) }
    }
    #[inline(always)]
    unsafe fn finish(sum: V, old: V) -> V {
        // SAFETY: as in `step`.
        unsafe { sum.finish_over::<MIN>(old) }
    }
    const PREPARES: bool = V::Element::WRAPS;
    #[inline(always)]
    unsafe fn packed(x: V, seen: &mut Seen<V>) -> V {
        // SAFETY: as in `step`.
        unsafe {
            // One step beyond a zero of max-plus is the largest integer: it cannot be the least. Likewise
            // one beyond a zero of min-plus.
            let beyond = x.plus(V::splat(V::Element::beyond::<MIN>()));
            let (least, greatest) = if MIN { (x, beyond) } else { (beyond, x) };
            seen.least = least.over::<true>(seen.least);
            seen.greatest = greatest.over::<false>(seen.greatest);
            // No other tame element is worse than what stands for a zero.
            x.over::<MIN>(V::splat(V::Element::stand_in::<MIN>()))
        }
    }
    #[inline(always)]
    unsafe fn is_tame(seen: Seen<V>) -> bool {
        let fold = |all: V, better: fn(V::Element, V::Element) -> V::Element| {
            let mut lanes = [V::Element::default(); MOST_LANES];
            // SAFETY: there is room for the lanes.
            unsafe { all.store(lanes.as_mut_ptr()) };
            lanes.into_iter().fold(V::Element::default(), better)
        };
        let least = fold(seen.least, V::Element::over::<true>);
        let greatest = fold(seen.greatest, V::Element::over::<false>);
        V::Element::are_tame::<MIN>(least, greatest)
    }
}
