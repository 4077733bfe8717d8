//! The balancer.

use crate::boundary::{
    array, count, free, guard, hand_out, look, optional, refuse, text, to_c, units, value, write_if_wanted,
    write_text,
};
use crate::models::Models;
use crate::shares::check_processors;
use apportion::job::{ShareLimit, limits_by_rank};
use apportion::plan::shares::{Balancer, Reason};
use apportion::{Error, Result};
use std::ffi::{c_char, c_int};

/// A balancer.
pub struct Balanced {
    balancer: Balancer,
    /// The processor that took longest in the last round.
    slowest: Option<usize>,
}

impl From<Balancer> for Balanced {
    fn from(balancer: Balancer) -> Self {
        Self { balancer, slowest: None }
    }
}

impl Balanced {
    /// Changes the balancer, which must not have observed a round.
    fn configure(&mut self, change: impl FnOnce(Balancer) -> Result<Balancer>) -> Result<()> {
        if self.balancer.rounds() > 0 {
            let remedy = "set options, limits and models before the first round";
            return Err(refuse("balancer", "it has observed a round", remedy));
        }
        self.balancer = change(self.balancer.clone())?;
        Ok(())
    }
}

/// The numbers of `apportion.h`.
fn number(reason: Reason) -> c_int {
    match reason {
        Reason::Faster => 0,
        Reason::Balanced => 1,
        Reason::WarmingUp => 2,
        Reason::Uncertain => 3,
        Reason::SmallGain => 4,
        Reason::MovingCost => 5,
        _ => 6,
    }
}

/// See `apportion.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_balancer_new(
    total: i64,
    processors: i64,
    balancer: *mut *mut Balanced,
) -> c_int {
    guard(|| {
        let found = Balancer::new(units(total, "units")?, count(processors, "processors", 1)?)?;
        // SAFETY: the caller's promise.
        unsafe { hand_out(balancer, found.into(), "balancer") }
    })
}

/// See `apportion.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_balancer_set(
    balancer: *mut Balanced,
    option: *const c_char,
    number: f64,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's promises.
        let (balanced, option) = unsafe { (value(balancer, "balancer")?, text(option, "option")?) };
        let mut cost = balanced.balancer.moving_cost();
        match option {
            "tolerance" => return balanced.configure(|b| b.with_tolerance(number)),
            "hysteresis" => return balanced.configure(|b| b.with_hysteresis(number)),
            "warm_up" => {
                if !(number.fract() == 0.0 && (0.0..=1e9).contains(&number)) {
                    let what = format!("{number} is no number of rounds");
                    return Err(refuse("warm_up", what, "give a whole number, at least 0"));
                }
                return balanced.configure(|b| Ok(b.with_warm_up(number as u32)));
            }
            "cost_per_change" => cost.per_change = number,
            "cost_per_unit" => cost.per_unit = number,
            // `cost_rounds` is its first name.
            "rounds" | "cost_rounds" => cost.rounds = number,
            other => {
                let known = "give tolerance, hysteresis, warm_up, cost_per_change, cost_per_unit or rounds";
                return Err(Error::input("option", format!("unknown option \"{other}\""), known));
            }
        }
        balanced.configure(|b| b.with_moving_cost(cost))
    })
}

/// A limit of shares from an array that may be left out.
fn limit(numbers: Option<&[i64]>, name: &str) -> Result<ShareLimit> {
    let Some(numbers) = numbers else { return Ok(ShareLimit::None) };
    numbers.iter().map(|&number| units(number, name).map(Some)).collect::<Result<_>>().map(ShareLimit::Each)
}

/// See `apportion.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_balancer_limits(
    balancer: *mut Balanced,
    processors: i64,
    min: *const i64,
    max: *const i64,
    multiple_of: *const i64,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's promises.
        let (balanced, min, max, multiple_of) = unsafe {
            let p = count(processors, "processors", 1)?;
            (
                value(balancer, "balancer")?,
                optional(min, p, "min")?,
                optional(max, p, "max")?,
                optional(multiple_of, p, "multiple_of")?,
            )
        };
        let p = processors as usize;
        check_processors(p, balanced.balancer.processors())?;
        let limits =
            limits_by_rank(&limit(min, "min")?, &limit(max, "max")?, &limit(multiple_of, "multiple_of")?, p)?;
        balanced.configure(|b| b.with_limits(&limits))
    })
}

/// See `apportion.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_balancer_start(balancer: *mut Balanced, models: *const Models) -> c_int {
    guard(|| {
        // SAFETY: the caller's promises.
        let (balanced, models) = unsafe { (value(balancer, "balancer")?, look(models, "models")?) };
        balanced.configure(|b| b.with_models(&models.models))
    })
}

/// See `apportion.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_balancer_observe(
    balancer: *mut Balanced,
    processors: i64,
    seconds: *const f64,
    shares: *mut i64,
    offsets: *mut i64,
    reason: *mut c_int,
) -> c_int {
    guard(|| {
        let p = count(processors, "processors", 1)?;
        // SAFETY: the caller's promises.
        let (balanced, seconds) = unsafe { (value(balancer, "balancer")?, array(seconds, p, "seconds")?) };
        check_processors(p, balanced.balancer.processors())?;
        let decision = balanced.balancer.observe(seconds)?;
        balanced.slowest = Some(decision.slowest);
        // SAFETY: the caller's promises.
        unsafe {
            write_if_wanted(shares, &to_c(&decision.shares), "shares")?;
            write_if_wanted(offsets, &to_c(&decision.offsets), "offsets")?;
            write_if_wanted(reason, &[number(decision.reason)], "reason")
        }
    })
}

/// See `apportion.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_balancer_slowest(balancer: *const Balanced, rank: *mut i64) -> c_int {
    guard(|| {
        // SAFETY: the caller's promise.
        let slowest = unsafe { look(balancer, "balancer") }?.slowest;
        let Some(slowest) = slowest else {
            return Err(refuse("balancer", "it has observed no round", "observe the times of a round first"));
        };
        // SAFETY: the caller's promise.
        unsafe { write_if_wanted(rank, &[slowest as i64], "rank") }
    })
}

/// See `apportion.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_balancer_shares(
    balancer: *const Balanced,
    processors: i64,
    shares: *mut i64,
    offsets: *mut i64,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's promise.
        let balancer = &unsafe { look(balancer, "balancer") }?.balancer;
        check_processors(count(processors, "processors", 1)?, balancer.processors())?;
        // SAFETY: the caller's promises.
        unsafe {
            write_if_wanted(shares, &to_c(balancer.shares()), "shares")?;
            write_if_wanted(offsets, &to_c(&balancer.offsets()), "offsets")
        }
    })
}

/// See `apportion.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_balancer_save(
    balancer: *const Balanced,
    capacity: i64,
    state: *mut c_char,
    length: *mut i64,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's promise.
        let text = unsafe { look(balancer, "balancer") }?.balancer.to_json();
        // SAFETY: the caller's promises.
        unsafe { write_text(&text, capacity, state, "state", length) }
    })
}

/// See `apportion.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_balancer_load(
    state: *const c_char,
    balancer: *mut *mut Balanced,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's promise.
        let found = Balancer::from_json(unsafe { text(state, "state") }?).map_err(|error| match error {
            Error::Input { what, .. } => {
                refuse("state", what, "give a text that apportion_balancer_save has written")
            }
            other => other,
        })?;
        // SAFETY: the caller's promise.
        unsafe { hand_out(balancer, found.into(), "balancer") }
    })
}

/// See `apportion.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_balancer_free(balancer: *mut Balanced) {
    // SAFETY: the caller's promise.
    drop(unsafe { free(balancer) });
}
