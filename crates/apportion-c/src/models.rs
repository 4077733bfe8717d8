//! Speed functions.

use crate::boundary::{array, count, free, guard, hand_out, optional, refuse, text};
use apportion::Result;
use apportion::model::{Interpolation, Model, Point, read_models};
use std::ffi::{c_char, c_int};
use std::path::Path;

/// The speed functions of several processors.
pub struct Models {
    pub models: Vec<Model>,
    /// The pivot block that the sizes refer to.
    pub block: u64,
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
        let read = read_models(Path::new(path))?;
        let found = Models { block: read.block().unwrap_or(1), models: read.models };
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
        let kind = if each == 1 { Interpolation::Constant } else { Interpolation::PiecewiseLinear };
        let of_one = |i: usize| {
            let range = i * each..(i + 1) * each;
            let points = sizes[range.clone()].iter().zip(&seconds[range]).map(|(&x, &t)| Point::new(x, t));
            let cap = caps.map(|caps| caps[i]).filter(|cap| *cap != f64::INFINITY);
            Model::new(format!("p{i}"), kind, points.collect(), cap)
        };
        let found = Models { models: (0..p).map(of_one).collect::<Result<_>>()?, block: 1 };
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
