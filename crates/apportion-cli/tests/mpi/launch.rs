//! Matrices, platforms, and the two mpiruns.

use apportion_testing::{Need, binary, skip};
use std::ffi::OsStr;
use std::ops::Deref;
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

/// A separate directory for the test, with the inputs of a product under MPI.
pub struct Bench(apportion_testing::Bench);

impl Deref for Bench {
    type Target = apportion_testing::Bench;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Bench {
    pub fn new() -> Self {
        Self(apportion_testing::Bench::new())
    }

    /// A platform of speeds that need no measuring: two to one to one …, or the first alone worth anything.
    pub fn platform(&self, processors: usize, lone: bool) {
        let speed = |i: usize| match (i, lone) {
            (0, true) => 1e6,
            (0, false) => 20.0,
            (i, false) => 10.0 / i as f64,
            _ => 1.0,
        };
        let processor = |i| format!("[[processor]]\nname = \"p{i}\"\nspeed = \"{} Mflop/s\"\n", speed(i));
        std::fs::write(self.path("platform.toml"), (0..processors).map(processor).collect::<String>())
            .unwrap();
    }

    /// A matrix of whole numbers from -11 to 11, as `<f8`, `<f4`, `<i8`, `<i4`, `|b1` or `|u1`.
    pub fn matrix(&self, name: &str, descr: &str, (rows, cols): (usize, usize), fortran: bool) {
        let number = |i: usize| ((i * 7 + i / 5) % 23) as i32 - 11;
        let order = if fortran { "True" } else { "False" };
        let dict = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': ({rows}, {cols}), }}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((dict.len() as u16).to_le_bytes());
        bytes.extend(dict.bytes());
        for x in (0..rows * cols).map(number) {
            match descr {
                "<f8" => bytes.extend(f64::from(x).to_le_bytes()),
                "<f4" => bytes.extend((x as f32).to_le_bytes()),
                "<i8" => bytes.extend(i64::from(x).to_le_bytes()),
                "<i4" => bytes.extend(x.to_le_bytes()),
                _ => bytes.push(u8::from(x > 7)),
            }
        }
        std::fs::write(self.path(name), bytes).unwrap();
    }
}

/// The lines that `apportion` itself prints to stderr; mpirun adds its own.
pub fn said(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    text.lines().filter(|line| line.starts_with("apportion:")).map(str::to_owned).collect()
}
