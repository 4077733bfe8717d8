//! From files and flags to values.

pub mod cut;
pub mod processors;
pub mod product;
pub mod replay;
pub mod sections;
pub mod world;
