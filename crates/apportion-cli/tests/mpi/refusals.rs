//! A run that is impossible is rejected by all ranks together, in one line from apportion, with exit code 2.

use super::launch::{Bench, Mpi, said};
use apportion_testing::binary;

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
    bench.matrix("a.npy", "<f8", (9, 9), false);
    bench.matrix("b.npy", "<f8", (8, 9), false);
    bench.matrix("f.npy", "<f4", (9, 9), false);
    std::fs::write(
        bench.path("wires.toml"),
        "[[processor]]\nname = \"a\"\n[[processor]]\nname = \"b\"\n[network]\nbandwidth = \"1 MB/s\"\nemulate = true\n",
    )
    .unwrap();
    std::fs::write(bench.path("m.mtx"), "%%MatrixMarket matrix array real general\n1 1\n1\n").unwrap();
    std::fs::write(bench.path("c.npy"), "an earlier result").unwrap();
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
        (2, "matmul a.npy a.npy --platform wires.toml".into(), &["add --engine mpi"]),
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
    assert_eq!(std::fs::read(bench.path("c.npy")).unwrap(), b"an earlier result");
}

/// A cycle that improves forever is found by the rank that owns it, and reported once.
#[test]
fn a_cycle_is_told_once() {
    let bench = Bench::new();
    bench.platform(2, false);
    bench.matrix("a.npy", "<f8", (9, 9), false);
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
    bench.matrix("a.npy", "<f8", (4, 4), false);
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

/// Ranks that see other files, or were started with other arguments, do not compute one product.
#[test]
fn ranks_that_differ() {
    let bench = Bench::new();
    for rank in 0..3 {
        std::fs::create_dir(bench.path(&format!("rank{rank}"))).unwrap();
        let twice = if rank == 1 { 2 } else { 1 };
        bench.matrix(&format!("rank{rank}/other.npy"), "<f8", (9 * twice, 9), false);
        for name in ["same.npy", "copy.npy"] {
            bench.matrix(&format!("rank{rank}/{name}"), "<f8", (9, 9), false);
        }
    }
    let path = bench.path("rank1/copy.npy");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[200] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let start = |arguments: &str| {
        let script = format!(
            "cd rank${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}} && exec {} {arguments} --engine mpi",
            binary().display()
        );
        let mut command = Mpi::Open.program(3, "sh")?;
        command.args(["-c", &script]).current_dir(bench.path(".")).env("XDG_CACHE_HOME", bench.cache());
        Some(command.output().unwrap())
    };
    for (arguments, words) in [
        ("matmul other.npy same.npy", &["other.npy", "rank 1 sees another file"][..]),
        ("matmul copy.npy same.npy", &["copy.npy", "rank 1 sees another file"]),
        ("matmul same.npy same.npy --alpha $OMPI_COMM_WORLD_RANK", &["arguments", "--alpha 1", "--alpha 0"]),
    ] {
        let Some(output) = start(arguments) else { return };
        let lines = said(&output);
        assert_eq!(lines.len(), 1, "{}", String::from_utf8_lossy(&output.stderr));
        assert!(words.iter().all(|word| lines[0].contains(word)), "{words:?}: {}", lines[0]);
        assert_eq!(output.status.code(), Some(2), "{}", lines[0]);
    }
    // Copies with other times are the same product.
    let Some(output) = start("matmul same.npy same.npy --speeds 1,1,1") else { return };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
