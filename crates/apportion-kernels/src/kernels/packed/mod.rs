//! Products that are packed and blocked so that they run at the speed of the registers: one body for every
//! semiring and every register file.
//!
//! [`tile`](block::tile) is written in terms of an [`Operation`] on [`Vector`](vector::Vector)s, which
//! `avx512`, `avx2`, `neon` and `portable` implement; `block` holds the loops of one thread around it, `together`
//! those of a team; `substitution` solves triangular systems in the same registers. An element of C has the same bits
//! at any place of a product, with any strides and by any number of threads: its sum runs over p = 0, 1, … in blocks of
//! one depth.
//!
//! Source: Goto and van de Geijn, Anatomy of high-performance matrix multiplication, 2008, with the roles of
//! A and B exchanged, as matrices are stored by rows here.

mod block;
mod portable;
mod substitution;
mod together;
mod vector;

#[cfg(target_arch = "x86_64")]
pub(super) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(super) mod avx512;
#[cfg(target_arch = "aarch64")]
pub(super) mod neon;

pub(crate) use block::MicroKernel;
pub use block::PackedMemory;
pub(super) use portable::{Lanes, substitution_of as portable_substitution_of, tile_of as portable_tile_of};
pub(crate) use substitution::Substitution;
pub(super) use substitution::{Substituted, TilePlace};
pub(super) use together::product_together;
pub(crate) use vector::Number;
pub(super) use vector::{Best, PlusTimes, Tiled};

/// The micro-kernels that this processor can run, best first and the portable one last, for vectors of one
/// name in `avx512`, `avx2` and `neon`.
macro_rules! tiles {
    ($vector:ident, $lanes:literal, $operation:ty) => {{
        use $crate::kernels::packed;
        let mut tiles = Vec::with_capacity(3);
        #[cfg(target_arch = "x86_64")]
        {
            tiles.extend(<packed::avx512::$vector as packed::Tiled>::tile_of::<$operation>());
            tiles.extend(<packed::avx2::$vector as packed::Tiled>::tile_of::<$operation>());
        }
        #[cfg(target_arch = "aarch64")]
        tiles.extend(<packed::neon::$vector as packed::Tiled>::tile_of::<$operation>());
        tiles.push(packed::portable_tile_of::<packed::Lanes<Self, $lanes>, $operation>());
        tiles
    }};
}
pub(super) use tiles;

/// The same for substitution.
macro_rules! substitutions_of {
    ($vector:ident, $lanes:literal) => {{
        use $crate::kernels::packed;
        let mut all = Vec::with_capacity(3);
        #[cfg(target_arch = "x86_64")]
        {
            all.extend(<packed::avx512::$vector as packed::Substituted>::substitution());
            all.extend(<packed::avx2::$vector as packed::Substituted>::substitution());
        }
        #[cfg(target_arch = "aarch64")]
        all.extend(<packed::neon::$vector as packed::Substituted>::substitution());
        all.push(packed::portable_substitution_of::<packed::Lanes<Self, $lanes>>());
        all
    }};
}
pub(super) use substitutions_of;
