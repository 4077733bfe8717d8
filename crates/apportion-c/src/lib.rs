//! `libapportion`: apportion for C, Fortran, and everything that calls C.
//!
//! `include/apportion.h` is the documentation. The functions here check every pointer and length, call the
//! library, and turn errors into codes and messages. No panic leaves them, and no function calls back.
#![allow(unsafe_code)]

mod advection;
mod balancer;
mod boundary;
mod factorisation;
mod graph;
mod layout;
mod matmul;
mod models;
mod processors;
mod product;
mod shares;
mod world;
