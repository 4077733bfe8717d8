//! Matrices that are distributed over files: a layout file names the `.npy` files of the processes and says
//! which block of the matrix each of them holds.

mod file;
mod read;
mod write;

pub use file::DistributedFile;
pub use write::{LocalArray, layout_file_text, local_arrays};

#[cfg(test)]
mod tests;
