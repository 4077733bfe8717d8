//! Programs in C and Fortran, compiled and run as their users would: installed, with pkg-config, under both
//! MPIs.
#![allow(clippy::unwrap_used)]
#![cfg(target_os = "linux")]

use apportion_testing::{Need, program, skip};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The installation of this test run.
fn installed() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        // Cargo has built the libraries beside this binary. They are installed there too: the same place for every
        // run, so that nothing is left in the temporary folder.
        let deps = std::env::current_exe().unwrap().parent().unwrap().to_owned();
        let prefix = deps.parent().unwrap().join("apportion-c-installed");
        let out = Command::new(here("install")).arg(&prefix).env("APPORTION_BUILT", &deps).output().unwrap();
        succeeded(&out);
        prefix
    })
}

fn here(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn succeeded(out: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(out.status.success(), "{:?}\n{}\n{}", out.status, text(&out.stdout), text(&out.stderr));
    text(&out.stdout)
}

/// The words that `pkg-config` prints for the installed library.
fn flags(options: &[&str]) -> Vec<String> {
    let out = Command::new("pkg-config")
        .args(options)
        .arg("apportion")
        .env("PKG_CONFIG_PATH", installed().join("lib/pkgconfig"))
        .output()
        .unwrap();
    succeeded(&out).split_whitespace().map(str::to_owned).collect()
}

/// A compiler, or a visible skip.
fn compiler(need: Need, names: &[&'static str], package: &str) -> Option<PathBuf> {
    let found = program(names).filter(|_| program(&["pkg-config"]).is_some());
    if found.is_none() {
        skip(
            need,
            format!("{} or pkg-config is not installed (Debian packages {package}, pkg-config)", names[0]),
        );
    }
    found
}

/// Compiles sources to a program in a directory.
fn compile(compiler: &Path, sources: &[PathBuf], into: &Path) -> PathBuf {
    let built = into.join("program");
    let mut command = Command::new(compiler);
    command.current_dir(into).args(["-O1", "-o"]).arg(&built).args(sources);
    if sources.iter().any(|source| source.extension().is_some_and(|e| e == "c")) {
        command.args(["-Wall", "-Wextra", "-Werror", "-std=c99", "-pedantic"]).args(flags(&["--cflags"]));
    }
    command.args(flags(&["--libs"])).arg(format!("-Wl,-rpath,{}", installed().join("lib").display()));
    succeeded(&command.output().unwrap());
    built
}

/// A command that runs a program, or starts one, with a cache of its own in the program's directory.
fn command(first: &Path, program: &Path) -> Command {
    let mut command = Command::new(first);
    command.env("XDG_CACHE_HOME", program.with_file_name("cache"));
    command
}

/// Runs a program on ranks.
fn launched(mpirun: &str, ranks: &str, program: &Path, arguments: &[&str]) -> Output {
    let mut command = command(Path::new(mpirun), program);
    if mpirun.ends_with("openmpi") {
        command.args(["--allow-run-as-root", "--oversubscribe", "--mca", "btl", "self,vader,tcp"]);
    }
    command.args(["-n", ranks]).arg(program).args(arguments).output().unwrap()
}

/// Both MPIs, as far as they are installed: compilers of C and Fortran, and the launcher.
const MPIS: [(Need, [&str; 3], &str); 2] = [
    (
        Need::Mpi,
        ["mpicc.openmpi", "mpifort.openmpi", "mpirun.openmpi"],
        "libopenmpi-dev, openmpi-bin, gfortran",
    ),
    (Need::Mpich, ["mpicc.mpich", "mpifort.mpich", "mpirun.mpich"], "libmpich-dev, mpich, gfortran"),
];

fn each_mpi(which: usize, test: impl Fn(&Path, &str, &Path)) {
    for (need, names, packages) in MPIS {
        let Some(compiler) = compiler(need, &[names[which]], packages) else { continue };
        if program(&[names[2]]).is_none() {
            skip(need, format!("{} is not installed (Debian packages {packages})", names[2]));
            continue;
        }
        let directory = tempfile::tempdir().unwrap();
        if !has_mpi(&compiler, which, directory.path()) {
            skip(need, format!("{} finds no MPI (Debian packages {packages})", names[which]));
            continue;
        }
        test(&compiler, names[2], directory.path());
    }
}

/// True if the wrapper comes with the headers or modules: Debian has them in packages of their own.
fn has_mpi(compiler: &Path, which: usize, into: &Path) -> bool {
    let (name, text) = [("probe.c", "#include <mpi.h>\n"), ("probe.f90", "program p\nuse mpi\nend\n")][which];
    std::fs::write(into.join(name), text).unwrap();
    let out = Command::new(compiler).args(["-fsyntax-only", name]).current_dir(into).output().unwrap();
    out.status.success()
}

/// The numbers of a line such as "heat 1.5, 2 changes, rows 3 4" after a word.
fn numbers_after(text: &str, word: &str) -> Vec<f64> {
    let rest = text.split_once(word).unwrap_or_else(|| panic!("{word} in {text}")).1;
    rest.split_whitespace().map_while(|word| word.trim_end_matches(',').parse().ok()).collect()
}

#[test]
fn c_gets_answers_codes_and_messages() {
    let Some(cc) = compiler(Need::C, &["cc", "gcc"], "gcc") else { return };
    let directory = tempfile::tempdir().unwrap();
    let built = compile(&cc, &[here("tests/answers.c")], directory.path());
    std::fs::write(
        directory.path().join("two.toml"),
        "[[processor]]\nname = \"a\"\nspeed = \"2 Gflop/s\"\n[[processor]]\nname = \"b\"\nspeed = \"1 Gflop/s\"\n\
         [network]\nlatency = \"1 us\"\nbandwidth = \"10 GB/s\"\n",
    )
    .unwrap();
    std::fs::write(
        directory.path().join("models.json"),
        r#"{"format": "apportion-models", "version": 1, "kernel": "k", "unit": "units", "parameters": {}, "models": [
            {"processor": "a", "interpolation": "piecewise-linear", "max_size": null,
             "points": [{"size": 50, "seconds": 5}, {"size": 100, "seconds": 100}]},
            {"processor": "b", "interpolation": "constant", "max_size": null, "points": [{"size": 5, "seconds": 1}]}]}"#,
    )
    .unwrap();
    let out = command(&built, &built).current_dir(directory.path()).output().unwrap();
    assert_eq!(succeeded(&out), "all answers are right\n");
    // Users test their programs with it: it must find nothing in the library. It maps no vDSO, from which the threads
    // of a product read their clocks.
    let Some(valgrind) = program(&["valgrind"]) else {
        skip(Need::Valgrind, "valgrind is not installed (Debian package valgrind)");
        return;
    };
    let mut checked = command(&valgrind, &built);
    checked
        .args(["--quiet", "--error-exitcode=9"])
        .arg(&built)
        .arg("without-products")
        .current_dir(directory.path());
    assert_eq!(succeeded(&checked.output().unwrap()), "all answers are right\n");
}

/// The program of the page for users of C prints what the page says.
#[test]
fn the_first_program_divides_and_multiplies() {
    let Some(cc) = compiler(Need::C, &["cc", "gcc"], "gcc") else { return };
    let directory = tempfile::tempdir().unwrap();
    let built = compile(&cc, &[here("examples/first.c")], directory.path());
    let out = command(&built, &built).output().unwrap();
    assert_eq!(succeeded(&out), "900 and 100 units\nC is 21 and 43\n");
}

#[test]
fn the_program_of_the_loaded_string_solves_its_system() {
    let Some(cc) = compiler(Need::C, &["cc", "gcc"], "gcc") else { return };
    let directory = tempfile::tempdir().unwrap();
    let built = compile(&cc, &[here("examples/solve.c")], directory.path());
    let out = command(&built, &built).output().unwrap();
    assert_eq!(succeeded(&out), "the string sags by 5050.000\n");
}

/// The static library needs no shared one.
#[test]
fn c_links_statically() {
    let Some(cc) = compiler(Need::C, &["cc", "gcc"], "gcc") else { return };
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("version.c");
    std::fs::write(
        &source,
        "#include <apportion.h>\n#include <stdio.h>\nint main(void) { puts(apportion_version()); return 0; }\n",
    )
    .unwrap();
    let built = directory.path().join("version");
    let mut compile = Command::new(cc);
    compile.arg(&source).arg("-o").arg(&built).args(flags(&["--cflags"]));
    compile.arg(installed().join("lib/libapportion.a"));
    let private = flags(&["--static", "--libs-only-l"]);
    compile.args(private.iter().filter(|flag| *flag != "-lapportion"));
    succeeded(&compile.output().unwrap());
    assert_eq!(succeeded(&command(&built, &built).output().unwrap()).trim(), env!("CARGO_PKG_VERSION"));
}

#[test]
fn a_stencil_in_c_moves_its_rows_to_the_faster_process() {
    each_mpi(0, |mpicc, mpirun, directory| {
        let built = compile(mpicc, &[here("examples/stencil.c")], directory);
        let one = succeeded(&launched(mpirun, "1", &built, &[]));
        let two = succeeded(&launched(mpirun, "2", &built, &["6", "1"]));
        let three = succeeded(&launched(mpirun, "3", &built, &[]));
        let heat = |text: &str| numbers_after(text, "heat")[0];
        // The sum's order differs, the summands do not.
        for other in [&two, &three] {
            assert!((heat(other) / heat(&one) - 1.0).abs() < 1e-9, "{one}{other}");
        }
        assert!(heat(&one) > 51_200.0, "{one}");
        assert_eq!(numbers_after(&one, "rows"), [512.0]);
        let rows = numbers_after(&two, "rows");
        assert!(rows.iter().sum::<f64>() == 512.0 && rows[0] < rows[1], "six times slower: {two}");
    });
}

#[test]
fn a_loop_in_fortran_moves_its_tasks_to_the_faster_process() {
    each_mpi(1, |mpifort, mpirun, directory| {
        let module = installed().join("share/apportion/apportion.f90");
        let built = compile(mpifort, &[module, here("examples/loop.f90")], directory);
        let one = succeeded(&launched(mpirun, "1", &built, &[]));
        let two = succeeded(&launched(mpirun, "2", &built, &["6", "1"]));
        assert_eq!(numbers_after(&one, "steps"), numbers_after(&two, "steps"));
        let tasks = numbers_after(&two, "tasks");
        assert!(tasks.iter().sum::<f64>() == 2000.0 && tasks[0] < tasks[1], "six times slower: {two}");
    });
}

#[test]
fn a_product_runs_on_a_communicator_of_the_program() {
    each_mpi(0, |mpicc, mpirun, directory| {
        let built = compile(mpicc, &[here("examples/product.c")], directory);
        for ranks in ["1", "2", "3"] {
            let text = succeeded(&launched(mpirun, ranks, &built, &[]));
            assert_eq!(text, format!("0 wrong of 39100 elements on {ranks} processes\n"));
        }
    });
}

/// The other MPI's handles are refused with a message, not with a crash; so is a program without MPI.
#[test]
fn handles_of_another_mpi_are_refused() {
    each_mpi(0, |mpicc, mpirun, directory| {
        let built = compile(mpicc, &[here("tests/handles.c")], directory);
        let text = succeeded(&launched(mpirun, "2", &built, &[]));
        // The lines of two ranks may be mixed.
        assert!(
            text.matches("refused").count() == 2 && text.replace("refused", "").trim().is_empty(),
            "{text}"
        );
    });
}
