//! Contract of `partition --export`; graph partitioners, if installed, read the exported files.

use super::bench::Bench;
use apportion_testing::{Need, program, skip};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::{Command, Output};

/// What checks each format: the tool itself where Debian has it, otherwise the tool's rule.
const ORACLES: [(&str, fn()); 29] = [
    ("metis", metis_divides_a_graph_by_our_file),
    ("scotch", scotch_maps_a_graph_onto_our_architecture),
    ("openmpi", open_mpi_places_ranks_by_our_rankfile),
    ("mpich", mpich_starts_as_many_ranks_as_our_machinefile_says),
    ("slurm", slurm_has_a_line_for_each_rank),
    ("hpl", hpl_gives_the_first_columns_the_factor),
    ("llama.cpp", llama_cpp_places_the_layers),
    ("vllm", pipeline_servers_take_the_layers_of_each_stage),
    ("llama.cpp-tensor", llama_cpp_splits_rows_in_proportion),
    ("sglang", pipeline_servers_take_the_layers_of_each_stage),
    ("megatron", megatron_finds_the_layers_of_each_stage),
    ("lammps", lammps_cuts_its_box_by_our_commands),
    ("gromacs", gromacs_cuts_its_box_by_our_flags),
    ("openfoam", openfoam_reads_labels),
    ("hostfile", open_mpi_fills_the_slots_of_our_hostfile),
    ("slurm-het", a_component_for_each_host),
    ("slurm-units", any_shell_finds_its_units),
    ("c", source_code_compiles_and_runs),
    ("petsc", petscs_sizes_compile),
    ("2dist", two_dist_rectangles_tile_the_matrix),
    ("csv", tables_are_read_back),
    ("json", tables_are_read_back),
    ("owners", super::owners::a_c_program_looks_owners_up),
    ("owners-h", super::owners::a_c_program_looks_owners_up),
    ("scalapack", super::owners::scalapacks_descriptors_agree_with_the_layout),
    ("scalapack-h", super::owners::scalapacks_descriptors_agree_with_the_layout),
    ("taskset", each_processor_runs_on_its_cores),
    ("numactl", each_processor_runs_on_its_cores),
    ("mpirun", ranks_run_on_the_cores_of_their_processor),
];

#[test]
fn every_format_has_an_oracle() {
    let refused = Bench::new().fails(2, "partition --units 8 --speeds 3,1 --export none");
    let list = refused.split("one of ").nth(1).unwrap().split(" (").next().unwrap();
    let known: BTreeSet<&str> = list.split(", ").map(str::trim).collect();
    let checked: BTreeSet<&str> = ORACLES.iter().map(|(format, _)| *format).collect();
    assert_eq!(known, checked);
}

#[test]
fn every_format_stands_alone_on_stdout() {
    let here = Bench::new();
    let of = |format: &str| here.done(&format!("partition --units 8 --speeds 3,1 --export {format}"));
    assert_eq!(of("metis"), "0 = 0.75\n1 = 0.25\n");
    assert_eq!(of("scotch"), "cmpltw 2 3 1\n");
    assert_eq!(of("openmpi").lines().count(), 8);
    assert_eq!(of("mpich"), "p0:6\np1:2\n");
    assert_eq!(of("hpl"), "-f 3 -c 1\n");
    assert_eq!(of("llama.cpp"), "--tensor-split 6,3\n");
    assert_eq!(of("vllm"), "VLLM_PP_LAYER_PARTITION=6,2\n");
    assert_eq!(of("csv"), "processor,share,fraction\np0,6,0.75\np1,2,0.25\n");
    assert_eq!(serde_json::from_str::<Value>(&of("json")).unwrap()["total"], 8);
}

/// The documentation quotes what the example prints.
#[test]
fn a_template_of_the_user_is_a_format() {
    let here = Bench::new();
    let text = "{% set parts = in_order() | without_empty('it') %}\n{{ parts | map(attribute='name') | join(' ') }} {{ total }}\n";
    here.write("mine.jinja", text);
    let exported = here.json("partition --units 8 --speeds 3,0,1 --export mine.jinja");
    assert_eq!(exported["export"]["text"], "p0 p2 8\n");
    assert_eq!(
        exported["export"]["warnings"],
        serde_json::json!(["it does not support empty parts: p1 left out, later parts move up"])
    );
    here.done("partition --units 8 --speeds 3,1 --export mine.jinja --export-to out");
    assert_eq!(here.text("out"), "p0 p1 8\n");
    // Contiguous parts in another order than the processors'.
    here.write("costs", "9\n1\n1\n1\n");
    let plan = here.json("partition --costs costs --any-order --speeds 1,9 --export mine.jinja");
    assert_eq!(plan["export"]["text"], "p1 p0 4\n");
    assert_eq!(
        plan["export"]["warnings"],
        serde_json::json!(["give the tool the processors in this order: p1, p0"])
    );
}

#[test]
fn a_file_leaves_stdout_to_the_plan_and_json_stays_one_object() {
    let here = Bench::new();
    let text = here.done("partition --units 8 --speeds 3,1 --export mpich --export-to hosts");
    assert!(text.contains("method"), "{text}");
    assert_eq!(here.text("hosts"), "p0:6\np1:2\n");
    let json = here.done("--json partition --units 8 --speeds 3,1 --export mpich");
    let value: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["export"]["format"], "mpich");
    assert_eq!(value["export"]["text"], "p0:6\np1:2\n");
    assert_eq!(value["shares"][0], 6);
}

#[test]
fn shares_of_matrices_are_exported_too() {
    let here = Bench::new();
    let csv = here.done("partition --shape 100x100 --speeds 9,1 --method rows --export csv");
    assert_eq!(csv, "processor,share,fraction\np0,9000,0.9\np1,1000,0.1\n");
}

#[test]
fn what_a_format_cannot_say_is_told() {
    let here = Bench::new();
    let idle = here.run("partition --units 1 --speeds 9,1 --export metis");
    assert!(idle.status.success());
    assert!(String::from_utf8(idle.stderr).unwrap().contains("p1 left out"));
    for (code, line) in [
        (2, "partition --units 8 --speeds 3,1 --export excel"),
        (2, "partition --units 8 --speeds 3,1 --export-to f"),
        (1, "partition --units 600 --speeds 3,2,1 --export hpl"),
        (2, "partition --units 8000000 --speeds 3,1 --export mpich"),
    ] {
        here.fails(code, line);
    }
}

/// The first of these programs that is installed.
pub fn installed(need: Need, names: &[&'static str], package: &str) -> Option<&'static str> {
    let found = names.iter().copied().find(|name| program(&[name]).is_some());
    if found.is_none() {
        skip(need, format!("{} is not installed (Debian package {package})", names[0]));
    }
    found
}

/// Vertices of a square grid with their neighbours, numbered by row.
fn grid(side: usize) -> Vec<Vec<usize>> {
    let neighbours = |v: usize| {
        let (row, col) = (v / side, v % side);
        let mut list = Vec::new();
        if row > 0 {
            list.push(v - side);
        }
        if col > 0 {
            list.push(v - 1);
        }
        if col + 1 < side {
            list.push(v + 1);
        }
        if row + 1 < side {
            list.push(v + side);
        }
        list
    };
    (0..side * side).map(neighbours).collect()
}

/// Vertices in each part are within a tenth of the graph of 6 : 3 : 1.
fn assert_weighted(parts: &[usize]) {
    let total = parts.len() as f64;
    for (part, weight) in [0.6, 0.3, 0.1].into_iter().enumerate() {
        let share = parts.iter().filter(|p| **p == part).count() as f64 / total;
        assert!((share - weight).abs() < 0.1 * weight + 0.01, "part {part}: {share} for {weight}");
    }
}

#[test]
fn metis_divides_a_graph_by_our_file() {
    let Some(gpmetis) = installed(Need::Metis, &["gpmetis"], "metis") else { return };
    let here = Bench::new();
    let graph = grid(40);
    let edges = graph.iter().map(Vec::len).sum::<usize>() / 2;
    let mut text = format!("{} {edges}\n", graph.len());
    for list in &graph {
        let line: Vec<String> = list.iter().map(|v| (v + 1).to_string()).collect();
        text += &format!("{}\n", line.join(" "));
    }
    here.write("grid.graph", text);
    here.done("partition --units 1000 --speeds 6,3,1 --export metis --export-to tpwgts");
    let run = Command::new(gpmetis)
        .args(["-tpwgts=tpwgts", "grid.graph", "3"])
        .current_dir(here.path("."))
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout));
    let parts = here.text("grid.graph.part.3");
    assert_weighted(&parts.lines().map(|l| l.trim().parse().unwrap()).collect::<Vec<_>>());
}

#[test]
fn scotch_maps_a_graph_onto_our_architecture() {
    let Some(gmap) = installed(Need::Scotch, &["scotch_gmap", "gmap"], "scotch") else { return };
    let here = Bench::new();
    let graph = grid(40);
    let arcs = graph.iter().map(Vec::len).sum::<usize>();
    // Version 0; vertices and arcs; base 0, no labels or weights.
    let mut text = format!("0\n{} {arcs}\n0 000\n", graph.len());
    for list in &graph {
        let line: Vec<String> = list.iter().map(usize::to_string).collect();
        text += &format!("{} {}\n", list.len(), line.join(" "));
    }
    here.write("grid.grf", text);
    here.done("partition --units 1000 --speeds 6,3,1 --export scotch --export-to target.tgt");
    let run = Command::new(gmap)
        .args(["grid.grf", "target.tgt", "grid.map"])
        .current_dir(here.path("."))
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let map = here.text("grid.map");
    let part = |line: &str| line.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert_weighted(&map.lines().skip(1).map(part).collect::<Vec<usize>>());
}

/// Two names of this machine: two hosts from a launcher's point of view.
const TWO_HOSTS: &str =
    "[[processor]]\nname = \"localhost\"\nspeed = 2\n[[processor]]\nname = \"127.0.0.1\"\nspeed = 1\n";

/// The output of the ranks, sorted.
fn ranks(out: &Output) -> Vec<String> {
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let mut lines: Vec<String> = String::from_utf8_lossy(&out.stdout).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn open_mpi_places_ranks_by_our_rankfile() {
    let Some(mpirun) = installed(Need::Mpi, &["mpirun.openmpi"], "openmpi-bin") else { return };
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        skip(Need::Cores, "a slot is a core, and this machine has one");
        return;
    }
    let here = Bench::new();
    here.write("hosts.toml", TWO_HOSTS);
    here.done("partition --units 3 --platform hosts.toml --export openmpi --export-to ranks");
    let run = |rankfile: &str| {
        Command::new(mpirun)
            .args(
                "--allow-run-as-root --oversubscribe -n 3 --host localhost:2,127.0.0.1:1 --rankfile"
                    .split(' '),
            )
            .args([rankfile, "sh", "-c", "echo $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE"])
            .current_dir(here.path("."))
            .output()
            .unwrap()
    };
    assert_eq!(ranks(&run("ranks")), ["0 of 3", "1 of 3", "2 of 3"]);
    // It does read the file: one without a line for the last rank is rejected.
    let text = here.text("ranks");
    here.write("short", text.lines().take(2).fold(String::new(), |t, l| t + l + "\n"));
    assert!(!run("short").status.success());
}

/// Processors as `detect` names those of hosts and of one machine: launchers start ranks on hosts, which exist.
#[test]
fn launchers_start_ranks_on_the_hosts_of_processors() {
    let here = Bench::new();
    let processor = |name: &str, cluster: &str, core: usize, speed: usize| {
        format!(
            "[[processor]]\nname = \"{name}\"\ncluster = \"{cluster}\"\ncores = [{core}]\nspeed = {speed}\n"
        )
    };
    let hosts = processor("localhost-performance", "localhost/performance", 0, 2)
        + &processor("localhost-efficient", "localhost/efficient", 1, 1);
    here.write("hosts.toml", hosts);
    here.write(
        "one.toml",
        processor("performance", "machine", 0, 2) + &processor("efficient", "machine", 1, 1),
    );
    for platform in ["hosts.toml", "one.toml"] {
        let export = |format: &str, file: &str| {
            let line =
                format!("partition --units 3 --platform {platform} --export {format} --export-to {file}");
            here.done(&line);
            here.text(file)
        };
        let ranks_file = export("openmpi", "ranks");
        let lines: Vec<&str> = ranks_file.lines().skip(1).collect();
        assert_eq!(
            lines,
            [0, 0, 1]
                .iter()
                .enumerate()
                .map(|(rank, slot)| { format!("rank {rank}=localhost slot={slot}") })
                .collect::<Vec<_>>(),
            "{platform}"
        );
        assert_eq!(export("hostfile", "slots"), "localhost slots=3\n");
        assert_eq!(export("mpich", "machines"), "localhost:3\n");
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        if cores < 2 {
            skip(Need::Cores, "two cores are needed");
            continue;
        }
        let say = ["sh", "-c", "grep Cpus_allowed_list /proc/self/status"];
        if let Some(mpirun) = installed(Need::Mpi, &["mpirun.openmpi"], "openmpi-bin") {
            let run = |flags: &str| {
                let mut command = Command::new(mpirun);
                command.args("--allow-run-as-root --oversubscribe -n 3".split(' ')).args(flags.split(' '));
                ranks(&command.args(say).current_dir(here.path(".")).output().unwrap())
            };
            let on = |cpus: [usize; 3]| cpus.map(|cpu| format!("Cpus_allowed_list:\t{cpu}"));
            assert_eq!(run("--mca rmaps_rank_file_physical 1 --rankfile ranks"), on([0, 0, 1]), "{platform}");
            assert_eq!(run("--hostfile slots").len(), 3, "{platform}");
        }
        if let Some(mpirun) = installed(Need::Mpich, &["mpirun.mpich"], "mpich") {
            let flags = "-launcher fork -f machines sh -c".split(' ');
            let out = Command::new(mpirun)
                .args(flags)
                // Hydra is ended by a closed pipe where a program leaves while others are being started.
                .arg("echo > said.$PMI_RANK; sleep 1")
                .current_dir(here.path("."))
                .output();
            assert!(out.unwrap().status.success());
            assert!(here.join("said.2").exists() && !here.join("said.3").exists(), "{platform}");
        }
    }
    for format in ["slurm", "slurm-het"] {
        let text = here.done(&format!("partition --units 3 --platform hosts.toml --export {format}"));
        assert!(!text.contains("localhost-"), "{text}");
        here.fails(2, &format!("partition --units 3 --platform one.toml --export {format}"));
    }
}

#[test]
fn mpich_starts_as_many_ranks_as_our_machinefile_says() {
    let Some(mpirun) = installed(Need::Mpich, &["mpirun.mpich"], "mpich") else { return };
    let here = Bench::new();
    here.write("hosts.toml", TWO_HOSTS);
    here.done("partition --units 3 --platform hosts.toml --export mpich --export-to machines");
    // Without -n it starts a rank for each slot of the file.
    let out = Command::new(mpirun)
        .args(["-launcher", "fork", "-f", "machines", "sh", "-c"])
        .arg("echo $PMI_RANK of $PMI_SIZE > said.$PMI_RANK")
        .current_dir(here.path("."))
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    // Each in a file of its own: lines of several ranks on one pipe may mix.
    let said = |rank: usize| std::fs::read_to_string(here.join(format!("said.{rank}"))).unwrap();
    assert_eq!([0, 1, 2].map(said), ["0 of 3\n", "1 of 3\n", "2 of 3\n"]);
    assert!(!here.join("said.3").exists());
}

/// Atoms of a lattice of 10 x 5 x 5 cells, four each: three quarters of the cells are 7.5 layers.
#[test]
fn lammps_cuts_its_box_by_our_commands() {
    let Some(lammps) = installed(Need::Lammps, &["lmp", "lmp_mpi"], "lammps") else { return };
    let Some(mpirun) = installed(Need::Mpi, &["mpirun.openmpi"], "openmpi-bin") else { return };
    let here = Bench::new();
    let commands = here.done("partition --units 100 --speeds 3,1 --export lammps");
    let (processors, balance) = commands.split_once('\n').unwrap();
    let input = format!(
        "units lj\natom_style atomic\n{processors}\nlattice fcc 0.8442\n\
         region box block 0 10 0 5 0 5\ncreate_box 1 box\ncreate_atoms 1 box\nmass 1 1.0\n\
         pair_style lj/cut 2.5\npair_coeff 1 1 1.0 1.0 2.5\n{balance}run 0\n"
    );
    here.write("in.lmp", input);
    let out = Command::new(mpirun)
        .args(["--allow-run-as-root", "--oversubscribe", "-n", "2", lammps, "-in", "in.lmp"])
        .current_dir(here.path("."))
        .output()
        .unwrap();
    let text = ranks(&out).join("\n");
    assert!(text.contains("Nlocal:        500.000 ave         800 max         200 min"), "{text}");
}

/// A box of water, cut at three quarters.
#[test]
fn gromacs_cuts_its_box_by_our_flags() {
    let Some(gmx) = installed(Need::Gromacs, &["gmx"], "gromacs") else { return };
    let here = Bench::new();
    let flags = here.done("partition --units 100 --speeds 3,1 --export gromacs");
    here.write(
        "topol.top",
        "#include \"oplsaa.ff/forcefield.itp\"\n#include \"oplsaa.ff/spc.itp\"\n\
         [ system ]\nwater\n[ molecules ]\n",
    );
    here.write(
        "md.mdp",
        "integrator = md\nnsteps = 2\ndt = 0.001\nrlist = 0.9\nrcoulomb = 0.9\nrvdw = 0.9\n",
    );
    let script = format!(
        "{gmx} solvate -cs spc216.gro -box 6 2.5 2.5 -o conf.gro -p topol.top && \
         {gmx} grompp -f md.mdp -c conf.gro -p topol.top -o t.tpr -maxwarn 5 && \
         {gmx} mdrun -s t.tpr -ntmpi 2 -ntomp 1 {flags}"
    );
    let out = Command::new("sh").args(["-c", &script]).current_dir(here.path(".")).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let log = here.text("md.log");
    assert!(log.contains("Relative cell sizes: 0.750 0.250"), "{log}");
}

/// A C compiler takes the arrays.
#[test]
fn source_code_compiles_and_runs() {
    let here = Bench::new();
    let Some(cc) = installed(Need::C, &["cc", "gcc"], "gcc") else { return };
    let main = "#include <stdio.h>\nint main(void) { printf(\"%s %d %d\\n\", names[2], (int)shares[2], \
                (int)offsets[PROCESSORS]); return 0; }\n";
    here.write("main.c", here.done("partition --units 10 --speeds 3,1,1 --export c") + main);
    let built = Command::new(cc).args(["main.c", "-o", "main"]).current_dir(here.path(".")).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    assert_eq!(ranks(&Command::new(here.path("main")).output().unwrap()), ["p2 2 10"]);
}

#[test]
fn layers_follow_prompts_and_answers() {
    let here = Bench::new();
    let file = |name: &str, times: [f64; 2]| {
        let model = |(i, seconds): (usize, &f64)| {
            format!(
                "{{\"processor\": \"p{i}\", \"interpolation\": \"constant\", \"max_size\": null, \
                 \"points\": [{{\"size\": 1, \"seconds\": {seconds}}}]}}"
            )
        };
        let models: Vec<String> = times.iter().enumerate().map(model).collect();
        let text = format!(
            "{{\"format\": \"apportion-models\", \"version\": 1, \"kernel\": \"layer\", \"unit\": \"layers\", \
             \"parameters\": {{}}, \"models\": [{}]}}",
            models.join(", ")
        );
        here.write(name, text);
    };
    file("prompts.json", [1.0, 4.0]);
    file("answers.json", [1.0, 1.0]);
    let layers = |mix: &str| {
        here.done(&format!(
            "partition --units 40 --models prompts.json,answers.json --mix {mix} --export sglang"
        ))
    };
    assert_eq!(layers("0"), "SGLANG_PP_LAYER_PARTITION=20,20\n");
    assert_eq!(layers("1"), "SGLANG_PP_LAYER_PARTITION=32,8\n");
    // 1 s and 0.5 * 4 + 0.5 * 1 = 2.5 s a layer; 28.6 and 11.4 layers.
    assert_eq!(layers("0.5"), "SGLANG_PP_LAYER_PARTITION=29,11\n");
    for line in [
        "partition --units 40 --models prompts.json --mix 0.5",
        "partition --units 40 --models prompts.json,answers.json --mix 2",
        "partition --units 40 --models prompts.json,none.json --mix 0.5",
        "partition --units 40 --speeds 1,2 --mix 0.5",
    ] {
        here.fails(2, line);
    }
}

/// Tools that reject zero: the processor is dropped, and the others' parts stay.
#[test]
fn processors_without_a_share_are_left_out() {
    let here = Bench::new();
    for format in ["metis", "scotch", "openmpi", "mpich", "hpl", "vllm", "llama.cpp"] {
        let out = here.run(&format!("partition --units 4 --speeds 100,100,1 --export {format}"));
        let warning = String::from_utf8(out.stderr).unwrap();
        assert!(out.status.success(), "{format}: {warning}");
        let text = String::from_utf8(out.stdout).unwrap();
        let named = warning.contains("p2 left out");
        // llama.cpp and the tables accept a zero.
        assert!(named || text.contains(",0") || text.trim_end().ends_with('0'), "{format}: {text} {warning}");
    }
}

/// `-f FACTOR -c COLUMNS`: the first columns get FACTOR times the work of the others.
#[test]
fn hpl_gives_the_first_columns_the_factor() {
    let text = Bench::new().done("partition --units 700 --speeds 5,5,2,2 --export hpl");
    let words: Vec<&str> = text.split_whitespace().collect();
    assert_eq!((words[0], words[2], words[3]), ("-f", "-c", "2"));
    let factor: f64 = words[1].parse().unwrap();
    assert!((700.0 * factor / (2.0 * factor + 2.0) - 250.0).abs() < 0.1, "{text}");
}

/// `SLURM_HOSTFILE` with `--distribution=arbitrary`: line i is the host of rank i.
#[test]
fn slurm_has_a_line_for_each_rank() {
    let text = Bench::new().done("partition --units 4 --speeds 3,1 --export slurm");
    assert_eq!(text.lines().collect::<Vec<_>>(), ["p0", "p0", "p0", "p1"]);
}

/// A component begins at `#SBATCH hetjob`; its options count its ranks.
#[test]
fn a_component_for_each_host() {
    let text = Bench::new().done("partition --units 8 --speeds 3,1 --export slurm-het");
    let tasks: Vec<u64> = text
        .split("#SBATCH hetjob\n")
        .map(|component| {
            assert!(component.contains("--nodes=1 ") && component.contains("--nodelist=p"), "{component}");
            component.split("--ntasks=").nth(1).unwrap().split_whitespace().next().unwrap().parse().unwrap()
        })
        .collect();
    assert_eq!(tasks, [6, 2]);
    assert!(text.contains("srun --het-group=0-1 "), "{text}");
}

/// The first device whose cumulated part exceeds i / (n + 1) gets layer i, in single precision.
#[test]
fn llama_cpp_places_the_layers() {
    let here = Bench::new();
    for (line, layers, placed) in [
        ("--units 32 --speeds 1,1 --max 11,32", 32u16, &[11, 21][..]),
        ("--units 28 --speeds 9,1", 28, &[26, 2]),
        ("--units 10 --speeds 1,1,1 --max 10,0,10", 10, &[5, 0, 5]),
        ("--units 10 --speeds 1,1 --max 10,0", 10, &[10, 0]),
        ("--units 7 --speeds 1", 7, &[7]),
    ] {
        let text = here.done(&format!("partition {line} --export llama.cpp"));
        let numbers = text.trim().strip_prefix("--tensor-split ").unwrap().split(',');
        let split: Vec<f32> = numbers.map(|number| number.parse().unwrap()).collect();
        let total: f32 = split.iter().sum();
        let device = |layer: u16| {
            let exceeds = |i: &usize| {
                split[..=*i].iter().sum::<f32>() / total > f32::from(layer) / f32::from(layers + 1)
            };
            (0..split.len()).find(exceeds).unwrap()
        };
        let mut found = vec![0; split.len()];
        (0..layers).for_each(|layer| found[device(layer)] += 1);
        assert_eq!(found, placed, "{text}");
    }
}

/// Rows of every tensor in proportion to the numbers.
#[test]
fn llama_cpp_splits_rows_in_proportion() {
    let text = Bench::new().done("partition --units 32 --speeds 3,1 --export llama.cpp-tensor");
    assert_eq!(text, "--split-mode tensor --tensor-split 24,8\n");
}

/// `get_pp_indices` of vLLM and SGLang: as many whole numbers as stages, whose sum is the number of layers;
/// stage i begins at the sum of those before it.
#[test]
fn pipeline_servers_take_the_layers_of_each_stage() {
    for (format, variable) in [("vllm", "VLLM_PP_LAYER_PARTITION"), ("sglang", "SGLANG_PP_LAYER_PARTITION")] {
        let text = Bench::new().done(&format!("partition --units 32 --speeds 3,2,1 --export {format}"));
        let (name, list) = text.trim().split_once('=').unwrap();
        let stages: Vec<u64> = list.split(',').map(|layers| layers.parse().unwrap()).collect();
        assert_eq!((name, stages.len(), stages.iter().sum::<u64>()), (variable, 3, 32));
    }
}

/// Megatron Core's pipeline layouts: stages between `|`, layers between commas, `t*n` is n decoder layers.
#[test]
fn megatron_finds_the_layers_of_each_stage() {
    let text = Bench::new().done("partition --units 8 --speeds 3,1 --export megatron");
    let (size, layout) = text.trim().split_once(" --pipeline-model-parallel-layout ").unwrap();
    assert_eq!(size, "--pipeline-model-parallel-size 2");
    let layers = |stage: &str| -> u64 {
        let parts = stage.split(',').filter_map(|part| part.strip_prefix('t'));
        parts.map(|part| part.strip_prefix('*').map_or(1, |count| count.parse().unwrap())).sum()
    };
    let layout = layout.trim_matches('"');
    assert_eq!(layout.split('|').map(layers).collect::<Vec<_>>(), [6, 2]);
    assert!(layout.starts_with('E') && layout.ends_with('L'), "{layout}");
}

/// `labelList processorWeights` of scotchDecomp.C: a whole number for each subdomain.
#[test]
fn openfoam_reads_labels() {
    let here = Bench::new();
    for (line, weights) in [
        ("--units 18000 --speeds 5,3,1", vec![5, 3, 1]),
        ("--units 1000001 --speeds 1000000,1", vec![1_000_000, 1]),
        ("--units 7 --speeds 4,3", vec![4, 3]),
    ] {
        let text = here.done(&format!("partition {line} --export openfoam"));
        let list = text.split("processorWeights (").nth(1).unwrap().split(')').next().unwrap();
        let labels: Vec<i32> = list.split(' ').map(|label| label.parse().unwrap()).collect();
        assert_eq!(labels, weights);
        assert!(text.contains(&format!("numberOfSubdomains {};", labels.len())), "{text}");
    }
}

#[test]
fn open_mpi_fills_the_slots_of_our_hostfile() {
    let Some(mpirun) = installed(Need::Mpi, &["mpirun.openmpi"], "openmpi-bin") else { return };
    let here = Bench::new();
    here.write("one.toml", "[[processor]]\nname = \"localhost\"\nspeed = 2\n");
    here.done("partition --units 3 --platform one.toml --export hostfile --export-to hosts");
    let run = |ranks: &str| {
        Command::new(mpirun)
            .args(["--allow-run-as-root", "--bind-to", "none", "--hostfile", "hosts", "-n", ranks])
            .args(["sh", "-c", "echo $OMPI_COMM_WORLD_SIZE"])
            .current_dir(here.path("."))
            .output()
            .unwrap()
    };
    assert_eq!(ranks(&run("3")), ["3", "3", "3"]);
    // The file's slots are what there is.
    assert!(!run("4").status.success());
}

/// The ranges of Slurm's tasks, in each shell that is here.
#[test]
fn any_shell_finds_its_units() {
    let here = Bench::new();
    here.write(
        "units.sh",
        here.done("partition --units 10 --speeds 3,1,1 --max 10,0,10 --export slurm-units"),
    );
    let run = |shell: &[&str], task: Option<&str>| {
        let mut command = Command::new(shell[0]);
        command.args(&shell[1..]).args(["-euc", ". ./units.sh; echo $from $to"]).env_remove("SLURM_PROCID");
        command.envs(task.map(|task| ("SLURM_PROCID", task))).current_dir(here.path(".")).output().unwrap()
    };
    for shell in
        [&["sh"][..], &["dash"], &["bash"], &["bash", "--posix"], &["busybox", "sh"], &["ksh"], &["zsh"]]
    {
        if program(&shell[..1]).is_none() {
            continue;
        }
        // Beyond the shares there is nothing to do.
        for (task, range) in [("0", "0 8"), ("1", "8 8"), ("2", "8 10"), ("3", "10 10"), ("12", "10 10")] {
            assert_eq!(ranks(&run(shell, Some(task))), [range], "{shell:?}");
        }
        for outside in [None, Some(""), Some("x")] {
            let out = run(shell, outside);
            assert_eq!(out.status.code(), Some(1), "{shell:?}");
            let said = String::from_utf8_lossy(&out.stderr).into_owned();
            assert!(
                said.contains("SLURM_PROCID is not set") && said.lines().count() == 1,
                "{shell:?}: {said}"
            );
        }
    }
}

#[test]
fn petscs_sizes_compile() {
    let here = Bench::new();
    let Some(cc) = installed(Need::C, &["cc", "gcc"], "gcc") else { return };
    let main =
        "int main(void) { return !(sizeof local_sizes == 3 * sizeof(PetscInt) && local_sizes[1] == 2); }\n";
    let text = here.done("partition --units 10 --speeds 3,1,1 --export petsc");
    here.write("main.c", format!("typedef int PetscInt;\n{text}{main}"));
    let built = Command::new(cc).args(["main.c", "-o", "main"]).current_dir(here.path(".")).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    assert!(Command::new(here.path("main")).status().unwrap().success());
}

/// FuPerMod's reader takes host, number, place and rectangle (x, y, width, height) of each line.
#[test]
fn two_dist_rectangles_tile_the_matrix() {
    let text = Bench::new().done("partition --shape 12x12 --speeds 4,3,2 --method columns --export 2dist");
    let mut owners = vec![0; 12 * 12];
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split('\t').collect();
        let [x, y, width, height]: [usize; 4] = std::array::from_fn(|i| words[4 + i].parse().unwrap());
        (y..y + height).for_each(|row| (x..x + width).for_each(|col| owners[12 * row + col] += 1));
    }
    assert!(owners.iter().all(|owned| *owned == 1), "{text}");
}

#[test]
fn tables_are_read_back() {
    let here = Bench::new();
    let csv = here.done("partition --units 8 --speeds 3,1 --export csv");
    let rows: Vec<Vec<&str>> = csv.lines().skip(1).map(|line| line.split(',').collect()).collect();
    assert_eq!(rows, [["p0", "6", "0.75"], ["p1", "2", "0.25"]]);
    let json: Value =
        serde_json::from_str(&here.done("partition --units 8 --speeds 3,1 --export json")).unwrap();
    assert_eq!((&json["total"], &json["shares"][0]["share"]), (&Value::from(8), &Value::from(6)));
}

/// METIS and Scotch keep what they can of very unequal shares, and METIS's limits are told.
#[test]
fn the_graph_partitioners_take_very_unequal_shares() {
    let here = Bench::new();
    for (line, warning) in [
        ("--units 1000001 --speeds 1000000,1", "use Scotch"),
        ("--units 1000000000001 --speeds 1000000000000,1", "use Scotch"),
        ("--units 100 --speeds 99,1", "add -ufactor=1"),
    ] {
        let out = here.run(&format!("partition {line} --export metis"));
        let said = String::from_utf8(out.stderr).unwrap();
        assert!(
            out.status.success() && said.contains("may leave p1 empty") && said.contains(warning),
            "{said}"
        );
        let Some(gpmetis) = installed(Need::Metis, &["gpmetis"], "metis") else { return };
        here.write("weights", String::from_utf8(out.stdout).unwrap());
        here.write("pair.graph", "2 1\n2\n1\n");
        let run = Command::new(gpmetis)
            .args(["-tpwgts=weights", "pair.graph", "2"])
            .current_dir(here.path("."))
            .output()
            .unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout));
    }
}

/// Launchers start ranks: units of work are told apart by their number.
#[test]
fn units_are_not_taken_for_ranks() {
    let here = Bench::new();
    for format in ["hostfile", "slurm", "openmpi", "mpich", "slurm-het"] {
        let out = here.run(&format!("partition --units 100000 --speeds 5,3,1 --export {format}"));
        let said = String::from_utf8(out.stderr).unwrap();
        assert!(out.status.success() && said.contains("slurm-units"), "{format}: {said}");
        let few = here.run(&format!("partition --units 9 --speeds 5,3,1 --export {format}"));
        assert_eq!(String::from_utf8(few.stderr).unwrap(), "", "{format}");
    }
    let refused = here.fails(2, "partition --units 8000000 --speeds 3,1 --export hostfile");
    assert!(refused.contains("slurm-units"), "{refused}");
}

/// A platform of two processors, each on a core of this machine; `None`, with a skip, if it has one.
#[cfg(target_os = "linux")]
fn two_cores(here: &Bench) -> Option<[usize; 2]> {
    let cores = apportion::platform::discover().cores;
    let [one, two, ..] = &cores[..] else {
        skip(Need::Cores, "two cores are needed");
        return None;
    };
    let (one, two) = (one.cpu, two.cpu);
    let processor = |name: &str, core: usize, speed: u32| {
        format!(
            "[[processor]]\nname = \"{name}\"\ncluster = \"machine\"\ncores = [{core}]\nspeed = {speed}\n"
        )
    };
    here.write("two.toml", processor("fast", one, 2) + &processor("slow", two, 1));
    Some([one, two])
}

#[cfg(not(target_os = "linux"))]
fn each_processor_runs_on_its_cores() {}

#[cfg(target_os = "linux")]
#[test]
fn each_processor_runs_on_its_cores() {
    let here = Bench::new();
    let Some([one, two]) = two_cores(&here) else { return };
    let script = here.done("partition --units 9 --platform two.toml --export taskset");
    here.write("taskset.sh", &script);
    let of_numactl = here.done("partition --units 9 --platform two.toml --export numactl");
    // numactl(8): --physcpubind takes a list of CPUs as the kernel writes it, like taskset -c.
    assert_eq!(of_numactl, script.replace("taskset -c ", "numactl --localalloc --physcpubind="));
    here.write("numactl.sh", of_numactl);
    let told = "echo $from $to $OMP_NUM_THREADS $(sed -n 's/^Cpus_allowed_list://p' /proc/self/status)";
    for tool in ["taskset", "numactl"] {
        if program(&[tool]).is_none() {
            continue;
        }
        let run = |words: &[&str]| {
            let mut command = Command::new("sh");
            command.arg(format!("{tool}.sh")).args(words).current_dir(here.path(".")).output().unwrap()
        };
        assert_eq!(
            ranks(&run(&["sh", "-c", told])),
            [format!("0 6 1 {one}"), format!("6 9 1 {two}")],
            "{tool}"
        );
        assert_eq!(run(&["sh", "-c", "test $from = 0"]).status.code(), Some(1), "{tool}: one of them failed");
    }
    // Without cores there is nothing to say, and a plan from a file needs its platform.
    let said = here.fails(2, "partition --units 9 --speeds 2,1 --export taskset");
    assert!(said.contains("\"p0\": has no cores") && said.contains("--platform"), "{said}");
    here.done("partition --units 9 --platform two.toml -o plan.json");
    here.fails(2, "partition --plan plan.json --export taskset");
    assert_eq!(here.done("partition --plan plan.json --platform two.toml --export taskset"), script);
    let said = here.fails(2, "partition --plan plan.json --platform two.toml --export csv");
    assert!(said.contains("--platform"), "{said}");
}

#[cfg(not(target_os = "linux"))]
fn ranks_run_on_the_cores_of_their_processor() {}

#[cfg(target_os = "linux")]
#[test]
fn ranks_run_on_the_cores_of_their_processor() {
    use std::os::unix::fs::PermissionsExt;
    let here = Bench::new();
    let Some([one, two]) = two_cores(&here) else { return };
    let line = here.done("partition --units 3 --platform two.toml --export mpirun");
    assert_eq!(
        line,
        format!(
            "mpirun --bind-to none -np 2 taskset -c {one} ./program : -np 1 taskset -c {two} ./program\n"
        )
    );
    // Each rank in a file of its own: lines of several ranks on one pipe may mix.
    here.write(
        "program",
        "#!/bin/sh\nsed -n 's/^Cpus_allowed_list:\\t//p' /proc/self/status > said.${OMPI_COMM_WORLD_RANK-$PMI_RANK}\n",
    );
    std::fs::set_permissions(here.path("program"), std::fs::Permissions::from_mode(0o755)).unwrap();
    for (need, mpirun, package) in
        [(Need::Mpi, "mpirun.openmpi", "openmpi-bin"), (Need::Mpich, "mpirun.mpich", "mpich")]
    {
        let Some(mpirun) = installed(need, &[mpirun], package) else { continue };
        let out = Command::new("sh")
            .args(["-c", &line.replacen("mpirun", mpirun, 1)])
            .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
            .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
            .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
            .current_dir(here.path("."))
            .output()
            .unwrap();
        assert!(out.status.success(), "{mpirun}: {}", String::from_utf8_lossy(&out.stderr));
        for (rank, core) in [(0, one), (1, one), (2, two)] {
            let file = here.path(&format!("said.{rank}"));
            assert_eq!(std::fs::read_to_string(&file).unwrap(), format!("{core}\n"), "{mpirun}: rank {rank}");
            std::fs::remove_file(file).unwrap();
        }
        assert!(!here.has("said.3"), "{mpirun}");
    }
}
