//! A directory of its own for each test, the binary run in it, and matrices to feed it.

use apportion::matrix::{AnyMatrix, Element, Matrix, read_matrix, write_npy};
use apportion::output::OutputFile;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

pub struct Bench {
    directory: TempDir,
}

impl Bench {
    pub fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("work").join(name)
    }

    /// The binary, in this directory, with a cache of its own.
    pub fn command(&self, arguments: &[&str]) -> Command {
        std::fs::create_dir_all(self.path("")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_apportion"));
        command
            .args(arguments)
            .current_dir(self.path(""))
            .env("XDG_CACHE_HOME", self.cache())
            .stdin(Stdio::null());
        command
    }

    pub fn cache(&self) -> PathBuf {
        self.directory.path().join("cache")
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs what must succeed; its stdout.
    pub fn done(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {:?} {stderr}", output.status.code());
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs what must succeed with `--json`; stdout is one object and nothing else.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let text = self.done(&[arguments, &["--json"]].concat());
        let value: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
        assert!(value.is_object());
        value
    }

    /// Runs what must fail so: the exit code, one line on stderr, nothing on stdout, and no file come or changed.
    pub fn fails(&self, code: i32, arguments: &[&str]) -> String {
        let before = self.files();
        let output = self.run(arguments);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{arguments:?}");
        assert!(stderr.ends_with('\n') && stderr.lines().count() == 1, "{arguments:?}: {stderr:?}");
        assert!(stderr.starts_with("apportion: ") && !stderr.contains("internal error"), "{stderr}");
        assert_eq!(self.files(), before, "{arguments:?} left something behind");
        stderr
    }

    /// Every file in the directory with what it holds, hidden ones too.
    pub fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        let mut folders = vec![self.path("")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path)
                } else {
                    found.push((path.clone(), std::fs::read(&path).unwrap()))
                }
            }
        }
        found.sort();
        found
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::create_dir_all(self.path("")).unwrap();
        std::fs::write(self.path(name), bytes).unwrap();
    }

    pub fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub fn value(&self, name: &str) -> Value {
        serde_json::from_str(&self.text(name)).unwrap()
    }

    /// Writes a matrix in C order, by the library's own writer.
    pub fn matrix<T: Element>(&self, name: &str, matrix: &Matrix<T>) {
        std::fs::create_dir_all(self.path("")).unwrap();
        let mut file = OutputFile::create(self.path(name)).unwrap();
        write_npy(&mut file, matrix).unwrap();
        file.commit().unwrap();
    }

    pub fn read(&self, name: &str) -> AnyMatrix {
        read_matrix(&self.path(name)).unwrap()
    }

    pub fn has(&self, name: &str) -> bool {
        Path::exists(&self.path(name))
    }
}

/// Small whole numbers of both signs: products and sums of them are exact in either type.
pub fn whole<T: Element>(rows: usize, cols: usize, seed: usize) -> Matrix<T> {
    let data = (0..rows * cols).map(|i| T::from_f64(((i * 7 + i / cols * 3 + seed) % 11) as f64 - 5.0));
    Matrix::new(rows, cols, data.collect())
}

/// Three loops.
pub fn product(a: &Matrix<f64>, b: &Matrix<f64>) -> Matrix<f64> {
    let mut c = vec![0.0; a.rows() * b.cols()];
    for (i, line) in c.chunks_exact_mut(b.cols()).enumerate() {
        for (x, &left) in a.row(i).iter().enumerate() {
            for (sum, right) in line.iter_mut().zip(b.row(x)) {
                *sum += left * right;
            }
        }
    }
    Matrix::new(a.rows(), b.cols(), c)
}

/// Two processors of known speed in flop/s: nothing needs measuring.
pub const TWO: &str = "name = \"two\"\n\
    [[processor]]\nname = \"fast\"\nspeed = \"9 Gflop/s\"\n\
    [[processor]]\nname = \"slow\"\nspeed = \"1 Gflop/s\"\n";
