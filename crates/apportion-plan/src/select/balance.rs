//! Areas, times and balance of shares by the speeds of the processors: seconds where speeds are known, times
//! relative to the ideal where only ratios are.

use crate::error::{Error, Result};
use crate::model::{Interpolation, Model, only_ratios};
use crate::plan::{Forecast, Layout, Shape, shares};
use crate::platform::{Network, Platform};

/// The areas of C, in elements, that finish together by these models: real numbers where all speeds are
/// constant, otherwise whole ones.
///
/// # Errors
/// The models' caps cannot hold the matrix.
pub fn areas(models: &[Model], shape: Shape) -> Result<Vec<f64>> {
    let whole = shares::fpm(models, shape.elements())?;
    let uncapped = |m: &Model| m.max_size().is_none() || m.is_stopped();
    let constant = |m: &Model| m.interpolation() == Interpolation::Constant && uncapped(m);
    if !models.iter().all(constant) {
        return Ok(whole.into_iter().map(|area| area as f64).collect());
    }
    let speeds: Vec<f64> = models.iter().map(|m| m.speed(1.0)).collect();
    let largest = speeds.iter().copied().fold(0.0, f64::max);
    let total: f64 = speeds.iter().map(|s| s / largest).sum();
    Ok(speeds.into_iter().map(|s| s / largest / total * shape.elements() as f64).collect())
}

/// Lower bound of the seconds of any division of so many multiply-adds: all at the sum of the speeds.
pub(crate) fn ideal_seconds(multiply_adds: f64, rates: &[f64]) -> f64 {
    multiply_adds / rates.iter().sum::<f64>()
}

/// [`ideal_seconds`] for processors that slow down in mid-run as the platform says: the bound for an oracle
/// that knows the slowdowns in advance.
pub fn ideal_seconds_turning(multiply_adds: f64, rates: &[f64], platform: &Platform) -> f64 {
    let mut rates = rates.to_vec();
    let turn = |i: usize| platform.processors[i].slowdown_after;
    let mut turns: Vec<usize> = (0..rates.len()).filter(|&i| turn(i).is_some()).collect();
    let work = |i: usize| turn(i).map_or(1.0, |turn| turn.work);
    turns.sort_by(|&x, &y| work(x).total_cmp(&work(y)));
    let (mut done, mut seconds) = (0.0, 0.0);
    for i in turns {
        seconds += (work(i) - done) * ideal_seconds(multiply_adds, &rates);
        done = work(i);
        rates[i] *= platform.processors[i].slowdown / turn(i).map_or(1.0, |turn| turn.slowdown);
    }
    seconds + (1.0 - done) * ideal_seconds(multiply_adds, &rates)
}

/// max_i time_i / ideal time: 1.0 if all end together, more where caps prevent that.
///
/// # Errors
/// Sizes beyond what models have.
pub fn imbalance(models: &[Model], shares: &[u64]) -> Result<f64> {
    let total: u64 = shares.iter().sum();
    if total == 0 {
        return Ok(1.0);
    }
    // The ideal is a lower bound, also where time falls with size; rounding must not go below it.
    Ok((shares::makespan(models, shares) / shares::balanced_seconds(models, total)?).max(1.0))
}

/// Each processor's seconds for its work, for pivot blocks of one index of the models.
fn seconds(models: &[Model], layout: &Layout) -> Vec<f64> {
    let (work, sizes) = (layout.work(), layout.sizes());
    let each = models.iter().zip(work.iter().zip(sizes));
    each.map(|(model, (&work, size))| if work == 0 { 0.0 } else { work as f64 / model.speed(size as f64) })
        .collect()
}

/// The longest time over the time in which all would finish together, at the speeds at these sizes.
pub(super) fn unevenness(models: &[Model], layout: &Layout) -> f64 {
    let (seconds, sizes) = (seconds(models, layout), layout.sizes());
    let mean = layout.shares().iter().sum::<u64>() / models.len() as u64;
    let speed =
        |(model, &size): (&Model, &u64)| model.speed(if size == 0 { mean.max(1) } else { size } as f64);
    let all: f64 = models.iter().zip(&sizes).map(speed).sum();
    let ideal = layout.work().iter().map(|&work| work as f64).sum::<f64>() / all;
    (seconds.iter().copied().fold(0.0, f64::max) / ideal).max(1.0)
}

/// [`imbalance`] of a layout's work, whether or not it cuts the inner dimension.
///
/// # Errors
/// As [`imbalance`].
pub fn imbalance_of(models: &[Model], layout: &Layout) -> Result<f64> {
    match layout.boxes() {
        None => imbalance(models, &layout.shares()),
        Some(_) => Ok(unevenness(models, layout)),
    }
}

/// [`relative_times`] of a layout's work, whether or not it cuts the inner dimension.
///
/// # Errors
/// As [`relative_times`].
pub(super) fn relative_times_of(models: &[Model], layout: &Layout) -> Result<Option<Vec<f64>>> {
    if layout.boxes().is_none() || !only_ratios(models) {
        return relative_times(models, &layout.shares());
    }
    let seconds = seconds(models, layout);
    let ideal = seconds.iter().copied().fold(0.0, f64::max) / unevenness(models, layout);
    Ok(Some(seconds.into_iter().map(|time| time / ideal).collect()))
}

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
    use crate::platform::SlowdownAfter;

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

    #[test]
    fn each_stretch_counts_at_its_own_speeds() {
        let (work, rates) = (6000.0, [20.0, 10.0]);
        let mut platform = Platform::from_speeds(&[2.0, 1.0]).unwrap();
        let turn = |work| Some(SlowdownAfter { work, slowdown: 2.0 });
        assert_eq!(ideal_seconds_turning(work, &rates, &platform), 200.0);
        platform.processors[0].slowdown_after = turn(0.5);
        assert_eq!(ideal_seconds_turning(work, &rates, &platform), 100.0 + 150.0);
        platform.processors[1].slowdown_after = turn(0.25);
        let expected = 50.0 + 0.25 * 6000.0 / 25.0 + 0.5 * 6000.0 / 15.0;
        assert_eq!(ideal_seconds_turning(work, &rates, &platform), expected);
    }
}
