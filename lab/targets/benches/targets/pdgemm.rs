//! One rank of ScaLAPACK's `pdgemm`: this bench starts itself under mpirun and comes here.
//!
//! The library is loaded at run time; its BLACS initialises MPI.
#![allow(unsafe_code)]

use super::clock::median;
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use std::ffi::{c_char, c_int};
use std::time::Instant;

/// The first argument of such a rank; the size follows.
pub const ARGUMENT: &str = "pdgemm-rank";
/// Debian's file for Open MPI.
const LIBRARY: &str = "libscalapack-openmpi.so.2.2";
const GRIDS: [[c_int; 2]; 2] = [[1, 2], [2, 1]];
const BLOCKS: [c_int; 2] = [64, 256];
const TURNS: usize = 3;

/// The library, if it is installed.
pub fn library() -> Option<Library> {
    // SAFETY: the initialisers of ScaLAPACK, MPI and BLAS run nothing that could break this process.
    // Open MPI's plugins need its symbols global.
    unsafe { Library::open(Some(LIBRARY), RTLD_NOW | RTLD_GLOBAL).ok() }
}

type Text = *const c_char;
type Int = *const c_int;
type Reals = *const f64;
type Pdgemm = unsafe extern "C" fn(
    Text,
    Text,
    Int,
    Int,
    Int,
    Reals,
    Reals,
    Int,
    Int,
    Int,
    Reals,
    Int,
    Int,
    Int,
    Reals,
    *mut f64,
    Int,
    Int,
    Int,
);

/// ScaLAPACK 2.2 as its reference declares it; the BLACS by their C names.
struct Functions {
    gridinit: unsafe extern "C" fn(*mut c_int, Text, c_int, c_int),
    gridinfo: unsafe extern "C" fn(c_int, *mut c_int, *mut c_int, *mut c_int, *mut c_int),
    gridexit: unsafe extern "C" fn(c_int),
    barrier: unsafe extern "C" fn(c_int, Text),
    numroc: unsafe extern "C" fn(Int, Int, Int, Int, Int) -> c_int,
    descinit: unsafe extern "C" fn(*mut c_int, Int, Int, Int, Int, Int, Int, Int, Int, *mut c_int),
    pdgemm: Pdgemm,
}

/// Prints the least of the median seconds of all grids and blocks, on rank 0.
pub fn rank(n: &str) {
    let n: c_int = n.parse().expect("a size");
    let library = library().expect("ScaLAPACK");
    let (mut me, mut ranks, mut context) = (0, 0, 0);
    // SAFETY: the symbols have these signatures in ScaLAPACK 2.2, whose integers are 32 bits wide in Debian.
    // The BLACS initialise MPI in `pinfo`.
    let functions = unsafe {
        let pinfo =
            library.get::<unsafe extern "C" fn(*mut c_int, *mut c_int)>(b"Cblacs_pinfo\0").expect("BLACS");
        let get = library.get::<unsafe extern "C" fn(c_int, c_int, *mut c_int)>(b"Cblacs_get\0");
        pinfo(&mut me, &mut ranks);
        get.expect("BLACS")(0, 0, &mut context);
        Functions {
            gridinit: *library.get(b"Cblacs_gridinit\0").expect("BLACS"),
            gridinfo: *library.get(b"Cblacs_gridinfo\0").expect("BLACS"),
            gridexit: *library.get(b"Cblacs_gridexit\0").expect("BLACS"),
            barrier: *library.get(b"Cblacs_barrier\0").expect("BLACS"),
            numroc: *library.get(b"numroc_\0").expect("ScaLAPACK"),
            descinit: *library.get(b"descinit_\0").expect("ScaLAPACK"),
            pdgemm: *library.get(b"pdgemm_\0").expect("PBLAS"),
        }
    };
    assert_eq!(ranks, 2, "started by mpirun -n 2");
    let mut best = f64::INFINITY;
    for (grid, block) in GRIDS.into_iter().flat_map(|grid| BLOCKS.map(|block| (grid, block))) {
        best = best.min(functions.seconds(context, grid, (n, block)));
    }
    if me == 0 {
        println!("{best}");
    }
    // SAFETY: the BLACS are initialised; this ends MPI.
    unsafe { (*library.get::<unsafe extern "C" fn(c_int)>(b"Cblacs_exit\0").expect("BLACS"))(0) };
}

/// Elements of the operands: small whole numbers, so that sums are exact in any order.
fn a(i: c_int, j: c_int) -> f64 {
    f64::from((31 * i + 7 * j) % 17 - 8)
}

fn b(i: c_int, j: c_int) -> f64 {
    f64::from((5 * i + 13 * j) % 19 - 9)
}

impl Functions {
    /// The median seconds between barriers on a grid, with square blocks. The product is checked.
    fn seconds(&self, system: c_int, [height, width]: [c_int; 2], (n, block): (c_int, c_int)) -> f64 {
        let (mut context, mut row, mut col) = (system, 0, 0);
        let (mut descriptor, mut info) = ([0; 9], 0);
        let (rows, cols);
        // SAFETY: all pointers are to live integers and ended strings, the descriptor has the nine integers
        // that ScaLAPACK prescribes, and the context is that of the grid.
        unsafe {
            (self.gridinit)(&mut context, c"Row".as_ptr(), height, width);
            (self.gridinfo)(context, &mut { height }, &mut { width }, &mut row, &mut col);
            rows = (self.numroc)(&n, &block, &row, &0, &height);
            cols = (self.numroc)(&n, &block, &col, &0, &width);
            let leading = rows.max(1);
            let d = descriptor.as_mut_ptr();
            (self.descinit)(d, &n, &n, &block, &block, &0, &0, &context, &leading, &mut info);
        }
        assert_eq!(info, 0, "descinit");
        let at = |local: c_int, me: c_int, of: c_int| (local / block * of + me) * block + local % block;
        let filled = |element: fn(c_int, c_int) -> f64| -> Vec<f64> {
            let column = |j| (0..rows).map(move |i| element(at(i, row, height), at(j, col, width)));
            (0..cols).flat_map(column).collect()
        };
        let (left, right) = (filled(a), filled(b));
        let mut product = vec![f64::NAN; left.len()];
        let (d, text) = (descriptor.as_ptr(), c"N".as_ptr());
        let mut turn = || {
            // SAFETY: the context is that of the grid.
            unsafe { (self.barrier)(context, c"All".as_ptr()) };
            let start = Instant::now();
            // SAFETY: the descriptor is that of the three local matrices, whose sizes numroc gave.
            unsafe {
                #[rustfmt::skip]
                (self.pdgemm)(
                    text, text, &n, &n, &n, &1.0, left.as_ptr(), &1, &1, d, right.as_ptr(), &1, &1, d,
                    &0.0, product.as_mut_ptr(), &1, &1, d,
                );
                (self.barrier)(context, c"All".as_ptr());
            }
            start.elapsed().as_secs_f64()
        };
        let seconds = median((0..TURNS).map(|_| turn()).collect());
        for (i, j) in [(0, 0), (rows / 2, cols / 3), (rows - 1, cols - 1)] {
            let (x, y) = (at(i, row, height), at(j, col, width));
            let expected: f64 = (0..n).map(|l| a(x, l) * b(l, y)).sum();
            assert_eq!(product[(j * rows + i) as usize], expected, "element {x}, {y} of pdgemm's product");
        }
        // SAFETY: the context is that of the grid, which is not used again.
        unsafe { (self.gridexit)(context) };
        seconds
    }
}
