//! The fluid model beside SimGrid's.

mod conformance;
mod replay;
mod traces;
