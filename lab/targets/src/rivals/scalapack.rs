//! Apportion on two MPI ranks beside ScaLAPACK: two ranks pinned to two cores, one BLAS thread each, on equal cores
//! and with a third of one.
//!
//! Apportion measures the speeds of its ranks at each start; that time is not in its seconds. ScaLAPACK takes
//! its best grid and block. Neither's time has reading, scattering or verification in it.

use super::scalapack_rank::{self, Routine};
use super::{Row, binary, mpirun, ranks, seconds};
use crate::median;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const TURNS: usize = 3;

/// A routine of ScaLAPACK beside the arguments of apportion, whose operands `make` leaves in a directory. Its speed
/// is to be the first limit's of ScaLAPACK's on equal cores, and the second's with a third of one.
pub fn rows(
    sizes: &[u64],
    routine: Routine,
    arguments: &[&str],
    make: impl Fn(&Path, &Path, u64),
    limits: [f64; 2],
) -> Vec<Row> {
    let (Some(program), Some(mpirun), Some(_)) = (binary(), mpirun(), scalapack_rank::library()) else {
        eprintln!(
            "ScaLAPACK: needs the release binary (cargo build --release), Open MPI's mpirun and \
             libscalapack-openmpi2.2; its rows are left out"
        );
        return Vec::new();
    };
    let place = tempfile::tempdir().expect("a temporary directory");
    let at = place.path();
    let mut rows = Vec::new();
    for &n in sizes {
        make(&program, at, n);
        let beside = |cores: &str, join: &str, limit: f64| {
            let own = [&program, at];
            let ratio = beside(own, mpirun, (routine, n), arguments, join)?;
            Some((format!("n = {n}, {cores}, of {}'s speed", routine.name()), ratio, limit, ratio >= limit))
        };
        rows.extend(beside("equal cores", "", limits[0]));
        let slow = Slow::second_core();
        rows.extend(beside(slow.name(), &slow.join(), limits[1]));
    }
    rows
}

/// The rival's seconds / apportion's. Each rank pins itself to a core; rank 1 first runs `join`.
fn beside(
    [program, at]: [&Path; 2],
    mpirun: &str,
    (routine, n): (Routine, u64),
    arguments: &[&str],
    join: &str,
) -> Option<f64> {
    let script = format!(
        "rank=$OMPI_COMM_WORLD_RANK; if [ $rank = 1 ]; then :; {join} fi; exec taskset -c $rank \"$@\""
    );
    let start = |program: &Path| {
        let mut command = ranks(mpirun);
        // A cache of its own: the speeds of other runs are not those of these cores.
        command.args(["sh", "-c", &script, "sh"]).arg(program).current_dir(at);
        command.env("XDG_CACHE_HOME", at).env("OPENBLAS_NUM_THREADS", "1");
        command
    };
    let turn = || seconds(start(program).args(arguments).args(["--engine", "mpi", "--json", "--quiet"]));
    let own = median((0..TURNS).map(|_| turn()).collect::<Option<Vec<_>>>()?);
    let this = std::env::current_exe().ok()?;
    let mut rival = start(&this);
    let rival = rival.args([scalapack_rank::ARGUMENT, routine.name(), &n.to_string()]);
    let output = rival.output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let Ok(theirs) = text.trim().parse::<f64>() else {
        eprintln!("{}, n = {n}: {text}{}", routine.name(), String::from_utf8_lossy(&output.stderr));
        return None;
    };
    Some(theirs / own)
}

/// What takes two thirds of the second core from rank 1, until dropped.
enum Slow {
    /// A control group with a quota: its folder, and the file that takes processes.
    Quota(PathBuf, PathBuf),
    /// Two loops that share the core with the rank.
    Loops(Vec<Child>),
}

impl Slow {
    fn second_core() -> Self {
        quota().unwrap_or_else(|| {
            let mut taskset = Command::new("taskset");
            taskset.args(["-c", "1", "sh", "-c", "while :; do :; done"]).stderr(Stdio::null());
            Self::Loops((0..2).filter_map(|_| taskset.spawn().ok()).collect())
        })
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Quota(..) => "one core at a quota of 1/3",
            Self::Loops(_) => "one core shared with two loops",
        }
    }

    /// What the rank's shell runs.
    fn join(&self) -> String {
        match self {
            Self::Quota(_, tasks) => format!("echo $$ > {};", tasks.display()),
            Self::Loops(_) => String::new(),
        }
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        match self {
            Self::Quota(folder, _) => {
                let _ = std::fs::remove_dir(folder);
            }
            Self::Loops(loops) => {
                for child in loops {
                    let _ = child.kill();
                    let _ = child.wait();
                }
            }
        }
    }
}

/// A control group that has a third of a core, in periods of 15 ms, where this user may make one.
fn quota() -> Option<Slow> {
    let group = format!("apportion-bench-{}", std::process::id());
    let first = Path::new("/sys/fs/cgroup/cpu").join(&group);
    let second = Path::new("/sys/fs/cgroup").join(&group);
    let attempt = |folder: PathBuf, tasks: &str, settings: &[(&str, &str)]| {
        std::fs::create_dir(&folder).ok()?;
        let slow = Slow::Quota(folder.clone(), folder.join(tasks));
        // A file that is not there belongs to another version of control groups, or another controller.
        let set = |(file, value): &(&str, &str)| {
            folder.join(file).exists() && std::fs::write(folder.join(file), value).is_ok()
        };
        settings.iter().all(set).then_some(slow)
    };
    attempt(first, "tasks", &[("cpu.cfs_period_us", "15000"), ("cpu.cfs_quota_us", "5000")])
        .or_else(|| attempt(second, "cgroup.procs", &[("cpu.max", "5000 15000")]))
}
