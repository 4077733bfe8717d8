//! One rank of a routine of ScaLAPACK: a bench starts itself under mpirun and comes here.
//!
//! The library is loaded at run time; its BLACS initialises MPI.
#![allow(unsafe_code)]

use crate::median;
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use std::cmp::Ordering;
use std::ffi::{c_char, c_int};
use std::time::Instant;

/// The first argument of such a rank; the routine and the size follow.
pub const ARGUMENT: &str = "scalapack-rank";
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

/// A routine that is timed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Routine {
    /// The product of two square matrices.
    Pdgemm,
    /// The Cholesky factor of a symmetric matrix, by its lower triangle.
    Pdpotrf,
    /// The LU factors of a matrix, with partial pivoting.
    Pdgetrf,
}

impl Routine {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Pdgemm, Self::Pdpotrf, Self::Pdgetrf];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pdgemm => "pdgemm",
            Self::Pdpotrf => "pdpotrf",
            Self::Pdgetrf => "pdgetrf",
        }
    }
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
    pdpotrf: unsafe extern "C" fn(Text, Int, *mut f64, Int, Int, Int, *mut c_int),
    pdgetrf: unsafe extern "C" fn(Int, Int, *mut f64, Int, Int, Int, *mut c_int, *mut c_int),
}

/// Prints the least of the median seconds of all grids and blocks, on rank 0.
///
/// # Panics
/// If the arguments are not a routine and a size, or the routine's result is wrong.
pub fn rank(arguments: &[String]) {
    let [routine, n] = arguments else { panic!("a routine and a size") };
    let routine = Routine::ALL.into_iter().find(|known| known.name() == routine).expect("a routine");
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
            pdpotrf: *library.get(b"pdpotrf_\0").expect("ScaLAPACK"),
            pdgetrf: *library.get(b"pdgetrf_\0").expect("ScaLAPACK"),
        }
    };
    assert_eq!(ranks, 2, "started by mpirun -n 2");
    let mut best = f64::INFINITY;
    for (grid, block) in GRIDS.into_iter().flat_map(|grid| BLOCKS.map(|block| (grid, block))) {
        best = best.min(functions.seconds(routine, context, grid, (n, block)));
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

/// Element of the matrix L that a matrix to be factored is made of: a diagonal that outweighs the rest of its
/// row, so that pivots stay where they are.
fn factor(n: c_int, i: c_int, j: c_int) -> f64 {
    match i.cmp(&j) {
        Ordering::Less => 0.0,
        Ordering::Equal => f64::from(n),
        Ordering::Greater => f64::from((31 * i + 7 * j) % 17 - 8) / 8.0,
    }
}

/// What a grid of processes holds of a square matrix.
#[derive(Clone, Copy)]
struct Part {
    n: c_int,
    block: c_int,
    /// Processes down and across.
    grid: [c_int; 2],
    /// This process.
    here: [c_int; 2],
    /// Rows and columns of the local matrix.
    size: [c_int; 2],
}

impl Part {
    /// The row or column (`way` 0 or 1) of the whole matrix.
    fn at(&self, way: usize, local: c_int) -> c_int {
        let block = self.block;
        (local / block * self.grid[way] + self.here[way]) * block + local % block
    }

    /// The local matrix, column by column.
    fn filled(&self, element: impl Fn(c_int, c_int) -> f64) -> Vec<f64> {
        let places = (0..self.size[1]).flat_map(|j| (0..self.size[0]).map(move |i| (i, j)));
        places.map(|(i, j)| element(self.at(0, i), self.at(1, j))).collect()
    }
}

impl Functions {
    /// The median seconds between barriers on a grid, with square blocks. The result is checked.
    fn seconds(
        &self,
        routine: Routine,
        system: c_int,
        [height, width]: [c_int; 2],
        (n, block): (c_int, c_int),
    ) -> f64 {
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
        let part = Part { n, block, grid: [height, width], here: [row, col], size: [rows, cols] };
        let seconds = match routine {
            Routine::Pdgemm => self.product(context, &descriptor, part),
            _ => self.factors(routine, context, &descriptor, part),
        };
        // SAFETY: the context is that of the grid, which is not used again.
        unsafe { (self.gridexit)(context) };
        seconds
    }

    /// The seconds of a call between barriers.
    fn timed(&self, context: c_int, call: impl FnOnce()) -> f64 {
        // SAFETY: the context is that of the grid, here and below.
        unsafe { (self.barrier)(context, c"All".as_ptr()) };
        let start = Instant::now();
        call();
        // SAFETY: as above.
        unsafe { (self.barrier)(context, c"All".as_ptr()) };
        start.elapsed().as_secs_f64()
    }

    fn product(&self, context: c_int, descriptor: &[c_int; 9], part: Part) -> f64 {
        let (n, [rows, cols]) = (part.n, part.size);
        let (left, right) = (part.filled(a), part.filled(b));
        let mut product = vec![f64::NAN; left.len()];
        let (d, text) = (descriptor.as_ptr(), c"N".as_ptr());
        let mut turn = || {
            let product = product.as_mut_ptr();
            // SAFETY: the descriptor is that of the three local matrices, whose sizes numroc gave.
            self.timed(context, || unsafe {
                #[rustfmt::skip]
                (self.pdgemm)(
                    text, text, &n, &n, &n, &1.0, left.as_ptr(), &1, &1, d, right.as_ptr(), &1, &1, d,
                    &0.0, product, &1, &1, d,
                );
            })
        };
        let seconds = median((0..TURNS).map(|_| turn()));
        for (i, j) in [(0, 0), (rows / 2, cols / 3), (rows - 1, cols - 1)] {
            let (x, y) = (part.at(0, i), part.at(1, j));
            let expected: f64 = (0..n).map(|l| a(x, l) * b(l, y)).sum();
            assert_eq!(product[(j * rows + i) as usize], expected, "element {x}, {y} of pdgemm's product");
        }
        seconds
    }

    /// A = L L' is factored again: by Cholesky's method into L, by Gauss's into L with a diagonal of ones, and U.
    fn factors(&self, routine: Routine, context: c_int, descriptor: &[c_int; 9], part: Part) -> f64 {
        let (n, [rows, cols]) = (part.n, part.size);
        // Each column of L L' from the last `reach` columns of L alone: a band, so that the matrix is made in
        // no time.
        let reach = 24;
        let l = |i: c_int, j: c_int| if i - j < reach { factor(n, i, j) } else { 0.0 };
        let whole =
            part.filled(|i, j| ((i.max(j) - reach + 1).max(0)..=i.min(j)).map(|p| l(i, p) * l(j, p)).sum());
        let (mut local, mut pivots) = (whole.clone(), vec![0; (rows + part.block) as usize]);
        let (d, mut info) = (descriptor.as_ptr(), 0);
        let mut turn = || {
            local.copy_from_slice(&whole);
            let (local, pivots, info) = (local.as_mut_ptr(), pivots.as_mut_ptr(), &raw mut info);
            // SAFETY: the descriptor is that of the local matrix, whose sizes numroc gave; there is a pivot for
            // each of its rows, and a block more.
            self.timed(context, || unsafe {
                match routine {
                    Routine::Pdpotrf => (self.pdpotrf)(c"L".as_ptr(), &n, local, &1, &1, d, info),
                    _ => (self.pdgetrf)(&n, &n, local, &1, &1, d, pivots, info),
                }
            })
        };
        let seconds = median((0..TURNS).map(|_| turn()));
        assert_eq!(info, 0, "{}", routine.name());
        for (i, j) in [(0, 0), (rows / 2, cols / 3), (rows - 1, cols - 1)] {
            let (x, y) = (part.at(0, i), part.at(1, j));
            let expected = match routine {
                _ if x < y => continue,
                Routine::Pdpotrf => l(x, y),
                _ if x == y => l(x, x) * l(x, x),
                _ => l(x, y) / l(y, y),
            };
            let found = local[(j * rows + i) as usize];
            let close = (found - expected).abs() <= 1e-9 * f64::from(n) * f64::from(n);
            assert!(close, "element {x}, {y} of {}: {found}, not {expected}", routine.name());
        }
        seconds
    }
}
