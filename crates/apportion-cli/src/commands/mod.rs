//! One file per command: prepare, call the library, print.

pub mod advect;
pub mod arrange;
pub mod balance;
mod compare;
pub mod completions;
pub mod demo;
pub mod detect;
pub mod doctor;
pub mod factor;
mod halos;
mod layouts;
mod links;
pub mod mdem;
pub mod measure;
pub mod merge;
pub mod partition;
pub mod plot;
pub mod product;
pub mod random;
mod replay;
pub mod report;
pub mod run;
mod run_once;
pub mod simulate;
pub mod solve;
pub mod study;
mod sweep;
