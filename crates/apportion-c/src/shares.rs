//! Shares of independent units.

use crate::boundary::{
    array, count, guard, look, optional, refuse, to_c, units, with_context, write, write_if_wanted,
};
use crate::models::{Models, machine_of};
use apportion::Result;
use apportion::job::{UnitObjective, UnitOptions, divide_units, models_from_times};
use apportion::model::{Machine, Point};
use apportion::plan::Plan;
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

/// Divides units among the processors of a machine; everything is left open.
fn divide(total: i64, machine: &Machine) -> Result<Plan> {
    let total = units(total, "units")?;
    with_context(|context| divide_units(total, &UnitOptions::default(), machine, context))
        .map(|division| division.plan)
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
        // SAFETY: the caller's promises.
        let (work, seconds) = unsafe { (optional(work, p, "work")?, array(seconds, p, "seconds")?) };
        let point = |i: usize| vec![Point::new(work.map_or(1.0, |work| work[i]), seconds[i])];
        let names = numbered(p);
        let models = models_from_times(&names, (0..p).map(point).collect(), &[])?;
        let plan = divide(total, &machine_of(&models)?)?;
        // SAFETY: the caller's promise.
        unsafe { write(shares, &to_c(&plan.shares), "shares") }
    })
}

/// The names of processors that the caller only numbers.
pub fn numbered(processors: usize) -> Vec<String> {
    (0..processors).map(|i| format!("p{i}")).collect()
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
        // SAFETY: the caller's promise.
        let machine = Machine::from_speeds(unsafe { array(speeds, p, "speeds") }?)?;
        let plan = divide(total, &machine)?;
        // SAFETY: the caller's promise.
        unsafe { write(shares, &to_c(&plan.shares), "shares") }
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
        let machine = machine_of(unsafe { look(models, "models") }?)?;
        check_processors(count(processors, "processors", 1)?, machine.processors())?;
        let plan = divide(total, &machine)?;
        let times = plan.forecast.map(|forecast| forecast.compute).unwrap_or_default();
        // SAFETY: the caller's promises.
        unsafe {
            write(shares, &to_c(&plan.shares), "shares")?;
            write_if_wanted(seconds, &times, "seconds")
        }
    })
}

/// Bits of the flags of [`apportion_shares_from_costs`].
const ANY_ORDER: c_int = 1;
const LATENCY: c_int = 2;

/// See `apportion.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_shares_from_costs(
    models: *const Models,
    total: i64,
    costs: *const f64,
    memory: *const f64,
    processors: i64,
    capacities: *const i64,
    flags: c_int,
    shares: *mut i64,
    offsets: *mut i64,
) -> c_int {
    guard(|| {
        let (n, p) = (count(total, "units", 1)?, count(processors, "processors", 1)?);
        // SAFETY: the caller's promises.
        let (mut machine, costs, memory, capacities) = unsafe {
            let machine = machine_of(look(models, "models")?)?;
            check_processors(p, machine.processors())?;
            let (costs, memory) = (array(costs, n, "costs")?, optional(memory, n, "memory")?);
            (machine, costs, memory, optional(capacities, p, "capacities")?)
        };
        if memory.is_some() != capacities.is_some() {
            let remedy = "give both, or NULL for both";
            return Err(refuse("memory", "of units and capacities of processors belong together", remedy));
        }
        if flags & !(ANY_ORDER | LATENCY) != 0 {
            return Err(refuse(
                "flags",
                format!("{flags} has unknown bits"),
                "use 0, APPORTION_ANY_ORDER, APPORTION_LATENCY or their sum",
            ));
        }
        for (processor, capacity) in
            machine.platform.processors.iter_mut().zip(capacities.unwrap_or_default())
        {
            processor.memory = Some(units(*capacity, "capacities")?);
        }
        let options = UnitOptions {
            costs: costs.to_vec(),
            unit_memory: memory.map_or_else(Vec::new, <[f64]>::to_vec),
            any_order: flags & ANY_ORDER != 0,
            objective: if flags & LATENCY != 0 { UnitObjective::Latency } else { UnitObjective::Time },
            ..UnitOptions::default()
        };
        let plan = with_context(|context| divide_units(n as u64, &options, &machine, context))?.plan;
        let begins: Vec<u64> = plan.ranges().into_iter().map(|range| range.start).collect();
        // SAFETY: the caller's promises.
        unsafe {
            write(shares, &to_c(&plan.shares), "shares")?;
            write_if_wanted(offsets, &to_c(&begins), "offsets")
        }
    })
}
