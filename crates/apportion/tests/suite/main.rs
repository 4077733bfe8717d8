//! The library seen from outside, through its public interface alone: laws that hold for every input, the
//! platforms of the literature, and the fluid model beside SimGrid's. One binary, since each one more costs a link of
//! the library.
#![allow(clippy::unwrap_used)] // A test says what went wrong by failing.

mod jacobi;
mod laws;
mod panics;
mod platforms;
mod simgrid;
mod turns;
