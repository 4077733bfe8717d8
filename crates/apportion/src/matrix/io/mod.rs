//! Matrices on disk: `.npy`, Matrix Market, rectangles of them, and matrices distributed over several files.

mod distributed;
mod fill;
pub(super) mod market;
pub(super) mod npy;
mod npy_file;
mod random;
mod rectangles;

pub use distributed::{DistributedFile, LocalArray, layout_file_text, local_arrays};
pub use npy::{
    NpyHeader, npy_array_header, npy_header, npy_header_bool, read_npy_array, read_npy_header, write_npy,
    write_npy_bool, write_npy_rows,
};
pub use npy_file::NpyFile;
pub use random::{RandomKind, write_random};
pub(super) use rectangles::transpose;
pub use rectangles::{BlockViews, LocalBlocks, read_tiles, tiles_header, views_of, write_tiles};
