//! The two mpiruns.

use crate::bench::Bench;
use apportion_testing::{Need, binary, skip};
use std::ffi::OsStr;
use std::process::{Command, Output};

/// The vendor of the mpirun.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mpi {
    Open,
    Mpich,
}

impl Mpi {
    /// The mpirun, if it is installed; else the test is reported as skipped.
    pub fn mpirun(self) -> Option<&'static str> {
        let (names, mark) = match self {
            Self::Open => (["mpirun.openmpi", "mpirun"], "Open MPI"),
            Self::Mpich => (["mpirun.mpich", "mpirun"], "HYDRA"),
        };
        let is = |name: &&str| {
            let said = Command::new(name).arg("--version").output();
            said.is_ok_and(|out| String::from_utf8_lossy(&out.stdout).contains(mark))
        };
        let found = names.into_iter().find(is);
        if found.is_none() {
            let (need, name) = match self {
                Self::Open => (Need::Mpi, "Open MPI"),
                Self::Mpich => (Need::Mpich, "MPICH"),
            };
            skip(need, format!("no mpirun of {name} is installed"));
        }
        found
    }

    /// `mpirun -n P apportion …` in a directory, if there is such an mpirun.
    pub fn command(self, bench: &Bench, processes: usize, arguments: &str) -> Option<Command> {
        let mut command = self.program(processes, binary())?;
        command.args(arguments.split(' '));
        command.current_dir(bench.path(".")).env("XDG_CACHE_HOME", bench.cache());
        Some(command)
    }

    /// `mpirun -n P program`.
    pub fn program(self, processes: usize, program: impl AsRef<OsStr>) -> Option<Command> {
        let mut command = Command::new(self.mpirun()?);
        if self == Self::Open {
            command.args(["--oversubscribe", "--bind-to", "none"]);
            if rustix::process::geteuid().is_root() {
                command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
            }
        }
        command.args(["-n", &processes.to_string()]).arg(program);
        Some(command)
    }
}

/// The lines that `apportion` itself prints to stderr; mpirun adds its own.
pub fn said(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    text.lines().filter(|line| line.starts_with("apportion:")).map(str::to_owned).collect()
}
