//! Products of bits by M4RI (Albrecht, Bard and Hart 2010), where it is installed. It adds over GF(2), which
//! takes the same operations as or.
#![allow(unsafe_code)]

use libloading::{Library, Symbol};
use std::ffi::{CString, c_char, c_int, c_void};

/// Names under which distributions install it.
const NAMES: [&str; 4] = ["libm4ri.so.2", "libm4ri.so.1", "libm4ri-0.0.20200125.so", "libm4ri.so"];

type Matrix = *mut c_void;
type FromText = unsafe extern "C" fn(c_int, c_int, *const c_char) -> Matrix;
type Multiply = unsafe extern "C" fn(Matrix, Matrix, Matrix, c_int) -> Matrix;
type Free = unsafe extern "C" fn(Matrix);

/// The library.
pub struct M4ri(Library);

/// Two factors and their product, in the library's memory.
pub struct Factors<'l> {
    library: &'l M4ri,
    matrices: [Matrix; 3],
}

impl M4ri {
    /// Loads the library if this machine has it.
    pub fn load() -> Option<Self> {
        // SAFETY: loading runs its constructors, which fill tables of its own.
        let library = NAMES.iter().find_map(|name| unsafe { Library::new(name) }.ok())?;
        let library = Self(library);
        library.function::<Multiply>("mzd_mul").and(library.function::<FromText>("mzd_from_str"))?;
        Some(library)
    }

    fn function<F>(&self, name: &str) -> Option<Symbol<'_, F>> {
        // SAFETY: the types above are those of its header.
        unsafe { self.0.get(name.as_bytes()) }.ok()
    }

    /// Copies two n x n matrices.
    pub fn factors(&self, n: usize, bits: [&dyn Fn(usize, usize) -> bool; 2]) -> Factors<'_> {
        let from_text = self.function::<FromText>("mzd_from_str").expect("it was found at loading");
        let copy = |bit: &dyn Fn(usize, usize) -> bool| {
            let text: Vec<u8> = (0..n * n).map(|at| b'0' + u8::from(bit(at / n, at % n))).collect();
            let text = CString::new(text).expect("digits");
            // SAFETY: the text has n n digits, as the function reads.
            unsafe { from_text(n as c_int, n as c_int, text.as_ptr()) }
        };
        Factors { library: self, matrices: [copy(bits[0]), copy(bits[1]), copy(&|_, _| false)] }
    }
}

impl Factors<'_> {
    /// Multiplies them; the library chooses how.
    pub fn multiply(&mut self) {
        let multiply = self.library.function::<Multiply>("mzd_mul").expect("it was found at loading");
        let [a, b, c] = self.matrices;
        // SAFETY: three matrices of the library, of the same sizes.
        unsafe { multiply(c, a, b, 0) };
    }
}

impl Drop for Factors<'_> {
    fn drop(&mut self) {
        if let Some(free) = self.library.function::<Free>("mzd_free") {
            // SAFETY: each was made by the library, and is freed once.
            self.matrices.into_iter().for_each(|matrix| unsafe { free(matrix) });
        }
    }
}
