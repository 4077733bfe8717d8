//! Factors of whole matrices of one process, and solutions of linear systems: `apportion factor` and `apportion solve`
//! on arrays in memory.

use crate::boundary::{
    area, array, check, count, free, guard, hand_out, refuse, set_option, value, with_context, write,
    write_if_wanted,
};
use crate::processors::{Processors, truth, within};
use apportion::matrix::{AnyMatrix, Matrix};
use apportion::plan::Factors;
use apportion::select::FactorLayout;
use apportion::{Error, Result};
use apportion_factor::{FactorTask, MatrixSource, SolveTask, factor_matrix, solve_matrix};
use std::ffi::{c_char, c_int};

/// The options of factorisations.
pub struct Factorisation {
    factors: Factors,
    processors: Processors,
    layout: Option<FactorLayout>,
    block: Option<u64>,
    mixed: bool,
    remeasure: bool,
    seed: u64,
}

impl Factorisation {
    fn set(&mut self, option: &str, value: &str) -> Result<()> {
        if self.processors.set(option, value)? {
            return Ok(());
        }
        match option {
            "kind" => self.factors = value.parse()?,
            "method" => self.layout = if value == "auto" { None } else { Some(value.parse()?) },
            "block" => self.block = Some(within(option, value, 1..=1 << 20)?),
            "mixed" => self.mixed = truth(option, value)?,
            "remeasure" => self.remeasure = truth(option, value)?,
            "seed" => self.seed = within(option, value, 0..=u64::MAX)?,
            other => {
                let known = "give kind, speeds, platform, models, method, block, mixed, remeasure or seed";
                return Err(Error::input("option", format!("unknown option \"{other}\""), known));
            }
        }
        Ok(())
    }

    /// The task of the library for an n x n matrix.
    fn task(&self, n: usize, a: &[f64]) -> Result<FactorTask> {
        Ok(FactorTask {
            layout: self.layout,
            block: self.block,
            sources: self.processors.sources()?,
            remeasure: self.remeasure,
            seed: self.seed,
            ..FactorTask::new(self.factors, source("a", n, n, a)?)
        })
    }
}

/// A matrix of the caller's, copied.
fn source(name: &str, rows: usize, cols: usize, elements: &[f64]) -> Result<MatrixSource> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(elements.len()).map_err(|_| Error::TooLittleMemory {
        what: format!("a copy of {name}, {rows} x {cols} elements, does not fit into memory"),
        remedy: "use a smaller matrix or a machine with more memory".into(),
    })?;
    copy.extend_from_slice(elements);
    Ok(MatrixSource::memory(name, AnyMatrix::F64(Matrix::new(rows, cols, copy))))
}

/// See `apportion.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_factorisation_new(factorisation: *mut *mut Factorisation) -> c_int {
    let new = || Factorisation {
        factors: Factors::Lu,
        processors: Processors::default(),
        layout: None,
        block: None,
        mixed: false,
        remeasure: false,
        seed: 1,
    };
    // SAFETY: the caller's promise.
    guard(|| unsafe { hand_out(factorisation, new(), "factorisation") })
}

/// See `apportion.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_factorisation_set(
    factorisation: *mut Factorisation,
    option: *const c_char,
    setting: *const c_char,
) -> c_int {
    // SAFETY: the caller's promises.
    unsafe { set_option(factorisation, "factorisation", option, setting, Factorisation::set) }
}

/// See `apportion.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_factor(
    factorisation: *mut Factorisation,
    n: i64,
    a: *const f64,
    factors: *mut f64,
    pivots: *mut i64,
) -> c_int {
    guard(|| {
        let n = count(n, "n", 1)?;
        // SAFETY: the caller's promises.
        let (factorisation, a) =
            unsafe { (value(factorisation, "factorisation")?, array(a, area(n, n, "a")?, "a")?) };
        check(factors.cast_const(), area(n, n, "factors")?, "factors")?;
        if pivots.is_null() && factorisation.factors != Factors::Cholesky {
            return Err(refuse("pivots", "is a null pointer", "give room for n pivots of lu or ldlt"));
        }
        let task = factorisation.task(n, a)?;
        let outcome = with_context(|context| factor_matrix(task, context))?;
        let found = outcome.columns.into_whole::<f64>().expect("a process alone has the whole matrix");
        // SAFETY: the caller's promises.
        unsafe {
            write(factors, &found, "factors")?;
            write_if_wanted(pivots, &outcome.pivots, "pivots")
        }
    })
}

/// See `apportion.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_solve(
    factorisation: *mut Factorisation,
    n: i64,
    sides: i64,
    a: *const f64,
    b: *const f64,
    x: *mut f64,
) -> c_int {
    guard(|| {
        let (n, sides) = (count(n, "n", 1)?, count(sides, "sides", 1)?);
        // SAFETY: the caller's promises.
        let (factorisation, a, b) = unsafe {
            (
                value(factorisation, "factorisation")?,
                array(a, area(n, n, "a")?, "a")?,
                array(b, area(n, sides, "b")?, "b")?,
            )
        };
        check(x.cast_const(), area(n, sides, "x")?, "x")?;
        let task = SolveTask::new(factorisation.task(n, a)?, source("b", n, sides, b)?);
        let task = SolveTask { mixed: factorisation.mixed, ..task };
        let outcome = with_context(|context| solve_matrix(task, context))?;
        let found = outcome.x.elements::<f64>().expect("the solution has the elements of the system");
        // SAFETY: the caller's promise.
        unsafe { write(x, found, "x") }
    })
}

/// See `apportion.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_factorisation_free(factorisation: *mut Factorisation) {
    // SAFETY: the caller's promise.
    drop(unsafe { free(factorisation) });
}
