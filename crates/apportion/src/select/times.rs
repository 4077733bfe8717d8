//! Times of shares: seconds where speeds are known, times relative to the ideal where only ratios are.

use super::imbalance;
use crate::error::{Error, Result};
use crate::model::{Model, only_ratios};
use crate::plan::{Forecast, shares};
use crate::platform::Network;

/// The predicted times of independent units; `None` if the models are ratios.
pub fn forecast_units(models: &[Model], shares: &[u64]) -> Option<Forecast> {
    if only_ratios(models) {
        return None;
    }
    let compute: Vec<f64> = models.iter().zip(shares).map(|(m, &s)| m.seconds(s as f64)).collect();
    let seconds = compute.iter().copied().fold(0.0, f64::max);
    Some(Forecast { seconds, communicate: vec![0.0; compute.len()], compute })
}

/// Each processor's computing time relative to the ideal time, at which all would finish together, if the
/// models are ratios; `None` if they give times. The largest one is the imbalance.
///
/// # Errors
/// As [`imbalance`].
pub fn relative_times(models: &[Model], shares: &[u64]) -> Result<Option<Vec<f64>>> {
    if !only_ratios(models) {
        return Ok(None);
    }
    let longest = shares::makespan(models, shares);
    if longest == 0.0 {
        return Ok(Some(vec![0.0; models.len()]));
    }
    let ideal = longest / imbalance(models, shares)?;
    Ok(Some(models.iter().zip(shares).map(|(m, &s)| m.seconds(s as f64) / ideal).collect()))
}

/// Checks that a simulation on this network has something to forecast: times of computation, or of
/// communication alone if the models are ratios.
///
/// # Errors
/// Ratios of speeds on a network without costs: exit code 2.
pub fn check_has_times(models: &[Model], network: &Network) -> Result<()> {
    if only_ratios(models) && network.is_free() {
        return Err(Error::input(
            "speeds",
            "nothing to forecast: speeds without a unit are only ratios, and the network has no costs",
            "give the platform file speeds in flop/s, or a latency or bandwidth under [network]",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_have_relative_times_and_no_seconds() {
        let ratios = [9.0, 1.0].map(|s| Model::ratio("p", s).unwrap());
        assert_eq!(forecast_units(&ratios, &[90, 10]), None);
        assert_eq!(relative_times(&ratios, &[90, 10]).unwrap().unwrap(), [1.0, 1.0]);
        let times = relative_times(&ratios, &[50, 50]).unwrap().unwrap();
        assert!((times[1] - 5.0).abs() < 1e-9 && (times[0] - 5.0 / 9.0).abs() < 1e-9, "{times:?}");
        assert_eq!(relative_times(&ratios, &[0, 0]).unwrap().unwrap(), [0.0, 0.0]);
        let timed = [9.0, 1.0].map(|s| Model::constant("p", s).unwrap());
        assert_eq!(forecast_units(&timed, &[90, 10]).unwrap().seconds, 10.0);
        assert_eq!(relative_times(&timed, &[90, 10]).unwrap(), None);
        // Caps that bind: 900 and 100 of equal speeds, where 500 each would end together.
        let capped = [None, Some(100.0)]
            .map(|cap| Model::ratio("p", 1.0).unwrap().with_cap(cap.unwrap_or(1e9)).unwrap());
        assert_eq!(relative_times(&capped, &[900, 100]).unwrap().unwrap(), [1.8, 0.2]);
        assert_eq!(imbalance(&capped, &[900, 100]).unwrap(), 1.8);
        assert!(check_has_times(&timed, &Network::free()).is_ok());
        assert_eq!(check_has_times(&ratios, &Network::free()).unwrap_err().exit_code(), 2);
    }
}
