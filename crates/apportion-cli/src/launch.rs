//! Commands that a launcher such as `mpirun` or `srun` starts several times.

use crate::args::EngineName;
use crate::output::distinct_files::OUTPUTS;
use apportion::error::{Error, Result};
use apportion::run::MpiLaunch;
use clap::ArgMatches;
use std::path::{Path, PathBuf};

/// Commands without `--engine` whose tasks join a world.
const JOINING: [&str; 2] = ["balance", "run"];

/// Rejects a command of which each of a launcher's tasks would do the whole work, or write the same file. A
/// command that only prints may run in every task; commands that join a world look at it themselves.
///
/// # Errors
/// The launcher, and what to do: exit code 2.
pub fn check(matches: &ArgMatches) -> Result<()> {
    let (Some((command, matches)), Some(launch)) = (matches.subcommand(), MpiLaunch::detect()) else {
        return Ok(());
    };
    let MpiLaunch { size, launcher, .. } = launch;
    if size == 1 {
        return Ok(());
    }
    let started = format!("{} started {size} processes, each of which would", launcher.name);
    let independent = format!("for work of its own unset {}", launcher.variables());
    let without = format!("run it without {}; {independent}", launcher.name);
    match matches.try_get_one::<EngineName>("engine") {
        Ok(Some(EngineName::Threads)) => Err(Error::input(
            "--engine",
            format!("{started} do the whole work on threads"),
            format!("leave out --engine threads, or {without}"),
        )),
        Ok(_) => Ok(()),
        // A recorded machine is no host of the world.
        Err(_) if command == "detect" && matches.get_one::<PathBuf>("root").is_none() => Ok(()),
        Err(_) if JOINING.contains(&command) => Ok(()),
        Err(_) => match output(matches) {
            Some(path) => {
                Err(Error::input(path.display().to_string(), format!("{started} write it"), without))
            }
            None => Ok(()),
        },
    }
}

/// The first file that a command writes; descriptors and devices take what all write.
fn output(matches: &ArgMatches) -> Option<&Path> {
    let files = OUTPUTS.iter().chain(&["export_simgrid"]);
    let paths = files.filter_map(|id| matches.try_get_one::<PathBuf>(id).ok().flatten());
    paths.map(PathBuf::as_path).find(|path| *path != Path::new("-") && !path.starts_with("/dev"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test says what went wrong by failing.
mod tests {
    use super::*;
    use crate::args::headings::command;

    /// Every command that has engines is recognised, and no other.
    #[test]
    fn engines_are_found() {
        let sample = |name: &str| match name {
            "matmul" => vec!["a.npy", "b.npy"],
            "power" => vec!["a.npy", "-k", "2"],
            "closure" | "mdem" => vec!["a.npy"],
            "factor" => vec!["a.npy", "--kind", "lu"],
            "solve" => vec!["a.npy", "b.npy"],
            "advect" => vec!["--field", "x.npy", "--courant", "0", "--steps", "1"],
            "spmv" => vec!["a.mtx", "x.npy"],
            "measure" => vec![],
            other => panic!("{other} has --engine: add it here"),
        };
        for sub in command()
            .get_subcommands()
            .filter(|sub| sub.get_arguments().any(|a| a.get_long() == Some("engine")))
        {
            let words =
                [&["apportion", sub.get_name()][..], &sample(sub.get_name()), &["--engine", "mpi"]].concat();
            let matches = command().try_get_matches_from(words).unwrap();
            let (_, matches) = matches.subcommand().unwrap();
            assert_eq!(matches.get_one::<EngineName>("engine"), Some(&EngineName::Mpi), "{}", sub.get_name());
        }
    }

    #[test]
    fn files_are_outputs_and_descriptors_are_not() {
        let of = |words: &[&str]| {
            let matches = command().try_get_matches_from(["apportion"].iter().chain(words)).unwrap();
            output(matches.subcommand().unwrap().1).map(Path::to_path_buf)
        };
        let random = |to: &'static str| of(&["random", "2", "2", "-o", to]);
        assert_eq!(random("a.npy"), Some("a.npy".into()));
        assert_eq!(random("/dev/stdout"), None);
        assert_eq!(of(&["detect"]), None);
        let simulate = ["simulate", "--plan", "p", "--platform", "q", "--export-simgrid", "d"];
        assert_eq!(of(&simulate), Some("d".into()));
    }
}
