//! The shapes of the kernel that computes: how many elements of C a work-item and a work-group hold, and how
//! panels of A and B are packed for it.

use crate::device::DeviceInfo;
use crate::error::{Error, Result};
use crate::kernels::Semiring;
use crate::matrix::Element;
use std::ops::Range;

/// The source of all kernels.
pub(super) const SOURCE: &str = include_str!("kernels.cl");

/// Bytes along the inner dimension that a kernel without local memory adds to C at once, as
/// [`packed`](crate::kernels) does.
const DEPTH_BYTES: usize = 3 << 10;
/// Bytes of the strips of B that it passes over again and again.
const BLOCK_BYTES: usize = 256 << 10;
/// Bytes of a row of the largest group's part of C.
const TILE_BYTES: usize = 512;
/// The most rows of a slab in local memory.
const MOST_SLAB: usize = 16;
/// The most elements of a vector. Rows of C on the device are padded to a multiple.
const MOST_VECTOR: usize = 16;

/// A semiring over an element type, as the kernels see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arithmetic {
    semiring: Semiring,
    /// The name of the element type in Rust.
    element: &'static str,
}

impl Arithmetic {
    /// `None` if the kernels do not compute it.
    pub(super) fn of<T: Element>(semiring: Semiring) -> Option<Self> {
        let has = match semiring {
            Semiring::PlusTimes => matches!(T::NAME, "f32" | "f64"),
            Semiring::MaxPlus | Semiring::MinPlus => matches!(T::NAME, "f32" | "f64" | "i32" | "i64"),
            Semiring::OrAnd => T::NAME == "u8",
        };
        has.then_some(Self { semiring, element: T::NAME })
    }

    /// Refuses a device without these elements.
    ///
    /// # Errors
    /// It has no double precision, or sums of f32 that are the same bytes on every device need subnormal numbers,
    /// which it does not have: exit code 2.
    pub(super) fn check(self, device: &DeviceInfo) -> Result<()> {
        let place = || format!("`device = {}`", device.id);
        if self.element == "f64" && !device.f64 {
            let what = format!("{} does not compute in double precision", device.name);
            return Err(Error::input(place(), what, "give matrices of f32, or leave the device out"));
        }
        if self.element == "f32" && self.semiring != Semiring::PlusTimes && !device.subnormal_f32 {
            let what = format!(
                "{} rounds small numbers of f32 to zero, and {} is exact",
                device.name, self.semiring
            );
            return Err(Error::input(place(), what, "leave the device out"));
        }
        Ok(())
    }

    /// The name of the kernel.
    pub(super) fn name(self) -> String {
        format!("{}-{}", self.semiring, self.element)
    }

    fn is_integer(self) -> bool {
        matches!(self.element, "i32" | "i64")
    }

    /// Elements along the inner dimension of one packed element: bits are packed by the word.
    pub(super) fn per_packed(self) -> usize {
        if self.semiring == Semiring::OrAnd { 64 } else { 1 }
    }

    /// Bytes of an element, and of a packed one.
    pub(super) fn bytes(self) -> [usize; 2] {
        match self.element {
            "f32" | "i32" => [4, 4],
            "u8" => [1, 8],
            _ => [8, 8],
        }
    }

    /// Whether elements are looked at first: a fast kernel computes with most, an exact one with all.
    pub(super) fn scans(self, variant: Variant) -> bool {
        let fast_float = self.element == "f32" && variant.slab > 0;
        self.is_integer() || fast_float && self.semiring != Semiring::PlusTimes
    }
}

/// One shape of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variant {
    /// Elements of a vector.
    pub vector: usize,
    /// Rows of C that a work-item holds.
    pub rows: usize,
    /// Vectors of C in each of them.
    pub wide: usize,
    /// Work-items of a group, along the rows and along the columns of C.
    pub group: [usize; 2],
    /// Rows of a slab of A and B in local memory; 0 without local memory, where a group is one work-item.
    pub slab: usize,
}

impl Variant {
    const fn tiled(vector: usize, rows: usize, wide: usize, group: [usize; 2], slab: usize) -> Self {
        Self { vector, rows, wide, group, slab }
    }

    const fn alone(vector: usize, rows: usize, wide: usize) -> Self {
        Self { vector, rows, wide, group: [1, 1], slab: 0 }
    }

    /// The variants through local memory, for GPUs, and those by single work-items, for cores.
    pub(super) fn styles(arithmetic: Arithmetic) -> [Vec<Self>; 2] {
        match arithmetic.bytes()[1] {
            4 => [
                vec![
                    Self::tiled(4, 8, 2, [16, 16], 8),
                    Self::tiled(4, 4, 1, [16, 16], 16),
                    Self::tiled(4, 8, 1, [8, 16], 16),
                ],
                vec![
                    Self::alone(16, 8, 3),
                    Self::alone(16, 6, 2),
                    Self::alone(8, 6, 2),
                    Self::alone(4, 6, 2),
                ],
            ],
            _ => [
                vec![
                    Self::tiled(2, 4, 2, [16, 16], 16),
                    Self::tiled(2, 8, 2, [8, 16], 16),
                    Self::tiled(2, 8, 4, [8, 8], 16),
                ],
                vec![Self::alone(8, 8, 3), Self::alone(8, 6, 2), Self::alone(4, 6, 2), Self::alone(2, 6, 2)],
            ],
        }
    }

    /// The name in the cache.
    pub(super) fn name(self) -> String {
        let Self { vector, rows, wide, group: [down, across], slab } = self;
        format!("{rows}x{wide}x{vector}-{down}x{across}-{slab}")
    }

    /// Rows of C that a group holds.
    fn tile_rows(self) -> usize {
        self.rows * self.group[0]
    }

    /// Columns of C that a group holds.
    fn tile_cols(self) -> usize {
        self.wide * self.vector * self.group[1]
    }

    /// The definitions of the source's macros.
    pub(super) fn options(self, arithmetic: Arithmetic) -> String {
        let element = match arithmetic.element {
            "f32" => 0,
            "f64" => 1,
            "i32" => 2,
            "i64" => 3,
            _ => 4,
        };
        let semiring = match arithmetic.semiring {
            Semiring::PlusTimes => 0,
            Semiring::MaxPlus => 1,
            Semiring::MinPlus => 2,
            Semiring::OrAnd => 3,
        };
        let scans = u8::from(arithmetic.scans(self));
        let Self { vector, rows, wide, group: [down, across], slab } = self;
        format!(
            "-DTYPE={element} -DSEMIRING={semiring} -DSCANS={scans} -DVECTOR={vector} -DROWS={rows} \
             -DWIDE={wide} -DDOWN={down} -DACROSS={across} -DSLAB={slab}"
        )
    }
}

/// The bytes of the buffers of a tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sizes {
    pub c: u64,
    /// A and B as they arrive.
    pub a: u64,
    pub b: u64,
    /// A and B as they are packed, for the variant that pads most.
    pub packed_a: u64,
    pub packed_b: u64,
}

impl Sizes {
    /// Bytes of the number of the last update that `update_exact` had to compute.
    pub(super) const FLAG: u64 = 4;

    /// For a tile of `rows` x `cols`, and A of at most `depth` columns.
    pub(super) fn new(arithmetic: Arithmetic, rows: u64, cols: u64, depth: u64) -> Self {
        let [bytes, packed] = arithmetic.bytes().map(|bytes| bytes as u64);
        let padded = depth.div_ceil(arithmetic.per_packed() as u64).next_multiple_of(MOST_SLAB as u64);
        // A driver refuses memory without bytes.
        let area = |rows: u64, cols: u64, bytes: u64| rows.saturating_mul(cols).saturating_mul(bytes).max(1);
        let strips = |length: u64| area(length.saturating_add(TILE_BYTES as u64 / packed), padded, packed);
        Self {
            // A vector at the end of the last row may reach beyond it.
            c: area(rows, pitch(cols), bytes).saturating_add(MOST_VECTOR as u64 * bytes),
            a: area(rows, depth, bytes),
            b: area(depth, cols, bytes),
            packed_a: strips(rows),
            packed_b: strips(cols),
        }
    }

    /// Of all buffers together.
    pub(super) fn total(self) -> u64 {
        let Self { c, a, b, packed_a, packed_b } = self;
        [c, a, b, packed_a, packed_b, Self::FLAG].into_iter().fold(0, u64::saturating_add)
    }
}

/// Elements from the start of a row of C on a device to the start of the next.
pub(super) fn pitch(cols: u64) -> u64 {
    cols.next_multiple_of(MOST_VECTOR as u64)
}

/// The strips of packed panels, and the work-items of the kernels that pack and multiply them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Strips {
    /// Strips of A and of B.
    pub count: [usize; 2],
    /// Packed elements along the inner dimension.
    pub depth: usize,
    variant: Variant,
    arithmetic: Arithmetic,
}

/// Work-items in each direction, and those of a group; zeros let the driver choose.
#[derive(Debug, Clone, Copy)]
pub(super) struct Items {
    pub global: [usize; 3],
    pub local: [usize; 3],
}

impl Strips {
    pub(super) fn new(variant: Variant, arithmetic: Arithmetic, [rows, depth, cols]: [usize; 3]) -> Self {
        let depth = depth.div_ceil(arithmetic.per_packed()).next_multiple_of(variant.slab.max(1));
        let count = [rows.div_ceil(variant.tile_rows()), cols.div_ceil(variant.tile_cols())];
        Self { count, depth, variant, arithmetic }
    }

    /// Bytes of packed A and B.
    pub(super) fn bytes(self) -> [u64; 2] {
        let line = (self.depth * self.arithmetic.bytes()[1]) as u64;
        let Self { count: [down, across], variant, .. } = self;
        [(down * variant.tile_rows()) as u64 * line, (across * variant.tile_cols()) as u64 * line]
    }

    /// Of `clear` and `scan`, which pass over all elements.
    pub(super) fn sweep(variant: Variant) -> Items {
        match variant.slab {
            0 => Items { global: [64, 1, 1], local: [1; 3] },
            _ => Items { global: [256 * 256, 1, 1], local: [256, 1, 1] },
        }
    }

    /// Of `pack_a`.
    pub(super) fn pack_a(self) -> Items {
        let rows = self.count[0] * self.variant.tile_rows();
        match (self.arithmetic.per_packed(), self.variant.slab) {
            (1, 0) => Items { global: [self.depth.div_ceil(16), self.count[0], 1], local: [1; 3] },
            (1, _) => Items { global: [self.depth.next_multiple_of(16), rows, 1], local: [16, 16, 1] },
            _ => Items { global: [self.depth, rows, 1], local: self.pack_bits() },
        }
    }

    /// Of `pack_b`.
    pub(super) fn pack_b(self) -> Items {
        let cols = self.count[1] * self.variant.tile_cols();
        match (self.arithmetic.per_packed(), self.variant.slab) {
            (1, 0) => Items { global: [self.count[1], self.depth.div_ceil(16), 1], local: [1; 3] },
            (1, _) => Items { global: [cols, self.depth, 1], local: [64, 4, 1] },
            _ => Items { global: [cols / self.variant.vector, self.depth, 1], local: self.pack_bits() },
        }
    }

    /// Work-items of a group that packs bits. Through local memory, rows, vectors and the depth are multiples of 16.
    fn pack_bits(self) -> [usize; 3] {
        if self.variant.slab > 0 { [16, 16, 1] } else { [0; 3] }
    }

    /// Of `update` for some of the depth.
    pub(super) fn update(self, depth: usize) -> Items {
        let Self { count: [down, across], variant, arithmetic, .. } = self;
        if variant.slab > 0 {
            let [items_down, items_across] = variant.group;
            return Items {
                global: [across * items_across, down * items_down, 1],
                local: [items_across, items_down, 1],
            };
        }
        // Strips of B that the second-level cache holds while the strips of A pass by.
        let strip = variant.tile_cols() * depth * arithmetic.bytes()[1];
        let block = (BLOCK_BYTES / strip.max(1)).clamp(1, across.max(1));
        Items { global: [block, down, across.div_ceil(block)], local: [1; 3] }
    }

    /// The parts of the depth that are added to C one after the other: all at once through local memory, and on
    /// cores as much as their caches hold.
    pub(super) fn parts(self) -> impl Iterator<Item = Range<usize>> {
        let most = DEPTH_BYTES / self.arithmetic.bytes()[1];
        let count = if self.variant.slab > 0 { 1 } else { self.depth.div_ceil(most).max(1) };
        let length = self.depth.div_ceil(count).max(1);
        (0..self.depth).step_by(length).map(move |start| start..(start + length).min(self.depth))
    }
}
