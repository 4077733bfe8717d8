//! Worlds of MPI where there is none: on Windows, and on systems of 32 bits.

use super::World;
use crate::error::{Error, Result};
use crate::run::Monitor;
use std::time::Duration;

fn none<T>() -> Result<T> {
    let what = "this system has no MPI for apportion: it runs on the threads of one process";
    Err(Error::input("`engine = mpi`", what, "use `engine = threads`, or a 64-bit Unix system"))
}

impl World {
    /// An error: there is no MPI on this system.
    ///
    /// # Errors
    /// Always: exit code 2.
    pub fn mpi(_: &Monitor) -> Result<Self> {
        none()
    }

    /// An error: there is no MPI on this system.
    ///
    /// # Errors
    /// Always: exit code 2.
    pub fn mpi_within(_: &Monitor, _: Option<Duration>) -> Result<Self> {
        none()
    }

    /// An error: there is no MPI on this system.
    ///
    /// # Errors
    /// Always: exit code 2.
    pub fn adopt(_: usize, _: &Monitor) -> Result<Self> {
        none()
    }

    /// An error: there is no MPI on this system.
    ///
    /// # Errors
    /// Always: exit code 2.
    pub fn adopt_fortran(_: i32, _: &Monitor) -> Result<Self> {
        none()
    }
}
