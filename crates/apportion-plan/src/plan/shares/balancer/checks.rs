//! What balancers and searches are given.

use crate::error::{Error, Result};
use crate::input::extreme;
use crate::model::Model;
use crate::plan::shares::Limits;

pub(crate) fn check_size(units: u64, processors: usize) -> Result<()> {
    if processors == 0 || units == 0 {
        return Err(Error::input(
            "`units`",
            format!("{units} units on {processors} processors leave nothing to balance"),
            "give at least one of each",
        ));
    }
    if units > 1 << 53 || processors > 1 << 20 {
        let what = format!("{units} units on {processors} processors are more than 2^53 or 2^20");
        return Err(Error::input("`units`", what, "give a smaller number"));
    }
    Ok(())
}

pub(crate) fn check_limits(limits: &[Limits], processors: usize) -> Result<()> {
    if limits.len() != processors && !limits.is_empty() {
        let what = format!("there are {} for {processors} processors", limits.len());
        return Err(Error::input("limits", what, "give one per processor"));
    }
    Ok(())
}

pub(crate) fn check_models(models: &[Model], processors: usize) -> Result<()> {
    if models.len() != processors {
        let what = format!("{} models for {processors} processors", models.len());
        return Err(Error::input("models", what, "give one per processor"));
    }
    Ok(())
}

pub(crate) fn check_tolerance(tolerance: f64) -> Result<()> {
    match extreme(tolerance) {
        None => Ok(()),
        Some(_) => {
            Err(Error::input("`tolerance`", format!("{tolerance} is not a positive fraction"), "use 0.05"))
        }
    }
}

/// Times of shares that are none do not count.
pub(crate) fn check_times(seconds: &[f64], shares: &[u64]) -> Result<()> {
    if seconds.len() != shares.len() {
        return Err(Error::input(
            "times",
            format!("there are {} for {} processors", seconds.len(), shares.len()),
            "give one per processor",
        ));
    }
    let defect = |(i, t): (usize, &f64)| Some((i, extreme(*t).filter(|_| shares[i] > 0)?));
    match seconds.iter().enumerate().find_map(defect) {
        None => Ok(()),
        Some((i, what)) => Err(Error::input(
            format!("time of processor {i}"),
            format!("{what} of seconds"),
            "measure larger shares, or with a finer clock",
        )),
    }
}

pub(crate) fn check_adopted(shares: &[u64], units: u64, processors: usize) -> Result<()> {
    let sum: u128 = shares.iter().map(|&x| u128::from(x)).sum();
    if shares.len() != processors || sum != u128::from(units) {
        let what = format!(
            "{} shares of together {sum} for {processors} processors and {units} units",
            shares.len()
        );
        return Err(Error::input("shares", what, "give one per processor that add up to the units"));
    }
    Ok(())
}
