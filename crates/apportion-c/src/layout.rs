//! Layouts of matrices, and their forecasts.

use crate::boundary::{
    array, count, free, guard, hand_out, look, look_if_given, refuse, text, to_c, units, write,
    write_if_wanted,
};
use crate::models::Models;
use crate::shares::check_processors;
use apportion::job::{
    FlowOptions, ForecastTask, RunOptions, Sources, find_fastest_order, lay_out_product, parse_choice,
};
use apportion::model::{Machine, WorkUnit};
use apportion::plan::{Layout, Shape};
use apportion::platform::read_platform;
use apportion::run::Monitor;
use apportion::simulate::forecast;
use std::ffi::{c_char, c_int};
use std::path::Path;

/// Bytes of an element.
const ELEMENT: u64 = size_of::<f64>() as u64;

/// See `apportion.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_layout_new(
    method: *const c_char,
    m: i64,
    k: i64,
    n: i64,
    processors: i64,
    speeds: *const f64,
    layout: *mut *mut Layout,
) -> c_int {
    guard(|| {
        let p = count(processors, "processors", 1)?;
        // SAFETY: the caller's promises.
        let (name, speeds) = unsafe { (text(method, "method")?, array(speeds, p, "speeds")?) };
        let options = RunOptions { method: parse_choice("`method`", name)?, ..RunOptions::default() };
        let shape = Shape::new(units(m, "m")?, units(k, "k")?, units(n, "n")?, "layout")?;
        let best = lay_out_product(shape, ELEMENT, &options, &Machine::from_speeds(speeds)?)?;
        let found = best.plan.layout()?.clone();
        // SAFETY: the caller's promise.
        unsafe { hand_out(layout, found, "layout") }
    })
}

/// See `apportion.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_layout_rectangles(
    layout: *const Layout,
    capacity: i64,
    rectangles: *mut i64,
    number: *mut i64,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's promise.
        let parts = unsafe { look(layout, "layout") }?.parts();
        let capacity = count(capacity, "capacity", 0)?;
        // SAFETY: the caller's promise.
        unsafe { write(number, &[parts.len() as i64], "count") }?;
        if capacity == 0 && rectangles.is_null() {
            return Ok(());
        }
        if capacity < parts.len() {
            let what = format!("room for {capacity} rectangles is too little for {}", parts.len());
            return Err(refuse("capacity", what, "ask for the count with a capacity of 0 first"));
        }
        let rows =
            parts.iter().map(|p| [p.owner.0 as u64, p.rows.start, p.rows.end, p.cols.start, p.cols.end]);
        // SAFETY: the caller's promise.
        unsafe { write(rectangles, &to_c(&rows.flatten().collect::<Vec<u64>>()), "rectangles") }
    })
}

/// See `apportion.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_layout_free(layout: *mut Layout) {
    // SAFETY: the caller's promise.
    drop(unsafe { free(layout) });
}

/// See `apportion.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_forecast(
    layout: *const Layout,
    platform: *const c_char,
    models: *const Models,
    processors: i64,
    total: *mut f64,
    compute: *mut f64,
    communicate: *mut f64,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's promises.
        let (layout, path) = unsafe { (look(layout, "layout")?, text(platform, "platform")?) };
        // SAFETY: the caller's promise.
        let models = unsafe { look_if_given(models, "models") }?;
        let platform = Some(read_platform(Path::new(path))?);
        let sources = Sources { platform, models: models.cloned(), ..Sources::default() };
        let machine = sources.given_machine(WorkUnit::MultiplyAdd)?;
        check_processors(count(processors, "processors", 1)?, layout.processors())?;
        check_processors(machine.processors(), layout.processors())?;
        let flow = FlowOptions::default();
        let task = ForecastTask { layout, machine: &machine, flow: &flow, element: ELEMENT };
        let found = find_fastest_order(task, &Monitor::new(), forecast, |found| found.seconds)?.forecast;
        // SAFETY: the caller's promises.
        unsafe {
            write(total, &[found.seconds], "seconds")?;
            write_if_wanted(compute, &found.compute, "compute")?;
            write_if_wanted(communicate, &found.communicate, "communicate")
        }
    })
}
