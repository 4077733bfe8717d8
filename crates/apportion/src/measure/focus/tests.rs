use super::*;
use crate::model::AdaptiveSweep;
use crate::platform::Emulated;
use crate::random::Random;

/// Four processors: a cache knee, a paging cliff, or both, at seeded places over six decades of sizes.
fn seeded(seed: u64, knee: bool, cliff: bool) -> Vec<Emulated> {
    let mut numbers = Random::new(seed);
    let mut random = |low: f64, high: f64| low * (high / low).powf(numbers.unit());
    let mut one = || {
        let mut text = format!("peak {:e}", random(1e8, 2e9));
        if knee {
            text += &format!(", knee {:e} {}", random(3e3, 1e6), random(0.3, 0.9));
        }
        if cliff {
            text += &format!(", cliff {:e} {}", random(1e6, 5e8), random(0.05, 0.5));
        }
        text.parse().unwrap()
    };
    (0..4).map(|_| one()).collect()
}

/// The models of a focused sweep, and the seconds that its points take on all processors, each run once.
fn focused(processors: &[Emulated], units: u64) -> (Vec<Model>, f64) {
    let mut sweep = FocusedSweep::new(processors.len(), units, 0.02).unwrap();
    let mut seconds = 0.0;
    let mut asked = 0;
    while let Some(request) = sweep.next().unwrap() {
        let point = processors[request.rank].point(request.size);
        seconds += point.seconds;
        sweep.add(request.rank, point);
        asked += 1;
        assert!(asked <= 30 * processors.len());
    }
    let names: Vec<String> = (0..processors.len()).map(|i| format!("p{i}")).collect();
    (sweep.models(&names).unwrap(), seconds)
}

/// The same of today's adaptive sweeps over all sizes that a share can have.
fn adaptive(processors: &[Emulated], units: u64) -> (Vec<Model>, f64) {
    let mut seconds = 0.0;
    let mut model = |processor: &Emulated| {
        let mut sweep = AdaptiveSweep::new(units as f64 / 1e3, units as f64, 0.05).unwrap().with_most(30);
        while let Some(size) = sweep.next_size() {
            let point = processor.point(size);
            seconds += point.seconds;
            sweep.add(point);
        }
        sweep.model("p").unwrap()
    };
    (processors.iter().map(&mut model).collect(), seconds)
}

/// The largest distance of a share from those of the true functions, as a fraction of the units.
fn off(processors: &[Emulated], models: &[Model], units: u64) -> f64 {
    let truth: Vec<Model> = processors.iter().map(|p| p.model("p").unwrap()).collect();
    let (ours, best) = (fpm(models, units).unwrap(), fpm(&truth, units).unwrap());
    ours.iter().zip(best).map(|(&x, y)| x.abs_diff(y) as f64 / units as f64).fold(0.0, f64::max)
}

/// On all seeded functions: shares within 2 % of the units, in less than a third of the seconds.
#[test]
fn a_third_of_the_seconds_gives_shares_within_two_percent() {
    let (mut ours, mut theirs) = (0.0, 0.0);
    for (kind, [knee, cliff]) in [[true, false], [false, true], [true, true]].into_iter().enumerate() {
        for seed in 0..6 {
            let processors = seeded(100 * kind as u64 + seed, knee, cliff);
            for units in [30_000, 1_000_000, 30_000_000, 1_000_000_000] {
                let ((models, seconds), (_, adaptive)) =
                    (focused(&processors, units), adaptive(&processors, units));
                let error = off(&processors, &models, units);
                assert!(error <= 0.02, "{kind} {seed} {units}: {error}");
                // Relative to the seconds of the plan, so that small problems count as much as large ones.
                let plan = ideal_seconds(&models, units).unwrap();
                ours += seconds / plan;
                theirs += adaptive / plan;
            }
        }
    }
    assert!(3.0 * ours <= theirs, "{ours} against {theirs}");
}

/// By hand: constant speeds 3 and 1, 1,000 units. A probe of 125 each, then the shares, 750 and 250, and no
/// more.
#[test]
fn constant_speeds_take_two_points() {
    let processors: [Emulated; 2] = ["peak 3".parse().unwrap(), "peak 1".parse().unwrap()];
    let mut sweep = FocusedSweep::new(2, 1000, 0.02).unwrap();
    let sizes = |requests: &[SizeRequest]| requests.iter().map(|r| (r.rank, r.size)).collect::<Vec<_>>();
    assert_eq!(sizes(&sweep.requests().unwrap()), [(0, 125.0), (1, 125.0)]);
    (0..2).for_each(|rank| sweep.add(rank, processors[rank].point(125.0)));
    let requests = sweep.requests().unwrap();
    assert_eq!(sizes(&requests), [(0, 750.0), (1, 250.0)]);
    // All end after 250 s. 750 is log2(6) doublings away: 1, the most, of which half is expected to be lost.
    assert_eq!(requests[0].regret, 125.0);
    // 250 is one doubling away: half the speed is uncertain.
    assert_eq!(requests[1].regret, 62.5);
    assert_eq!(sweep.next().unwrap(), Some(requests[0]));
    (0..2).for_each(|rank| sweep.add(rank, processors[rank].point(requests[rank].size)));
    assert_eq!(sweep.next().unwrap(), None);
}

#[test]
fn one_processor_needs_one_point_and_more_processors_than_units_end() {
    let one: Emulated = "peak 3".parse().unwrap();
    let (models, _) = focused(std::slice::from_ref(&one), 77);
    assert_eq!(models[0].points().iter().map(|p| p.size).collect::<Vec<_>>(), [77.0]);
    let (models, _) = focused(&vec![one; 5], 3);
    assert_eq!(fpm(&models, 3).unwrap().iter().sum::<u64>(), 3);
    assert_eq!(FocusedSweep::new(0, 3, 0.02).unwrap_err().exit_code(), 2);
    assert_eq!(FocusedSweep::new(2, 0, 0.02).unwrap_err().exit_code(), 2);
    for bad in [0.0, 1.0, f64::NAN] {
        assert_eq!(FocusedSweep::new(2, 3, bad).unwrap_err().exit_code(), 2);
    }
}

/// A processor whose memory ends at 400 of the 700 units that its speed would get: the cap is found.
#[test]
fn a_full_memory_is_found_where_the_plan_needs_it() {
    let processors: [Emulated; 2] = ["peak 7".parse().unwrap(), "peak 3".parse().unwrap()];
    let mut sweep = FocusedSweep::new(2, 1000, 0.02).unwrap();
    let mut asked = 0;
    while let Some(SizeRequest { rank, size, .. }) = sweep.next().unwrap() {
        let full = rank == 0 && size > 400.0;
        if full {
            sweep.refuse(rank, size)
        } else {
            sweep.add(rank, processors[rank].point(size))
        }
        asked += 1;
        assert!(asked < 40);
    }
    let shares = fpm(&sweep.models(&["a".into(), "b".into()]).unwrap(), 1000).unwrap();
    assert!((392..=400).contains(&shares[0]), "{shares:?}");
    // Two full memories, 650 and 450, hold the units only if both are searched for.
    let mut sweep = FocusedSweep::new(2, 1000, 0.02).unwrap();
    let mut asked = 0;
    while let Some(SizeRequest { rank, size, .. }) = sweep.next().unwrap() {
        if size > [650.0, 450.0][rank] {
            sweep.refuse(rank, size)
        } else {
            sweep.add(rank, processors[rank].point(size))
        }
        asked += 1;
        assert!(asked < 60);
    }
    let shares = fpm(&sweep.models(&["a".into(), "b".into()]).unwrap(), 1000).unwrap();
    assert!(shares[0] <= 650 && shares[1] <= 450 && shares.iter().sum::<u64>() == 1000, "{shares:?}");
    // The first size may be too large already, down to a single unit.
    let mut sweep = FocusedSweep::new(2, 1000, 0.02).unwrap();
    let mut asked = Vec::new();
    let error = loop {
        match sweep.next() {
            Ok(Some(SizeRequest { rank: 0, size, .. })) => {
                asked.push(size);
                sweep.refuse(0, size);
            }
            Ok(Some(SizeRequest { rank, size, .. })) => sweep.add(rank, processors[rank].point(size)),
            Ok(None) => panic!("nothing fits: {asked:?}"),
            Err(error) => break error,
        }
    };
    assert_eq!((error.exit_code(), asked.last()), (1, Some(&1.0)));
    assert!(asked.len() < 12, "{asked:?}");
    // A subject's rounding does not lead beyond the cap.
    let coarse = |size: f64| (size / 216.0).ceil() * 216.0;
    let mut sweep = FocusedSweep::new(2, 1000, 0.02).unwrap().with_rounding(coarse);
    (0..2).for_each(|rank| sweep.cap(rank, 500.0));
    assert!(sweep.requests().unwrap().iter().all(|request| request.size <= 500.0));
    // Caps that leave units over are no plan.
    let mut sweep = FocusedSweep::new(2, 1000, 0.02).unwrap();
    (0..2).for_each(|rank| {
        sweep.cap(rank, 400.0);
        sweep.add(rank, processors[rank].point(100.0));
    });
    assert_eq!(sweep.requests().unwrap_err().exit_code(), 1);
}

#[test]
fn sizes_that_a_subject_rounds_still_end() {
    for processors in [seeded(1, true, true), seeded(2, false, true)] {
        let rounded = |size: f64| (size / 5e4).round().max(1.0) * 5e4;
        let mut sweep = FocusedSweep::new(4, 3_000_000, 0.001).unwrap().with_rounding(rounded).with_most(12);
        while let Some(request) = sweep.next().unwrap() {
            assert_eq!(request.size, rounded(request.size));
            sweep.add(request.rank, processors[request.rank].point(request.size));
        }
        let names = ["a", "b", "c", "d"].map(String::from);
        assert!(sweep.models(&names).unwrap().iter().all(|m| m.points().len() <= 12));
    }
}
