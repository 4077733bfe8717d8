//! Matrices on disk: `.npy`, Matrix Market, rectangles of them, and matrices distributed over several files.

mod distributed;
pub(super) mod market;
pub(super) mod npy;
mod random;
mod rectangles;

pub use distributed::{DistributedFile, LocalArray, LocalArrayFile, layout_file_text, local_arrays};
pub use market::{MarketBanner, MarketField, MarketSymmetry};
pub use npy::{
    NpyArray, NpyHeader, npy_header, read_npy_array, read_npy_header, write_npy, write_npy_bool,
    write_npy_rows,
};
pub use random::{RandomKind, write_random};
pub(super) use rectangles::transpose;
pub use rectangles::{BlockViews, LocalBlocks, NpyFile, digest, read_tiles, views_of, write_tiles};
