//! The order of an arrangement, passed to real launchers; a test is visibly skipped if its launcher is
//! missing.

use super::bench::Bench;
use apportion_testing::{Need, binary, skip};
use std::path::Path;
use std::process::Command;

/// This machine's name, as launchers know it.
fn host() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .unwrap_or_else(|_| "localhost".into())
        .trim()
        .to_owned()
}

/// A plan of two processors on this machine, with the second in the left column, and its order in a format.
fn exported(format: &str) -> Bench {
    let directory = Bench::new();
    let processor = |i: usize| {
        format!("[[processor]]\nname = \"{}:{i}\"\ncluster = \"c{i}\"\ncores = [{i}]\nspeed = 1\n", host())
    };
    let platform = format!("{}{}[network]\nbandwidth = \"1 Gbit/s\"\n", processor(0), processor(1));
    directory.write("two.toml", platform);
    let groups = format!("{0}:1;{0}:0", host());
    let from = ["partition", "--shape", "60x60", "--platform", "two.toml", "--method", "column-groups"];
    directory.done(&[&from[..], &["--groups", &groups, "-o", "plan.json"]].concat());
    let order = ["arrange", "--plan", "plan.json", "--platform", "two.toml", "--objective", "hops"];
    directory.done(&[&order[..], &["--export", format, "--export-to", "order"]].concat());
    directory
}

/// Runs a launcher; `None`, with the reason printed, if it is missing or may not start processes here.
fn launched(directory: &Path, need: Need, program: &str, arguments: &[&str]) -> Option<Vec<String>> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if cores < 2 {
        skip(Need::Cores, "two cores are needed");
        return None;
    }
    // A launcher of another vendor may have the same name.
    let version = Command::new(program).arg("--version").output();
    let Ok(version) = version else {
        skip(need, format!("there is no {program}"));
        return None;
    };
    let version = String::from_utf8_lossy(&version.stdout).to_lowercase();
    let expected = if arguments.contains(&"--rankfile") { "open mpi" } else { "hydra" };
    if !version.contains(expected) && !version.contains("openrte") {
        skip(need, format!("{program} is not of {expected}"));
        return None;
    }
    let output = Command::new(program).args(arguments).current_dir(directory).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {stderr}");
    let mut lines: Vec<String> = String::from_utf8(output.stdout).unwrap().lines().map(Into::into).collect();
    lines.sort();
    Some(lines)
}

/// The flags of mpirun that the first line of a rank file names.
fn flags_of(rankfile: &str) -> Vec<&str> {
    let flags = rankfile.lines().next().unwrap().strip_prefix("# mpirun ").unwrap();
    flags.split_once(" --rankfile").unwrap().0.split(' ').collect()
}

/// Open MPI binds process 0, the first of the arrangement, to the core of the plan's second processor.
#[test]
fn open_mpi_follows_the_rankfile() {
    let directory = exported("rankfile");
    let text = directory.text("order");
    let lines: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(lines, [format!("rank 0={} slot=1", host()), format!("rank 1={} slot=0", host())]);
    let say = "echo $OMPI_COMM_WORLD_RANK $(grep Cpus_allowed_list /proc/self/status)";
    let start = ["--rankfile", "order", "-np", "2", "sh", "-c", say];
    let flags = [&["--allow-run-as-root"][..], &flags_of(&text), &start].concat();
    if let Some(lines) = launched(&directory, Need::Mpi, "mpirun.openmpi", &flags) {
        assert_eq!(lines, ["0 Cpus_allowed_list: 1", "1 Cpus_allowed_list: 0"]);
    }
}

/// A processor pinned to CPU 2, the first thread of the second core, is on CPU 2: Open MPI is told that slots are the
/// system's numbers. (With a topology file of such a machine, Open MPI 4.1.4 binds slot 2 to CPUs 2-3 with the flag, and to
/// 4-5 without.)
#[test]
fn ranks_are_on_their_cores_where_cores_have_threads() {
    let bench = Bench::new();
    let processor =
        |i: usize| format!("[[processor]]\nname = \"localhost:{i}\"\ncores = [{}]\nspeed = 1\n", 2 * i);
    bench.write("smt.toml", processor(0) + &processor(1) + "[network]\nbandwidth = \"1 Gbit/s\"\n");
    bench.done("partition --shape 40x40 --platform smt.toml --method columns -o plan.json");
    bench.done("arrange --plan plan.json --platform smt.toml --export rankfile --export-to order");
    let text = bench.text("order");
    let slot = text.lines().last().unwrap().split_once(" slot=").unwrap().1;
    assert_eq!(slot, "2", "{text}");
    assert_eq!(flags_of(&text), ["--mca", "rmaps_rank_file_physical", "1"]);
}

#[test]
fn mpich_takes_the_machinefile() {
    let directory = exported("machinefile");
    assert_eq!(directory.text("order"), format!("{}:2\n", host()));
    let flags = ["-f", "order", "-np", "2", "sh", "-c", "echo $PMI_RANK $(cat /proc/sys/kernel/hostname)"];
    if let Some(lines) = launched(&directory, Need::Mpich, "mpirun.mpich", &flags) {
        assert_eq!(lines, [format!("0 {}", host()), format!("1 {}", host())]);
    }
}

/// There is no Slurm to test with: its file has one host per line, as `srun --distribution=arbitrary` reads
/// it.
#[test]
fn slurm_has_a_host_a_line() {
    let directory = exported("slurm");
    assert_eq!(directory.text("order"), format!("{0}\n{0}\n", host()));
}

/// Each of the tasks of a launcher would do the whole work, and write the same file: refused with the remedy.
/// Batch scripts, and commands that only print, run.
#[test]
#[ignore = "slow"]
fn tasks_that_would_all_do_the_same_are_refused() {
    let bench = Bench::new();
    bench.done("random 20 20 -o a.npy");
    let run = |line: &str, variables: &[(&str, &str)]| {
        let output = Command::new(binary())
            .args(line.split(' '))
            .envs(variables.iter().copied())
            .env("XDG_CACHE_HOME", bench.path("cache"))
            .current_dir(bench.path("."))
            .output()
            .unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    // Speeds that need no measuring.
    let platform = "[[processor]]\nname = \"one\"\nspeed = \"1 Gflop/s\"\n";
    bench.write("one.toml", platform);
    let product = "matmul a.npy a.npy --platform one.toml -q";
    let launchers: [(&str, &[(&str, &str)]); 10] = [
        ("srun", &[("SLURM_JOB_ID", "9"), ("SLURM_STEP_NUM_TASKS", "8"), ("SLURM_PROCID", "3")]),
        ("flux", &[("FLUX_JOB_SIZE", "8"), ("FLUX_TASK_RANK", "3")]),
        ("mpiexec of PALS", &[("PALS_LOCAL_SIZE", "8"), ("PALS_RANKID", "3")]),
        ("mpirun of MVAPICH", &[("MV2_COMM_WORLD_SIZE", "8"), ("MV2_COMM_WORLD_RANK", "3")]),
        ("jsrun", &[("JSM_NAMESPACE_SIZE", "8"), ("JSM_NAMESPACE_RANK", "3")]),
        ("aprun", &[("ALPS_APP_PE", "7")]),
        ("mpirun", &[("PMI_SIZE", "8"), ("PMI_RANK", "3")]),
        ("mpirun", &[("OMPI_COMM_WORLD_SIZE", "8"), ("OMPI_COMM_WORLD_RANK", "3")]),
        ("mpirun_rsh", &[("MPIRUN_NPROCS", "8"), ("MPIRUN_RANK", "0")]),
        ("the launcher", &[("PMIX_RANK", "7")]),
    ];
    for (name, variables) in launchers {
        let (code, line) = run(product, variables);
        assert_eq!((code, line.lines().count()), (2, 1), "{name}: {line}");
        assert!(line.contains(&format!("{name} started 8 processes")), "{line}");
        assert!(line.contains("unset ") && line.contains(variables.last().unwrap().0), "{line}");
    }
    let srun = launchers[0].1;
    for line in [
        "closure a.npy",
        "factor a.npy --kind lu",
        "solve a.npy a.npy",
        "power a.npy -k 2",
        "advect --field a.npy --courant 0,0 --steps 1",
        "mdem a.npy",
        "measure --sizes 100",
        "balance --units 9 --processors 1 -- true",
        "run --plan p.json -- true",
        "random 9 9 -o b.npy",
        "partition --units 9 --speeds 1,1 -o plan.json",
        "detect -o platform.toml",
        "detect --root . -o platform.toml",
    ] {
        let (code, text) = run(line, srun);
        assert!(code == 2 && text.contains("srun started 8 processes"), "{line}: {text}");
    }
    for line in [
        "partition --units 9 --speeds 1,1",
        "detect",
        "detect --root .",
        "random 2 2 -o /dev/null",
        "matmul --help",
    ] {
        assert_eq!(run(line, srun).0, 0, "{line}: {}", run(line, srun).1);
    }
    let script = [("SLURM_JOB_ID", "9"), ("SLURM_NTASKS", "8"), ("SLURM_PROCID", "0")];
    assert_eq!(run(product, &script), (0, String::new()));
    let step = [&script[..], &[("SLURM_STEP_NUM_TASKS", "1")]].concat();
    assert_eq!(run(product, &step), (0, String::new()));
    let one = [("OMPI_COMM_WORLD_SIZE", "1"), ("OMPI_COMM_WORLD_RANK", "0")];
    assert_eq!(run(product, &one), (0, String::new()));
}
