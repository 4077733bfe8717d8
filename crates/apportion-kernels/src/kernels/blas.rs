//! Plus-times products by a BLAS that is found while running: OpenBLAS, BLIS, MKL, or any library with the C
//! interface.
//!
//! Source of the interface: "Basic Linear Algebra Subprograms Technical Forum Standard", 2001, appendix B
//! (CBLAS).

#![allow(unsafe_code)]

use crate::error::{Error, Result};
use crate::kernels::view::check_shapes;
use crate::kernels::{View, ViewMut};
use crate::process_memory::MemoryLeft;
use libloading::Library;
use std::ffi::{CStr, c_char, c_int};

/// Libraries by the name that a user may give them, as the loader finds them; tried in this order by
/// [`Blas::all`].
const KNOWN: [(&str, &str); 9] = [
    ("openblas", "libopenblas.so.0"),
    ("blis", "libblis.so.4"),
    ("mkl", "libmkl_rt.so.2"),
    ("mkl", "libmkl_rt.so"),
    ("cblas", "libcblas.so.3"),
    ("openblas", "libopenblas.dylib"),
    ("accelerate", "/System/Library/Frameworks/Accelerate.framework/Accelerate"),
    ("openblas", "libopenblas.dll"),
    ("mkl", "mkl_rt.2.dll"),
];

/// The function that sets the number of threads of a library's products: OpenBLAS, BLIS, MKL.
const THREADS: [&str; 3] = ["openblas_set_num_threads", "bli_thread_set_num_threads", "MKL_Set_Num_Threads"];

/// The function that returns the library's version: OpenBLAS, BLIS.
const VERSIONS: [&str; 2] = ["openblas_get_config", "bli_info_get_version_str"];

/// `cblas_dgemm`, and `cblas_sgemm` with f32 for T: order, transposes, m, n, k, alpha, A, its stride, B, its
/// stride, beta, C, its stride.
///
/// All integers are passed in the width of a machine word: a library built with 64-bit integers reads all of
/// it, one with 32-bit integers the lower half of the register or of the stack's slot.
type Gemm<T> = unsafe extern "C" fn(
    isize,
    isize,
    isize,
    isize,
    isize,
    isize,
    T,
    *const T,
    isize,
    *const T,
    isize,
    T,
    *mut T,
    isize,
);

/// `CblasRowMajor`.
const ROWS: isize = 101;
/// `CblasNoTrans`.
const AS_IT_IS: isize = 111;

/// A BLAS loaded into this process. Each product uses one thread, since the workers are threads already. The
/// library stays loaded until the process ends.
#[derive(Debug, Clone, Copy)]
pub struct Blas {
    name: &'static str,
    file: &'static str,
    version: Option<&'static str>,
    dgemm: Gemm<f64>,
    sgemm: Gemm<f32>,
}

/// Address space that a library takes for each of its threads: OpenBLAS for buffers, without which a thread asks for
/// ever.
const ROOM: u64 = 96 << 20;

/// Refuses to load a library where the process may not take the address space that it needs.
fn check_address_space() -> std::result::Result<(), String> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    match MemoryLeft::now() {
        Some(left) if left.limit.is_of_process() && left.bytes < ROOM * (threads + 1) => {
            Err(format!("needs {}", left.beside(u128::from(ROOM * (threads + 1)))))
        }
        _ => Ok(()),
    }
}

impl Blas {
    /// Each of OpenBLAS, BLIS, MKL and a plain CBLAS that works on this machine, in this order; files that
    /// provide the same functions count once.
    pub fn all() -> Vec<Self> {
        let mut found: Vec<Self> = Vec::new();
        for (name, file) in KNOWN {
            if let Ok(blas) = Self::load(file, name)
                && !found.iter().any(|other| std::ptr::fn_addr_eq(other.dgemm, blas.dgemm))
            {
                found.push(blas);
            }
        }
        found
    }

    /// Loads a library by its name (`openblas`, `blis`, `mkl`, `cblas`, `accelerate`) or by its file. The
    /// loader searches its usual places for a file without a directory.
    ///
    /// # Errors
    /// The library cannot be loaded, lacks `cblas_dgemm` or `cblas_sgemm`, or returns a wrong product: exit
    /// code 2.
    pub fn open(name: &str) -> Result<Self> {
        let known: Vec<_> = KNOWN.iter().filter(|(known, _)| *known == name).collect();
        if known.is_empty() {
            return Self::load(name, &stem(name)).map_err(|what| refusal(name, &what));
        }
        let mut what = String::new();
        for (_, file) in known {
            match Self::load(file, name) {
                Ok(blas) => return Ok(blas),
                // The first file is the one that this system would have.
                Err(new) if what.is_empty() => what = new,
                Err(_) => {}
            }
        }
        Err(refusal(name, &what))
    }

    fn load(file: &str, name: &str) -> std::result::Result<Self, String> {
        check_address_space()?;
        // SAFETY: loading runs the library's own initialisers. The user named it or it is one of the known
        // ones, and the loader reports an error for a file that is not a library.
        let library = unsafe { Library::new(file) }.map_err(|e| one_line(&e))?;
        // SAFETY: these are the types that the CBLAS standard gives for the names, apart from integers: see
        // `Gemm` for their width.
        let (dgemm, sgemm) = unsafe {
            let dgemm = library.get::<Gemm<f64>>(b"cblas_dgemm\0").map_err(|_| "has no cblas_dgemm")?;
            let sgemm = library.get::<Gemm<f32>>(b"cblas_sgemm\0").map_err(|_| "has no cblas_sgemm")?;
            (*dgemm, *sgemm)
        };
        for setter in THREADS {
            // SAFETY: if a library has one of these names, it is a function of one int (BLIS: a 64-bit int,
            // of which a non-negative c_int fills the register).
            if let Ok(set) = unsafe { library.get::<unsafe extern "C" fn(isize)>(setter.as_bytes()) } {
                // SAFETY: as above; it only sets a number.
                unsafe { set(1) };
            }
        }
        let version = version(&library);
        // The functions are used until the process ends, and libraries with their own threads do not unload
        // safely.
        std::mem::forget(library);
        let leak = |text: &str| -> &'static str { Box::leak(text.to_owned().into_boxed_str()) };
        let (name, file, version) = (leak(name), leak(file), version.as_deref().map(leak));
        let blas = Self { name, file, version, dgemm, sgemm };
        if blas.multiplies() { Ok(blas) } else { Err("multiplies 2 x 3 by 3 x 2 wrongly".into()) }
    }

    /// The library's name, or its file's without `lib` and endings: `openblas`, `blis`, `mkl_rt`, …
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The library's file, as it was passed to the loader.
    pub fn file(&self) -> &'static str {
        self.file
    }

    /// The library's own description, if it has one: OpenBLAS returns its build, BLIS its version.
    pub fn version(&self) -> Option<&'static str> {
        self.version
    }

    /// A product that checks how the library interprets sizes, strides and order.
    fn multiplies(&self) -> bool {
        let (a, b) = ([1.0, 2.0, 3.0, 9.0, 4.0, 5.0, 6.0], [7.0, 8.0, 9.0, 10.0, 11.0, 12.0]);
        let mut c = [1.0, 0.0, 0.0, 5.0, 0.0];
        self.dgemm(View::new(&a, 2, 3, 4), View::dense(&b, 3, 2), ViewMut::new(&mut c, 2, 2, 3));
        let mut single = [1.0_f32, 0.0, 0.0, 5.0, 0.0];
        let (a, b) = (a.map(|x| x as f32), b.map(|x| x as f32));
        self.sgemm(View::new(&a, 2, 3, 4), View::dense(&b, 3, 2), ViewMut::new(&mut single, 2, 2, 3));
        c == [59.0, 64.0, 0.0, 144.0, 154.0] && single.map(f64::from) == c
    }

    /// C += A B in double precision, on this thread.
    ///
    /// # Panics
    /// If the shapes do not fit (A is m x k, B k x n, C m x n), or a size or stride exceeds 2^31 - 1.
    pub(crate) fn dgemm(&self, a: View<f64>, b: View<f64>, c: ViewMut<f64>) {
        call(self.dgemm, a, b, c, 1.0);
    }

    /// C += A B in single precision, on this thread.
    ///
    /// # Panics
    /// As [`Blas::dgemm`].
    pub(crate) fn sgemm(&self, a: View<f32>, b: View<f32>, c: ViewMut<f32>) {
        call(self.sgemm, a, b, c, 1.0);
    }
}

/// The version string that a library returns.
fn version(library: &Library) -> Option<String> {
    VERSIONS.iter().find_map(|teller| {
        // SAFETY: if a library has one of these names, it is a function without arguments that returns a text
        // of its own.
        let tell =
            unsafe { library.get::<unsafe extern "C" fn() -> *const c_char>(teller.as_bytes()) }.ok()?;
        // SAFETY: as above.
        let text = unsafe { tell() };
        if text.is_null() {
            return None;
        }
        // SAFETY: it is not null, ends with a zero, and lives as long as the library.
        let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        (!line.is_empty()).then_some(line)
    })
}

fn call<T: Copy>(gemm: Gemm<T>, a: View<T>, b: View<T>, mut c: ViewMut<T>, one: T) {
    check_shapes(&a, &b, &c);
    let (m, k, n) = (a.rows(), a.cols(), b.cols());
    if m == 0 || n == 0 || k == 0 {
        return;
    }
    // A library with 32-bit integers would misread a larger one.
    let int =
        |size: usize| c_int::try_from(size).expect("sizes and strides of a tile are below 2^31") as isize;
    let (m, n, k, lda, ldb, ldc) =
        (int(m), int(n), int(k), int(a.stride()), int(b.stride()), int(c.stride()));
    let (a, b, c) = (a.as_ptr(), b.as_ptr(), c.as_mut_ptr());
    // SAFETY: the views' constructors keep every address within their sizes and strides inside their memory,
    // and the shapes fit; C is borrowed mutably and so overlaps neither A nor B; the library has passed the
    // test that it interprets its arguments as intended.
    unsafe { gemm(ROWS, AS_IT_IS, AS_IT_IS, m, n, k, one, a, lda, b, ldb, one, c, ldc) }
}

/// A file's name without directory, `lib` and what follows the first dot.
fn stem(file: &str) -> String {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    let name = name.split('.').next().unwrap_or(name);
    let name: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    name.strip_prefix("lib").unwrap_or(&name).to_owned()
}

fn one_line(error: &libloading::Error) -> String {
    format!("cannot be loaded: {}", error.to_string().replace('\n', " "))
}

fn refusal(name: &str, what: &str) -> Error {
    Error::input(
        format!("`blas = {name}`"),
        what,
        "install it, give the library's file, or use `blas = none` for the built-in kernel",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::gemm;

    #[test]
    fn names_of_files() {
        for (file, name) in [
            ("libopenblas.so.0", "openblas"),
            ("/opt/x/libmkl_rt.so", "mkl_rt"),
            ("a\\mkl_rt.2.dll", "mkl_rt"),
        ] {
            assert_eq!(stem(file), name);
        }
    }

    #[test]
    fn what_is_no_blas_is_refused_in_one_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("libtext.so");
        std::fs::write(&path, "no library\n").unwrap();
        for name in [path.to_str().unwrap(), "/nowhere/libblas.so"] {
            let error = Blas::open(name).unwrap_err();
            assert_eq!((error.exit_code(), error.to_string().lines().count()), (2, 1), "{error}");
            assert!(error.to_string().contains("`blas = none`"), "{error}");
        }
    }

    /// Integers of a foreign function: 64 bits in one, 32 bits in the other.
    macro_rules! fake {
        ($name:ident($int:ty)) => {
            /// Records its sizes and strides.
            unsafe extern "C" fn $name(
                order: $int,
                ta: $int,
                tb: $int,
                m: $int,
                n: $int,
                k: $int,
                _: f64,
                _: *const f64,
                lda: $int,
                _: *const f64,
                ldb: $int,
                _: f64,
                c: *mut f64,
                ldc: $int,
            ) {
                for (i, value) in [order, ta, tb, m, n, k, lda, ldb, ldc].into_iter().enumerate() {
                    // SAFETY: the test's C has sixteen elements.
                    unsafe { *c.add(i) = value as f64 };
                }
            }
        };
    }
    fake!(with_64_bits(i64));
    fake!(with_32_bits(i32));

    #[test]
    #[cfg(all(target_pointer_width = "64", not(miri)))]
    fn integers_of_either_width_arrive_whole() {
        let (a, b) = ([0.0; 12], [0.0; 20]);
        let views = || (View::new(&a, 2, 3, 7), View::new(&b, 3, 5, 6));
        type With64 = unsafe extern "C" fn(
            i64,
            i64,
            i64,
            i64,
            i64,
            i64,
            f64,
            *const f64,
            i64,
            *const f64,
            i64,
            f64,
            *mut f64,
            i64,
        );
        type With32 = unsafe extern "C" fn(
            i32,
            i32,
            i32,
            i32,
            i32,
            i32,
            f64,
            *const f64,
            i32,
            *const f64,
            i32,
            f64,
            *mut f64,
            i32,
        );
        // SAFETY: functions of the same number of arguments, each in a register or a slot of the same place.
        let wide = unsafe { std::mem::transmute::<With64, Gemm<f64>>(with_64_bits) };
        // SAFETY: as above.
        let narrow = unsafe { std::mem::transmute::<With32, Gemm<f64>>(with_32_bits) };
        for gemm in [wide, narrow] {
            let mut c = [0.0; 16];
            let (a, b) = views();
            call(gemm, a, b, ViewMut::new(&mut c, 2, 5, 8), 1.0);
            assert_eq!(c[..9], [101.0, 111.0, 111.0, 2.0, 5.0, 3.0, 7.0, 6.0, 8.0]);
        }
    }

    /// Where this machine has a BLAS: tiles of awkward sizes with wide strides; nothing is written outside
    /// the tile.
    #[test]
    fn products_equal_the_built_in_ones() {
        let Some(blas) = Blas::all().into_iter().next() else {
            apportion_testing::skip(apportion_testing::Need::Blas, "no BLAS library is installed");
            return;
        };
        for (m, k, n) in [(1, 1, 1), (2, 3, 5), (17, 13, 19), (65, 7, 3), (5, 0, 4), (0, 3, 3)] {
            let (lda, ldb, ldc) = (k + 3, n + 1, n + 2);
            let value = |i: usize| (i * i % 11) as f64 - 5.0;
            let (a, b): (Vec<f64>, Vec<f64>) =
                ((0..m * lda).map(value).collect(), (0..k * ldb).map(value).collect());
            let mut found: Vec<f64> = (0..m * ldc).map(value).collect();
            let mut wanted = found.clone();
            let (a, b) = (View::new(&a, m, k, lda), View::new(&b, k, n, ldb));
            blas.dgemm(a, b, ViewMut::new(&mut found, m, n, ldc));
            gemm(a, b, ViewMut::new(&mut wanted, m, n, ldc));
            assert_eq!(found, wanted, "{} of {m} x {k} x {n}", blas.name());
        }
    }
}
