//! Products of a sparse matrix with a vector, again and again, and systems solved by them, on unequal processors.

mod application;
mod part;
mod problem;
mod record;
mod task;

pub use application::SpmvMethod;
pub use task::{SpmvMatrix, SpmvOutcome, SpmvTask, VectorSource, spmv};

#[cfg(test)]
mod tests;
