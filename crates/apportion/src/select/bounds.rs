//! Lower bounds of the time if processors slow down in mid-run.

use crate::plan::Shape;
use crate::platform::Platform;
use crate::select::ideal_seconds;

/// [`ideal_seconds`] for processors that slow down in mid-run as the platform says: the bound for an oracle
/// that knows the slowdowns in advance.
pub fn ideal_seconds_turning(shape: Shape, rates: &[f64], platform: &Platform) -> f64 {
    let mut rates = rates.to_vec();
    let turn = |i: usize| platform.processors[i].slowdown_after;
    let mut turns: Vec<usize> = (0..rates.len()).filter(|&i| turn(i).is_some()).collect();
    let work = |i: usize| turn(i).map_or(1.0, |turn| turn.work);
    turns.sort_by(|&x, &y| work(x).total_cmp(&work(y)));
    let (mut done, mut seconds) = (0.0, 0.0);
    for i in turns {
        seconds += (work(i) - done) * ideal_seconds(shape, &rates);
        done = work(i);
        rates[i] *= platform.processors[i].slowdown / turn(i).map_or(1.0, |turn| turn.slowdown);
    }
    seconds + (1.0 - done) * ideal_seconds(shape, &rates)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::SlowdownAfter;

    #[test]
    fn each_stretch_counts_at_its_own_speeds() {
        let shape = Shape::new(10, 20, 30, "test").unwrap();
        let rates = [20.0, 10.0];
        let mut platform = Platform::from_speeds(&[2.0, 1.0]).unwrap();
        let turn = |work| Some(SlowdownAfter { work, slowdown: 2.0 });
        assert_eq!(ideal_seconds_turning(shape, &rates, &platform), 200.0);
        platform.processors[0].slowdown_after = turn(0.5);
        assert_eq!(ideal_seconds_turning(shape, &rates, &platform), 100.0 + 150.0);
        platform.processors[1].slowdown_after = turn(0.25);
        let expected = 50.0 + 0.25 * 6000.0 / 25.0 + 0.5 * 6000.0 / 15.0;
        assert_eq!(ideal_seconds_turning(shape, &rates, &platform), expected);
    }
}
