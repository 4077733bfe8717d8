//! Launchers of parallel jobs, by the environment variables that they set for each task. They are read before
//! MPI is loaded.

/// A program that starts the tasks of a parallel job.
#[derive(Debug, PartialEq, Eq)]
pub struct Launcher {
    /// Its command, as users know it.
    pub name: &'static str,
    /// The variable of the number of tasks: of all, or of those on this host. Some launchers set none.
    size: Option<&'static str>,
    /// The variable of a task's number.
    rank: &'static str,
    /// True if its tasks most likely run Open MPI, false for MPICH and its relatives.
    open_mpi: bool,
    /// How its tasks become the processes of one MPI world.
    pub(crate) remedy: &'static str,
}

/// The variable of a task's number in the first process management interface of MPICH.
const PMI: &str = "PMI_RANK";

/// That in PMIx.
const PMIX: &str = "PMIX_RANK";

/// That of Slurm, with or without such an interface.
const SLURM: &str = "SLURM_PROCID";

const OWN_MPIRUN: &str = "use that library's own mpirun, or name mpirun's library in APPORTION_MPI";

/// The launchers, the innermost first: `mpirun` in a batch job starts its daemons by the system's launcher,
/// so that the tasks inherit the variables of both, and those of `mpirun` are theirs.
///
/// A Slurm batch script is one task, number 0, without a number of the step's tasks. Flux clears its
/// variables for batch scripts.
const LAUNCHERS: [Launcher; 11] = [
    row("mpirun", Some("OMPI_COMM_WORLD_SIZE"), "OMPI_COMM_WORLD_RANK", true, OWN_MPIRUN),
    row("mpirun of MVAPICH", Some("MV2_COMM_WORLD_SIZE"), "MV2_COMM_WORLD_RANK", false, OWN_MPIRUN),
    row("mpirun of MVAPICH", Some("MVP_COMM_WORLD_SIZE"), "MVP_COMM_WORLD_RANK", false, OWN_MPIRUN),
    row("mpirun_rsh", Some("MPIRUN_NPROCS"), "MPIRUN_RANK", false, OWN_MPIRUN),
    row(
        "jsrun",
        Some("JSM_NAMESPACE_SIZE"),
        "JSM_NAMESPACE_RANK",
        true,
        "name the library of the system's MPI (such as libmpi_ibm.so) in APPORTION_MPI",
    ),
    // Hydra, of MPICH and Intel MPI; the PMI and PMI-2 plug-ins of Slurm; PALS.
    row("mpirun", Some("PMI_SIZE"), PMI, false, OWN_MPIRUN),
    row(
        "mpiexec of PALS",
        Some("PALS_LOCAL_SIZE"),
        "PALS_RANKID",
        false,
        "name the library of Cray MPICH in APPORTION_MPI",
    ),
    row("aprun", None, "ALPS_APP_PE", false, "name the library of Cray MPICH in APPORTION_MPI"),
    row(
        "flux",
        Some("FLUX_JOB_SIZE"),
        "FLUX_TASK_RANK",
        true,
        "choose Flux's MPI plug-in, such as flux run -o pmi=pmix, or use mpirun",
    ),
    row(
        "srun",
        Some("SLURM_STEP_NUM_TASKS"),
        SLURM,
        true,
        "choose Slurm's MPI plug-in, such as srun --mpi=pmix (srun --mpi=list shows all), or use mpirun",
    ),
    row("the launcher", None, PMIX, true, "use an MPI library with PMIx, or its own mpirun"),
];

const fn row(
    name: &'static str,
    size: Option<&'static str>,
    rank: &'static str,
    open_mpi: bool,
    remedy: &'static str,
) -> Launcher {
    Launcher { name, size, rank, open_mpi, remedy }
}

impl Launcher {
    /// The variables by which a task is recognised: `SLURM_STEP_NUM_TASKS and SLURM_PROCID`.
    pub fn variables(&self) -> String {
        self.size.map_or(String::new(), |size| format!("{size} and ")) + self.rank
    }

    /// How each task works by itself.
    pub(crate) fn independence(&self) -> String {
        format!("for work of its own in each task, unset {}", self.variables())
    }
}

/// This process as one of the tasks that a launcher started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MpiLaunch {
    /// This process's rank.
    pub rank: usize,
    /// Number of processes that were started; where the launcher does not tell, the least number there can
    /// be.
    pub size: usize,
    /// True where Open MPI is the most likely library; false for MPICH and its relatives.
    pub(crate) open_mpi: bool,
    /// What started them.
    pub launcher: &'static Launcher,
    /// True if it has given them no interface by which an MPI library finds the others, as `srun --mpi=none` does.
    pub(crate) is_bare: bool,
}

impl MpiLaunch {
    /// Reads the environment; `None` if no known launcher started this process.
    pub fn detect() -> Option<Self> {
        Self::of(|name| std::env::var(name).ok())
    }

    /// True if there are other processes, or may be where the launcher does not tell.
    pub fn is_of_several(&self) -> bool {
        self.size > 1 || self.launcher.size.is_none()
    }

    fn of(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let number = |name: &str| variable(name)?.trim().parse::<usize>().ok();
        let by = |launcher: &'static Launcher| {
            let (size, rank) = (launcher.size.and_then(number), number(launcher.rank));
            if size.is_none() && rank.is_none() {
                return None;
            }
            let rank = rank.unwrap_or(0);
            let size = size.unwrap_or(1).max(rank + 1);
            let is_bare =
                launcher.rank == SLURM && [PMI, PMIX].into_iter().all(|name| number(name).is_none());
            Some(Self { rank, size, open_mpi: launcher.open_mpi, launcher, is_bare })
        };
        let found = LAUNCHERS.iter().find_map(by)?;
        // Systems set PMI's variables beside their own: the launcher is then theirs.
        let same = |launch: &Self| (launch.rank, launch.size) == (found.rank, found.size);
        let system = match found.launcher.rank == PMI {
            true => LAUNCHERS.iter().filter(|row| row.rank != PMI).filter_map(by).find(same),
            false => None,
        };
        Some(Self { launcher: system.map_or(found.launcher, |launch| launch.launcher), ..found })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(variables: &[(&str, &str)]) -> Option<(&'static str, usize, usize)> {
        let value = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
        MpiLaunch::of(value).map(|found| (found.launcher.name, found.rank, found.size))
    }

    #[test]
    fn every_launcher_is_recognised() {
        for launcher in &LAUNCHERS {
            let rank = (launcher.rank, "3");
            assert_eq!(launch(&[rank]), Some((launcher.name, 3, 4)));
            let Some(size) = launcher.size else { continue };
            assert_eq!(launch(&[rank, (size, "8")]), Some((launcher.name, 3, 8)));
            assert_eq!(launch(&[(size, "8")]), Some((launcher.name, 0, 8)));
            assert_eq!(launcher.variables(), format!("{size} and {}", launcher.rank));
        }
        assert_eq!(launch(&[("SLURM_NTASKS", "8"), ("PATH", "1")]), None);
        assert_eq!(launch(&[("PMI_RANK", "x")]), None);
    }

    /// What a real Slurm 22.05 sets for `--mpi=none`, `pmi2` and `pmix`.
    #[test]
    fn tasks_without_an_interface_are_told_apart() {
        let task = [("SLURM_STEP_NUM_TASKS", "2"), ("SLURM_PROCID", "1")];
        let is_bare = |more: &[(&str, &str)]| {
            let all = [&task[..], more].concat();
            let value = |name: &str| all.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
            MpiLaunch::of(value).unwrap().is_bare
        };
        assert!(is_bare(&[]));
        assert!(!is_bare(&[("PMI_RANK", "1"), ("PMI_SIZE", "2")]));
        assert!(!is_bare(&[("PMIX_RANK", "1")]));
        assert!(!is_bare(&[("OMPI_COMM_WORLD_SIZE", "2"), ("OMPI_COMM_WORLD_RANK", "1")]));
    }

    #[test]
    fn a_batch_script_is_one_task() {
        let script = [("SLURM_JOB_ID", "9"), ("SLURM_NTASKS", "8"), ("SLURM_PROCID", "0")];
        assert_eq!(launch(&script), Some(("srun", 0, 1)));
        let step = [&script[..], &[("SLURM_STEP_NUM_TASKS", "1")]].concat();
        assert_eq!(launch(&step), Some(("srun", 0, 1)));
    }

    #[test]
    fn mpirun_in_a_batch_job_comes_first() {
        let daemons = [("SLURM_STEP_NUM_TASKS", "2"), ("SLURM_PROCID", "1")];
        let ranks = [("OMPI_COMM_WORLD_SIZE", "16"), ("OMPI_COMM_WORLD_RANK", "9"), ("PMIX_RANK", "9")];
        assert_eq!(launch(&[&daemons[..], &ranks].concat()), Some(("mpirun", 9, 16)));
        let hydra = [("PMI_SIZE", "16"), ("PMI_RANK", "9")];
        assert_eq!(launch(&[&daemons[..], &hydra].concat()), Some(("mpirun", 9, 16)));
        let flux = [("FLUX_JOB_SIZE", "16"), ("FLUX_TASK_RANK", "9")];
        assert_eq!(launch(&[&flux[..], &hydra].concat()), Some(("flux", 9, 16)));
    }
}
