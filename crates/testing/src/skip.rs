//! Tests that need what this machine lacks, and tests with many cases.

use std::fmt::Display;
use std::io::Write as _;
use std::path::PathBuf;

/// A program, a library or a right that some machines lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Open MPI.
    Mpi,
    /// MPICH.
    Mpich,
    /// A BLAS library with the C interface.
    Blas,
    /// SimGrid's `smpirun`.
    Simgrid,
    /// METIS's `gpmetis`.
    Metis,
    /// Scotch's `gmap`.
    Scotch,
    /// The right to create network namespaces and to shape the traffic between them.
    Netns,
    /// The right to mount a file system.
    Mount,
    /// The right to make control groups of version 1 that limit memory.
    Groups,
    /// Two processor cores.
    Cores,
    /// Python 3.
    Python,
    /// A C compiler and pkg-config.
    C,
    /// LAMMPS.
    Lammps,
    /// GROMACS.
    Gromacs,
    /// A C compiler, `cc`.
    Compiler,
    /// Valgrind.
    Valgrind,
    /// Chromium.
    Browser,
    /// An OpenCL device, such as the cores by pocl.
    Device,
    /// NVIDIA's compilers, as Python's wheels have them.
    Nvrtc,
    /// ShellCheck.
    Shellcheck,
}

impl Need {
    const ALL: [Self; 20] = [
        Self::Mpi,
        Self::Mpich,
        Self::Blas,
        Self::Simgrid,
        Self::Metis,
        Self::Scotch,
        Self::Netns,
        Self::Mount,
        Self::Groups,
        Self::Cores,
        Self::Python,
        Self::C,
        Self::Lammps,
        Self::Gromacs,
        Self::Compiler,
        Self::Valgrind,
        Self::Browser,
        Self::Device,
        Self::Nvrtc,
        Self::Shellcheck,
    ];

    /// Its name in `APPORTION_REQUIRE`.
    fn name(self) -> &'static str {
        match self {
            Self::Mpi => "mpi",
            Self::Mpich => "mpich",
            Self::Blas => "blas",
            Self::Simgrid => "simgrid",
            Self::Metis => "metis",
            Self::Scotch => "scotch",
            Self::Netns => "netns",
            Self::Mount => "mount",
            Self::Groups => "groups",
            Self::Cores => "cores",
            Self::Python => "python",
            Self::C => "c",
            Self::Lammps => "lammps",
            Self::Gromacs => "gromacs",
            Self::Compiler => "compiler",
            Self::Valgrind => "valgrind",
            Self::Browser => "browser",
            Self::Device => "device",
            Self::Nvrtc => "nvrtc",
            Self::Shellcheck => "shellcheck",
        }
    }
}

/// Reports that the running test is skipped: call it, then return from the test.
///
/// # Panics
/// If `APPORTION_REQUIRE`, a list of names separated by commas, contains `all` or the name of `need`; if it
/// contains an unknown name; if the file named by `APPORTION_SKIPS` cannot be written.
pub fn skip(need: Need, why: impl Display) {
    let thread = std::thread::current();
    let line = line(thread.name().unwrap_or("a test"), need, &why.to_string());
    let required = std::env::var("APPORTION_REQUIRE").unwrap_or_default();
    assert!(!requires(&required, need), "APPORTION_REQUIRE={required} forbids to skip. {line}");
    eprintln!("{line}");
    if let Some(path) = std::env::var_os("APPORTION_SKIPS") {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&path);
        // One call of write, so that lines of tests that run at the same time stay whole.
        let written = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
        written.unwrap_or_else(|error| panic!("APPORTION_SKIPS={}: {error}", path.display()));
    }
}

/// How many cases a test tries: `few`, or `all` where `APPORTION_TESTS` is `all`, as in `./test all`. Tests
/// that are slow as a whole have the attribute `#[ignore = "slow"]` instead.
pub fn cases<T>(few: T, all: T) -> T {
    if std::env::var_os("APPORTION_TESTS").is_some_and(|tests| tests == "all") { all } else { few }
}

fn line(test: &str, need: Need, why: &str) -> String {
    format!(
        "SKIPPED: {test} needs {} ({})",
        need.name(),
        why.split_whitespace().collect::<Vec<_>>().join(" ")
    )
}

fn requires(list: &str, need: Need) -> bool {
    let mut names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
    names.any(|name| {
        let known = name == "all" || Need::ALL.iter().any(|need| need.name() == name);
        assert!(known, "APPORTION_REQUIRE: unknown name '{name}'");
        name == "all" || name == need.name()
    })
}

/// The path of a program on `PATH`, the first of these names that is there.
pub fn program(names: &[&str]) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH")?;
    let places: Vec<PathBuf> = std::env::split_paths(&paths).collect();
    let all = names.iter().flat_map(|name| places.iter().map(move |place| place.join(name)));
    all.into_iter().find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_requires_what_it_names() {
        assert!(!requires("", Need::Mpi));
        assert!(requires("blas, mpi", Need::Mpi));
        assert!(!requires("mpich,blas", Need::Mpi), "a name is a whole word");
        assert!(Need::ALL.iter().all(|&need| requires("all", need)));
    }

    #[test]
    #[should_panic(expected = "unknown name 'mpi2'")]
    fn an_unknown_name_is_an_error() {
        requires("mpi2", Need::Mpi);
    }

    #[test]
    fn a_skip_is_one_line() {
        let text = line("laws::some_test", Need::Simgrid, "no smpirun\n  here");
        assert_eq!(text, "SKIPPED: laws::some_test needs simgrid (no smpirun here)");
    }
}
