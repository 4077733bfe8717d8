//! Shares of independent units.

use crate::boundary::{array, count, guard, look, optional, refuse, to_c, units, write, write_if_wanted};
use crate::models::Models;
use apportion::model::Model;
use apportion::plan::shares::{fpm, least_time};
use apportion::{Error, Result};
use std::ffi::c_int;

/// Refuses an array for another number of processors.
pub fn check_processors(given: usize, known: usize) -> Result<()> {
    match given == known {
        true => Ok(()),
        false => Err(refuse(
            "processors",
            format!("arrays of {given} for {known} processors"),
            "give arrays with one entry per processor",
        )),
    }
}

/// See `apportion.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_shares_from_times(
    total: i64,
    processors: i64,
    work: *const f64,
    seconds: *const f64,
    shares: *mut i64,
) -> c_int {
    guard(|| {
        let p = count(processors, "processors", 1)?;
        let total = checked_total(total)?;
        // SAFETY: the caller's promises.
        let (work, seconds) = unsafe { (optional(work, p, "work")?, array(seconds, p, "seconds")?) };
        let of_one = |i: usize| {
            let done = work.map_or(1.0, |work| work[i]);
            Model::ratio(format!("processor {i}"), done / seconds[i])
        };
        let models = (0..p).map(of_one).collect::<Result<Vec<Model>>>()?;
        let found = fpm(&models, total)?;
        // SAFETY: the caller's promise.
        unsafe { write(shares, &to_c(&found), "shares") }
    })
}

/// See `apportion.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_shares_from_models(
    models: *const Models,
    total: i64,
    processors: i64,
    shares: *mut i64,
    seconds: *mut f64,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's promise.
        let models = &unsafe { look(models, "models") }?.models;
        check_processors(count(processors, "processors", 1)?, models.len())?;
        let found = least_time(models, checked_total(total)?, &[])?.shares;
        let times: Vec<f64> = models.iter().zip(&found).map(|(m, &x)| m.seconds(x as f64)).collect();
        // SAFETY: the caller's promises.
        unsafe {
            write(shares, &to_c(&found), "shares")?;
            write_if_wanted(seconds, &times, "seconds")
        }
    })
}

/// A number of units that doubles hold exactly.
fn checked_total(total: i64) -> Result<u64> {
    let total = units(total, "units")?;
    if total > 1 << 53 {
        return Err(Error::input("units", format!("{total} is more than 2^53"), "give a smaller number"));
    }
    Ok(total)
}
