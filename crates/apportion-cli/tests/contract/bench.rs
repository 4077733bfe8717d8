//! Matrices and platforms for the tests of the contract.

use apportion::matrix::{AnyMatrix, Element, Matrix, read_matrix, write_npy};
use apportion::output::OutputFile;
use std::ops::Deref;
#[cfg(unix)]
use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::sync::LazyLock;

/// The cache that tests share: empty when their process begins.
#[cfg(unix)]
static CACHE: LazyLock<PathBuf> = LazyLock::new(|| {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache");
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
});

/// A separate directory for each test, the binary run in it, and input matrices.
pub struct Bench(apportion_testing::Bench);

impl Deref for Bench {
    type Target = apportion_testing::Bench;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Bench {
    /// A new directory. Speeds and links are measured once for all of these tests, which none may depend on: a
    /// measurement takes seconds. Other programs' caches are not shared.
    pub fn new() -> Self {
        let bench = Self::with_empty_cache();
        #[cfg(unix)]
        {
            std::fs::create_dir_all(bench.cache()).unwrap();
            std::os::unix::fs::symlink(&*CACHE, bench.cache().join("apportion")).unwrap();
        }
        bench
    }

    /// A new directory and a cache of its own, for tests of the cache and of the measuring itself, and for those of
    /// devices: where several processes fill pocl's cache at once, or load programs from one of ours, it has wrong
    /// programs at times.
    pub fn with_empty_cache() -> Self {
        Self(apportion_testing::Bench::new())
    }

    /// Writes a matrix in C order, by the library's own writer.
    pub fn matrix<T: Element>(&self, name: &str, matrix: &Matrix<T>) {
        let mut file = OutputFile::create(self.path(name)).unwrap();
        write_npy(&mut file, matrix).unwrap();
        file.commit().unwrap();
    }

    /// A platform of speeds that need no measuring: two to one to one …, or the first alone worth anything.
    pub fn platform(&self, processors: usize, lone: bool) {
        let speed = |i: usize| match (i, lone) {
            (0, true) => 1e6,
            (0, false) => 20.0,
            (i, false) => 10.0 / i as f64,
            _ => 1.0,
        };
        let processor = |i| format!("[[processor]]\nname = \"p{i}\"\nspeed = \"{} Mflop/s\"\n", speed(i));
        self.write("platform.toml", (0..processors).map(processor).collect::<String>());
    }

    /// A matrix of whole numbers from -11 to 11, as `<f8`, `<f4`, `<i8`, `<i4`, `|b1` or `|u1`.
    pub fn numbers(&self, name: &str, descr: &str, (rows, cols): (usize, usize), fortran: bool) {
        let number = |i: usize| ((i * 7 + i / 5) % 23) as i32 - 11;
        let order = if fortran { "True" } else { "False" };
        let dict = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': ({rows}, {cols}), }}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((dict.len() as u16).to_le_bytes());
        bytes.extend(dict.bytes());
        for x in (0..rows * cols).map(number) {
            match descr {
                "<f8" => bytes.extend(f64::from(x).to_le_bytes()),
                "<f4" => bytes.extend((x as f32).to_le_bytes()),
                "<i8" => bytes.extend(i64::from(x).to_le_bytes()),
                "<i4" => bytes.extend(x.to_le_bytes()),
                _ => bytes.push(u8::from(x > 7)),
            }
        }
        self.write(name, bytes);
    }

    pub fn read(&self, name: &str) -> AnyMatrix {
        read_matrix(&self.path(name)).unwrap()
    }
}

/// Small integers of both signs: their products and sums are exact in either type.
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

/// Numbers whose sums depend on every rounding.
pub fn irrational<T: Element>(rows: usize, cols: usize, seed: f64) -> Matrix<T> {
    let data = (0..rows * cols).map(|i| T::from_f64((i as f64 * 0.731 + seed).sin())).collect();
    Matrix::new(rows, cols, data)
}
