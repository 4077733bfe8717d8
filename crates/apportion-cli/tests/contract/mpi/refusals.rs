//! A run that is impossible is rejected by all ranks together, in one line from apportion, with exit code 2.

use super::launch::{Mpi, said};
use crate::bench::Bench;
use apportion_testing::{Need, binary, skip};

fn refused(bench: &Bench, mpi: Mpi, processes: usize, arguments: &str, words: &[&str]) {
    let before = bench.names();
    let Some(mut command) = mpi.command(bench, processes, arguments) else { return };
    let output = command.output().unwrap();
    let lines = said(&output);
    assert_eq!(lines.len(), 1, "{}", String::from_utf8_lossy(&output.stderr));
    assert!(words.iter().all(|word| lines[0].contains(word)), "{words:?}: {}", lines[0]);
    assert_eq!(output.status.code(), Some(2), "{}", lines[0]);
    assert!(output.stdout.is_empty());
    assert_eq!(bench.names(), before);
}

#[test]
fn what_does_not_fit_the_world_or_the_engine() {
    let bench = Bench::new();
    bench.platform(3, false);
    bench.numbers("a.npy", "<f8", (9, 9), false);
    bench.numbers("b.npy", "<f8", (8, 9), false);
    bench.numbers("f.npy", "<f4", (9, 9), false);
    std::fs::write(
        bench.path("wires.toml"),
        "[[processor]]\nname = \"a\"\n[[processor]]\nname = \"b\"\n[network]\nbandwidth = \"1 MB/s\"\nemulate = true\n",
    )
    .unwrap();
    bench.write("m.mtx", "%%MatrixMarket matrix array real general\n1 1\n1\n");
    bench.write("c.npy", "an earlier result");
    let product = "--engine mpi -o c.npy --platform platform.toml";
    for (processes, arguments, words) in [
        (2, format!("matmul a.npy a.npy {product}"), &["2 processes", "3 processors"][..]),
        (3, format!("matmul a.npy b.npy {product}"), &["b.npy: is 8 x 9", "needs 9 rows"]),
        (2, format!("matmul a.npy f.npy {product}"), &["holds f32"]),
        (2, format!("matmul a.npy missing.npy {product}"), &["missing.npy"]),
        (
            3,
            format!("matmul b.npy b.npy --transpose-b --c-in b.npy {product}"),
            &["b.npy: is 8 x 9", "8 x 8"],
        ),
        (3, format!("matmul b.npy b.npy {product}"), &["b.npy: is 8 x 9", "needs 9 rows"]),
        (3, format!("matmul a.npy a.npy --c-in f.npy {product}"), &["f.npy: holds f32"]),
        (2, format!("matmul m.mtx m.mtx {product}"), &["m.mtx", "own part"]),
        (2, "matmul a.npy a.npy --engine mpi --platform wires.toml".into(), &["emulate", "--engine threads"]),
        (2, "matmul a.npy a.npy --engine mpi -o missing/c.npy".into(), &["there is no directory"]),
        (2, "matmul a.npy a.npy --platform wires.toml".into(), &["emulate", "--engine threads"]),
        (
            2,
            "matmul a.npy a.npy --engine threads".into(),
            &["each of which would do the whole work on threads"],
        ),
        (2, "matmul --no-such-flag".into(), &["--no-such-flag"]),
    ] {
        refused(&bench, Mpi::Open, processes, &arguments, words);
    }
    refused(
        &bench,
        Mpi::Mpich,
        2,
        &format!("matmul a.npy a.npy {product}"),
        &["2 processes", "3 processors"],
    );
    assert_eq!(bench.bytes("c.npy"), b"an earlier result");
}

/// A cycle that improves forever is found by the rank that owns it, and reported once.
#[test]
fn a_cycle_is_told_once() {
    let bench = Bench::new();
    bench.platform(2, false);
    bench.numbers("a.npy", "<f8", (9, 9), false);
    let Some(mut command) =
        Mpi::Open.command(&bench, 2, "closure a.npy -o c.npy --engine mpi --platform platform.toml")
    else {
        return;
    };
    let output = command.output().unwrap();
    assert_eq!(said(&output).len(), 1);
    assert!(said(&output)[0].contains("negative weight"), "{:?}", said(&output));
    assert_eq!(output.status.code(), Some(1));
    assert!(!bench.path("c.npy").exists());
}

#[test]
fn a_missing_library_and_another_one() {
    let bench = Bench::new();
    bench.numbers("a.npy", "<f8", (4, 4), false);
    let output = std::process::Command::new(binary())
        .args(["matmul", "a.npy", "a.npy", "--engine", "mpi"])
        .current_dir(bench.path("."))
        .env("APPORTION_MPI", "libno-such-mpi.so.7")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let line = String::from_utf8(output.stderr).unwrap();
    assert_eq!(line.lines().count(), 1);
    assert!(line.contains("tried libno-such-mpi.so.7") && line.contains("openmpi-bin"), "{line}");
    // Each process would be alone in a world of its own.
    if Mpi::Mpich.mpirun().is_none() {
        return;
    }
    let Some(mut command) = Mpi::Open.command(&bench, 2, "matmul a.npy a.npy --engine mpi") else { return };
    let output = command.env("APPORTION_MPI", "libmpich.so.12").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output)[0].contains("mpirun started 2 processes"), "{:?}", said(&output));
}

/// Starts three ranks in directories of their own, `rank0` to `rank2`; rank 1 with another line.
fn differently(bench: &Bench, [all, one]: [&str; 2]) -> Option<std::process::Output> {
    let (program, rank) = (binary().display().to_string(), "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}");
    let script = format!(
        "cd rank{rank} && if [ {rank} = 1 ]; then exec {program} {one} --engine mpi; else exec {program} {all} \
         --engine mpi; fi"
    );
    let mut command = Mpi::Open.program(3, "sh")?;
    command.args(["-c", &script]).current_dir(bench.path(".")).env("XDG_CACHE_HOME", bench.cache());
    Some(command.output().unwrap())
}

/// Directories of three ranks. Those of rank 1 have another `other.npy`, and other files with one letter or
/// element changed; `same.npy` and the platform are copies.
fn three_directories() -> Bench {
    let bench = Bench::new();
    let cell = include_str!("../../../../../examples/mdem/tacconi-lewis.toml");
    for rank in 0..3 {
        std::fs::create_dir(bench.path(&format!("rank{rank}"))).unwrap();
        let at = |name: &str| format!("rank{rank}/{name}");
        let twice = if rank == 1 { 2 } else { 1 };
        bench.numbers(&at("other.npy"), "<f8", (9 * twice, 9), false);
        for name in ["same.npy", "copy.npy"] {
            bench.numbers(&at(name), "<f8", (9, 9), false);
        }
        for (name, sizes) in [("cx.npy", (10, 9)), ("cy.npy", (9, 10))] {
            bench.numbers(&at(name), "<f8", sizes, false);
        }
        let speeds = |last: usize| {
            let one = |(i, speed): (usize, usize)| {
                format!("[[processor]]\nname = \"p{i}\"\nspeed = \"{speed} Gflop/s\"\n")
            };
            [3, 2, last].into_iter().enumerate().map(one).collect::<String>()
        };
        bench.write(&at("same.toml"), speeds(1));
        bench.write(&at("other.toml"), speeds(twice));
        bench.write(
            &at("cell.toml"),
            if rank == 1 { cell.replacen("60 s", "61 s", 1) } else { cell.to_owned() },
        );
    }
    for name in ["rank1/copy.npy", "rank1/cy.npy"] {
        let path = bench.path(name);
        let mut bytes = std::fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&path, bytes).unwrap();
    }
    bench
}

/// Ranks that see other files, or were started with other arguments, do not compute one result: every command
/// says so before it begins, in one line, with the rank and its host.
#[test]
#[ignore = "slow"]
fn ranks_that_differ() {
    let bench = three_directories();
    let here = format!("rank 1 ({})", apportion::run::host_name());
    let advect = "advect --field same.npy --courant 0.1,0.1 --steps 4 --platform same.toml -o out.npy";
    let mdem = "mdem cell.toml --platform same.toml";
    let product = "matmul same.npy same.npy --platform same.toml";
    let file = "sees another file";
    // The line of all ranks, what rank 1 has instead of a part of it, and what the refusal says.
    let cases: Vec<(String, [&str; 2], [&str; 2])> = vec![
        ("matmul other.npy same.npy".into(), ["", ""], ["other.npy", file]),
        ("matmul copy.npy same.npy".into(), ["", ""], ["copy.npy", file]),
        ("closure copy.npy".into(), ["", ""], ["copy.npy", file]),
        (product.replace("same.toml", "other.toml"), ["", ""], ["other.toml", file]),
        (
            format!("{product} --alpha 1"),
            ["--alpha 1", "--alpha 2"],
            ["has \"--alpha 2\"", "has \"--alpha 1\""],
        ),
        (format!("{product} -o c.npy"), ["-o c.npy", ""], ["has nothing", "has \"-o c.npy\""]),
        ("power same.npy -k 3".into(), ["-k 3", "-k 4"], ["has \"-k 4\"", "has \"-k 3\""]),
        (
            "matmul same.npy same.npy --speeds 1,1,1".into(),
            ["1,1,1", "1,1,2"],
            ["--speeds 1,1,2", "--speeds 1,1,1"],
        ),
        (advect.replace("same.npy", "copy.npy"), ["", ""], ["copy.npy", file]),
        (advect.replace("0.1,0.1", "cx.npy,cy.npy"), ["", ""], ["cy.npy", file]),
        (advect.replace("same.toml", "other.toml"), ["", ""], ["other.toml", file]),
        (advect.into(), ["0.1,0.1", "0.2,0.1"], ["--courant 0.2,0.1", "--courant 0.1,0.1"]),
        (advect.into(), ["--steps 4", "--steps 6"], ["--steps 6", "--steps 4"]),
        (advect.into(), ["-o out.npy", "--boundary zero -o out.npy"], ["--boundary zero", "arguments"]),
        (advect.into(), ["-o out.npy", "-o out.npy --every 2"], ["--every 2", "arguments"]),
        (advect.into(), ["-o out.npy", "-o out.npy --nonoscillatory"], ["--nonoscillatory", "arguments"]),
        (
            advect.into(),
            ["--platform same.toml", "--speeds 1,1,1"],
            ["--speeds 1,1,1", "--platform same.toml"],
        ),
        (mdem.into(), ["", ""], ["cell.toml", file]),
        (mdem.replace("same.toml", "other.toml"), ["", ""], ["other.toml", file]),
        (
            "measure --sizes 100 -o m.json".into(),
            ["--sizes 100", "--sizes 200"],
            ["--sizes 200", "--sizes 100"],
        ),
        ("measure --sizes 100".into(), ["measure --sizes 100", mdem], ["mdem", "measure"]),
        ("measure --network --platform other.toml".into(), ["", ""], ["other.toml", file]),
    ];
    for (line, [part, instead], words) in cases {
        let one = if part.is_empty() { line.clone() } else { line.replacen(part, instead, 1) };
        let Some(output) = differently(&bench, [&line, &one]) else { return };
        let lines = said(&output);
        assert_eq!(lines.len(), 1, "{line}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(
            words.iter().chain(&[here.as_str()]).all(|word| lines[0].contains(word)),
            "{words:?}: {}",
            lines[0]
        );
        assert_eq!(output.status.code(), Some(2), "{}", lines[0]);
        assert!(!bench.has("rank0/out.npy") && !bench.has("rank0/m.json") && !bench.has("rank0/c.npy"));
    }
    // Copies with other times are the same product.
    let Some(output) = differently(&bench, [product, product]) else { return };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A file that one rank lacks: the error says which rank, and on which host.
#[test]
fn a_file_that_one_rank_lacks() {
    let bench = three_directories();
    let here = format!("apportion: rank 1 ({}): ", apportion::run::host_name());
    for name in ["same.npy", "same.toml"] {
        bench.remove(&format!("rank1/{name}"));
    }
    for (line, words) in [
        ("matmul copy.npy same.npy", "same.npy: cannot read: No such file"),
        ("mdem cell.toml --platform same.toml", "same.toml: cannot read: No such file"),
        ("advect --field same.npy --courant 0.1,0.1 --steps 4", "same.npy: cannot read: No such file"),
    ] {
        let Some(output) = differently(&bench, [line, line]) else { return };
        let lines = said(&output);
        assert_eq!((output.status.code(), lines.len()), (Some(2), 1), "{lines:?}");
        assert!(lines[0].starts_with(&format!("{here}{words}")), "{lines:?}");
    }
    // What all lack is told once, without a rank.
    let line = "matmul copy.npy none.npy";
    let Some(output) = differently(&bench, [line, line]) else { return };
    assert!(said(&output)[0].starts_with("apportion: none.npy: cannot read"), "{:?}", said(&output));
}

/// A directory of the output that only rank 0 sees, as without a file system that the hosts share.
#[test]
fn an_output_that_one_rank_does_not_see() {
    let bench = Bench::new();
    bench.numbers("a.npy", "<f8", (9, 9), false);
    bench.platform(2, false);
    std::fs::create_dir(bench.path("out")).unwrap();
    let own = "unshare --mount sh -c 'mount -t tmpfs none out";
    let mut mounts = std::process::Command::new("sh");
    mounts.args(["-c", &format!("{own}'")]).current_dir(bench.path("."));
    if !mounts.output().is_ok_and(|tried| tried.status.success()) {
        skip(Need::Netns, "no mount namespace can be made");
        return;
    }
    let script = format!(
        "run=\"{} matmul a.npy a.npy -o out/c.npy --platform platform.toml --engine mpi\"; \
         if [ ${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}} = 1 ]; then export run; {own}; exec $run'; else exec $run; fi",
        binary().display()
    );
    let Some(mut command) = Mpi::Open.program(2, "sh") else { return };
    command.args(["-c", &script]).current_dir(bench.path(".")).env("XDG_CACHE_HOME", bench.cache());
    let output = command.output().unwrap();
    let lines = said(&output);
    let here =
        format!("apportion: rank 1 ({}): out/c.npy: the file that rank 0", apportion::run::host_name());
    assert_eq!((output.status.code(), lines.len()), (Some(2), 1), "{lines:?}");
    assert!(lines[0].starts_with(&here) && !lines[0].contains(".apportion-"), "{lines:?}");
    assert!(std::fs::read_dir(bench.path("out")).unwrap().next().is_none());
}

/// Tasks of a launcher that form no world: each would be alone in one.
#[test]
fn tasks_that_are_no_world() {
    let bench = Bench::new();
    bench.numbers("a.npy", "<f8", (9, 9), false);
    if Mpi::Open.mpirun().is_none() {
        return;
    }
    let seen = "sees 1";
    for (variables, what, remedy) in [
        ([("SLURM_STEP_NUM_TASKS", "8"), ("SLURM_PROCID", "3")], "was given no interface", "--mpi=pmix"),
        ([("FLUX_JOB_SIZE", "8"), ("FLUX_TASK_RANK", "0")], seen, "pmi=pmix"),
        ([("JSM_NAMESPACE_SIZE", "8"), ("JSM_NAMESPACE_RANK", "1")], seen, "APPORTION_MPI"),
    ] {
        let output = std::process::Command::new(binary())
            .args("matmul a.npy a.npy --engine mpi -o c.npy".split(' '))
            .envs(variables)
            .env("APPORTION_MPI", "libmpi.so.40")
            .current_dir(bench.path("."))
            .output()
            .unwrap();
        let line = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(
            line.contains("started 8 processes") && line.contains(what) && line.contains(remedy),
            "{line}"
        );
        assert!(!bench.has("c.npy"));
    }
}
