//! Layouts of matrices, and their forecasts.

use crate::boundary::{
    array, count, free, guard, hand_out, look, refuse, text, to_c, units, write, write_if_wanted,
};
use crate::models::Models;
use crate::shares::{check_processors, checked_speeds};
use apportion::model::{Machine, WorkUnit};
use apportion::plan::shapes::{Method, MethodOptions};
use apportion::plan::{Layout, Shape};
use apportion::platform::read_platform;
use apportion::schedule::{Flow, ScheduleOptions};
use apportion::select::{check_has_times, forecast};
use apportion::simulate::CostModel;
use std::ffi::{c_char, c_int};
use std::path::Path;

/// The methods of `apportion_layout_new`: those that need speeds only and leave the inner dimension whole.
const METHODS: [&str; 13] = [
    "columns",
    "recursive",
    "square-corner",
    "rows",
    "grid",
    "cartesian",
    "nagamochi-abe",
    "straight-line",
    "square-rectangle",
    "block-rectangle",
    "hybrid",
    "square-edge",
    "square-middle",
];

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
        let Some(method) = METHODS.contains(&name).then(|| name.parse::<Method>().ok()).flatten() else {
            let what = format!("unknown method \"{name}\"");
            return Err(refuse("method", what, &format!("give one of {}", METHODS.join(", "))));
        };
        let shape = Shape::new(units(m, "m")?, units(k, "k")?, units(n, "n")?, "layout")?;
        let found = method.layout(shape, checked_speeds(speeds)?, &MethodOptions::default())?;
        found.refuse_boxes("the C library")?;
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
    const BLOCK: u64 = 64;
    const ELEMENT: u64 = 8;
    guard(|| {
        // SAFETY: the caller's promises.
        let (layout, path) = unsafe { (look(layout, "layout")?, text(platform, "platform")?) };
        let platform = read_platform(Path::new(path))?;
        check_processors(count(processors, "processors", 1)?, layout.processors())?;
        check_processors(platform.len(), layout.processors())?;
        let machine = if models.is_null() {
            Machine::from_platform(platform, WorkUnit::MultiplyAdd)?
        } else {
            // SAFETY: the caller's promise.
            let given = unsafe { look(models, "models") }?;
            check_processors(given.models.len(), layout.processors())?;
            Machine::new(platform, given.models.clone(), given.block)
        };
        check_has_times(&machine.models, &machine.platform.network)?;
        let rates = machine.rates(&layout.shares());
        let order = ScheduleOptions::new(Flow::OneToAll, BLOCK);
        let conditions = CostModel { rates: &rates, network: &machine.platform.network, element: ELEMENT };
        let found = forecast(layout, order, conditions)?;
        // SAFETY: the caller's promises.
        unsafe {
            write(total, &[found.seconds], "seconds")?;
            write_if_wanted(compute, &found.compute, "compute")?;
            write_if_wanted(communicate, &found.communicate, "communicate")
        }
    })
}
