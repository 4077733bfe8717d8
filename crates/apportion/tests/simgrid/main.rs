//! The fluid model beside SimGrid's.
#![allow(clippy::unwrap_used)] // A test says what went wrong by failing.

mod conformance;
mod replay;
