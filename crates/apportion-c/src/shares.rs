//! Shares of independent units.

use crate::boundary::{
    amounts, array, count, guard, look, optional, refuse, to_c, units, write, write_if_wanted,
};
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
        amounts(seconds, "seconds", "time")?;
        if let Some(work) = work {
            amounts(work, "work", "amount of work")?;
        }
        let speeds: Vec<f64> = (0..p).map(|i| work.map_or(1.0, |work| work[i]) / seconds[i]).collect();
        amounts(&speeds, "work / seconds", "speed")?;
        let found = divide_by(&speeds, total)?;
        // SAFETY: the caller's promise.
        unsafe { write(shares, &to_c(&found), "shares") }
    })
}

/// See `apportion.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_shares_from_speeds(
    total: i64,
    processors: i64,
    speeds: *const f64,
    shares: *mut i64,
) -> c_int {
    guard(|| {
        let p = count(processors, "processors", 1)?;
        let total = checked_total(total)?;
        // SAFETY: the caller's promise.
        let speeds = checked_speeds(unsafe { array(speeds, p, "speeds") }?)?;
        // A processor without speed has no share.
        let working: Vec<usize> = (0..p).filter(|&i| speeds[i] > 0.0).collect();
        let divided = divide_by(&working.iter().map(|&i| speeds[i]).collect::<Vec<f64>>(), total)?;
        let mut found = vec![0; p];
        for (i, share) in working.into_iter().zip(divided) {
            found[i] = share;
        }
        // SAFETY: the caller's promise.
        unsafe { write(shares, &to_c(&found), "shares") }
    })
}

/// Speeds that are 0 or in range, one of them not 0.
pub fn checked_speeds(speeds: &[f64]) -> Result<&[f64]> {
    let working: Vec<f64> = speeds.iter().map(|&speed| if speed == 0.0 { 1.0 } else { speed }).collect();
    amounts(&working, "speeds", "speed")?;
    if speeds.iter().all(|speed| *speed == 0.0) {
        return Err(refuse("speeds", "all are 0", "give a processor a positive speed"));
    }
    Ok(speeds)
}

/// Shares in proportion to positive speeds.
fn divide_by(speeds: &[f64], total: u64) -> Result<Vec<u64>> {
    let model = |(i, &speed): (usize, &f64)| Model::ratio(format!("processor {i}"), speed);
    fpm(&speeds.iter().enumerate().map(model).collect::<Result<Vec<Model>>>()?, total)
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
