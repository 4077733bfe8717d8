//! The library seen from outside, through its public interface alone: laws that hold for every input, the
//! platforms of the literature, and the fluid model beside SimGrid's; and the sources: the public interface
//! on file, and the layers of folders. One binary, since each one more costs a link of
//! the library.
#![allow(clippy::unwrap_used)] // A test says what went wrong by failing.

mod api;
mod laws;
mod layers;
mod panics;
mod platforms;
mod simgrid;
mod turns;
