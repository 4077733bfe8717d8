//! Speed functions.

use crate::boundary::{array, count, free, guard, hand_out, optional, refuse, text};
use crate::shares::numbered;
use apportion::Result;
use apportion::job::{Sources, models_from_times};
pub use apportion::model::Models;
use apportion::model::{Machine, Point, WorkUnit, read_models};
use std::ffi::{c_char, c_int};
use std::path::Path;

/// The processors that speed functions name.
pub fn machine_of(models: &Models) -> Result<Machine> {
    let sources = Sources { models: Some(models.clone()), ..Sources::default() };
    sources.given_machine(WorkUnit::Unit)
}

/// See `apportion.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_models_read(path: *const c_char, models: *mut *mut Models) -> c_int {
    guard(|| {
        // SAFETY: the caller's promise.
        let path = unsafe { text(path, "path") }?;
        let found = read_models(Path::new(path))?;
        // SAFETY: the caller's promise.
        unsafe { hand_out(models, found, "models") }
    })
}

/// See `apportion.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_models_new(
    processors: i64,
    points: i64,
    sizes: *const f64,
    seconds: *const f64,
    max_sizes: *const f64,
    models: *mut *mut Models,
) -> c_int {
    guard(|| {
        let (p, each) = (count(processors, "processors", 1)?, count(points, "points", 1)?);
        let all = p
            .checked_mul(each)
            .ok_or_else(|| refuse("points", format!("{p} times {each} are too many"), "give fewer points"))?;
        // SAFETY: the caller's promises.
        let (sizes, seconds, caps) = unsafe {
            (
                array(sizes, all, "sizes")?,
                array(seconds, all, "seconds")?,
                optional(max_sizes, p, "max_sizes")?,
            )
        };
        let points = |i: usize| {
            let range = i * each..(i + 1) * each;
            sizes[range.clone()].iter().zip(&seconds[range]).map(|(&x, &t)| Point::new(x, t)).collect()
        };
        let cap = |cap: &f64| Some(*cap).filter(|cap| *cap != f64::INFINITY);
        let caps: Vec<Option<f64>> = caps.unwrap_or_default().iter().map(cap).collect();
        let found = models_from_times(&numbered(p), (0..p).map(points).collect(), &caps)?;
        // SAFETY: the caller's promise.
        unsafe { hand_out(models, found, "models") }
    })
}

/// See `apportion.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_models_free(models: *mut Models) {
    // SAFETY: the caller's promise.
    drop(unsafe { free(models) });
}
