use super::*;
use crate::plan::shares::fpm;
use crate::platform::Emulated;
use crate::random::Random;

fn paging() -> Vec<Emulated> {
    [
        "peak 2e9, knee 1e5 0.8, cliff 4e6 0.05",
        "peak 1e9, knee 3e5 0.7, cliff 6e6 0.1",
        "peak 4e8, knee 2e5 0.6, cliff 2e6 0.02",
        "peak 3e8, ramp 1e4, cliff 9e6 0.2",
    ]
    .iter()
    .map(|text| text.parse().unwrap())
    .collect()
}

fn adaptive(processor: &Emulated, tolerance: f64, most: usize) -> Model {
    let mut sweep = AdaptiveSweep::new(1e5, 1e7, tolerance).unwrap().with_most(most);
    while let Some(size) = sweep.next_size() {
        assert_eq!(sweep.next_size(), Some(size));
        sweep.add(processor.point(size));
    }
    assert_eq!(sweep.expected_more() * usize::from(sweep.points.len() >= most), 0);
    sweep.model("p").unwrap()
}

#[test]
fn a_fifth_of_the_points_gives_the_same_shares() {
    let processors = paging();
    let few: Vec<Model> = processors.iter().map(|p| adaptive(p, 0.03, 20)).collect();
    let many: Vec<Model> = processors.iter().map(|p| p.sweep("p", 1e5, 1e7, 100).unwrap()).collect();
    assert!(few.iter().all(|m| m.points().len() <= 20));
    let truth = |models: &[Model], n: u64| {
        let shares = fpm(models, n).unwrap();
        processors.iter().zip(shares).map(|(p, x)| p.seconds(x as f64)).fold(0.0, f64::max)
    };
    for i in 0..60 {
        let n = (5e5 * 1.07_f64.powi(i)) as u64;
        let (ours, theirs) = (truth(&few, n), truth(&many, n));
        assert!(ours <= 1.01 * theirs, "{n}: {ours} against {theirs}");
    }
}

#[test]
fn a_flat_processor_is_soon_known_and_a_narrow_range_ends() {
    let flat: Emulated = "peak 5".parse().unwrap();
    assert!(adaptive(&flat, 0.05, 1000).points().len() <= 7);
    let mut tiny = AdaptiveSweep::new(1.0, 3.0, 0.01).unwrap();
    let steep: Emulated = "peak 5, cliff 2 0.1".parse().unwrap();
    while let Some(size) = tiny.next_size() {
        tiny.add(steep.point(size));
    }
    assert_eq!(tiny.points.iter().map(|p| p.size).collect::<Vec<_>>(), [1.0, 2.0, 3.0]);
    for (smallest, largest, tolerance) in
        [(0.0, 5.0, 0.1), (5.0, 5.0, 0.1), (1.0, 5.0, 0.0), (1.0, f64::NAN, 0.1)]
    {
        assert_eq!(AdaptiveSweep::new(smallest, largest, tolerance).unwrap_err().exit_code(), 2);
    }
}

#[test]
fn full_memory_becomes_the_models_cap() {
    let processor = &paging()[3];
    let mut sweep = AdaptiveSweep::new(1e5, 1e7, 0.03).unwrap();
    while let Some(size) = sweep.next_size() {
        if size > 3.3e6 { sweep.refuse(size) } else { sweep.add(processor.point(size)) }
    }
    let model = sweep.model("p").unwrap();
    let cap = model.max_size().unwrap();
    assert!(cap <= 3.3e6 && cap > 3.3e6 / 1.03, "{cap}");
    assert!(model.points().len() <= 20 && (model.speed(1e6) / processor.speed(1e6) - 1.0).abs() < 0.03);
    let mut nothing = AdaptiveSweep::new(1e5, 1e7, 0.03).unwrap();
    nothing.refuse(1e5);
    assert_eq!(nothing.next_size(), None);
    assert!(nothing.model("p").is_err());
}

#[test]
fn sizes_that_a_kernel_rounds_to_its_block_still_end() {
    let processor = &paging()[2];
    let mut sweep = AdaptiveSweep::new(1e5, 1e7, 0.02).unwrap();
    let mut asked = 0;
    while let Some(size) = sweep.next_size() {
        sweep.add(processor.point((size / 5e4).round().max(1.0) * 5e4));
        asked += 1;
        assert!(asked < 400);
    }
}

/// A cache knee, a paging cliff, or both, at seeded places over six decades of sizes.
fn seeded(seed: u64, knee: bool, cliff: bool) -> Emulated {
    let mut numbers = Random::new(seed);
    let mut random = |low: f64, high: f64| low * (high / low).powf(numbers.unit());
    let mut text = format!("peak {:e}", random(1e8, 2e9));
    if knee {
        text += &format!(", knee {:e} {}", random(3e3, 1e6), random(0.3, 0.9));
    }
    if cliff {
        text += &format!(", cliff {:e} {}", random(1e6, 5e8), random(0.05, 0.5));
    }
    text.parse().unwrap()
}

/// The sweep's model over `smallest`..`largest` with at most 20 points. Each time has an error of up to
/// `noise`, which its interval states.
fn measured(processor: &Emulated, smallest: f64, largest: f64, noise: f64) -> Model {
    let mut sweep = AdaptiveSweep::new(smallest, largest, 0.03).unwrap().with_most(20);
    let mut random = Random::new(12345);
    while let Some(size) = sweep.next_size() {
        let off = noise * (2.0 * random.unit() - 1.0);
        let seconds = processor.seconds(size) * (1.0 + off);
        sweep.add(Point { ci: Some(noise * seconds), ..Point::new(size, seconds) });
    }
    assert!(sweep.points.len() <= 20);
    sweep.model("p").unwrap()
}

/// True longest time of the worst division by 20 points, relative to that by 100 points even in scale.
fn worst_loss(processors: &[Emulated], (smallest, largest): (f64, f64), noise: f64) -> f64 {
    let few: Vec<Model> = processors.iter().map(|p| measured(p, smallest, largest, noise)).collect();
    let size = |i: i32| smallest * (largest / smallest).powf(f64::from(i) / 99.0);
    let many: Vec<Model> = processors
        .iter()
        .map(|p| Model::piecewise("p", (0..100).map(|i| p.point(size(i))).collect(), None).unwrap())
        .collect();
    let truth = |models: &[Model], n: u64| {
        let shares = fpm(models, n).unwrap();
        processors.iter().zip(shares).map(|(p, x)| p.seconds(x as f64)).fold(0.0, f64::max)
    };
    let units = |i: i32| (10.0 * smallest * (0.2 * largest / smallest).powf(f64::from(i) / 30.0)) as u64;
    (0..=30).map(|i| truth(&few, units(i)) / truth(&many, units(i))).fold(0.0, f64::max)
}

/// Each kind of function on six decades: a line through two ends does not show a knee near the small end.
#[test]
fn seeded_functions_over_six_decades() {
    let range = (1e3, 1e9);
    let kinds = [("knee", true, false, 0.0), ("cliff", false, true, 0.0), ("noisy knee", true, false, 0.01)];
    for (name, knee, cliff, noise) in kinds {
        let losses: Vec<f64> = (0..8)
            .map(|seed| {
                let processors: Vec<Emulated> = (0..4).map(|i| seeded(10 * seed + i, knee, cliff)).collect();
                worst_loss(&processors, range, noise)
            })
            .collect();
        let mean = losses.iter().sum::<f64>() / losses.len() as f64;
        assert!(mean < 1.02 + noise, "{name}: {losses:?}");
        assert!(losses.iter().all(|loss| *loss < 1.06 + 2.0 * noise), "{name}: {losses:?}");
    }
}

#[test]
fn a_refused_size_becomes_a_cap() {
    let processor = &paging()[0];
    let mut sweep = AdaptiveSweep::new(1e3, 1e9, 0.05).unwrap();
    while let Some(size) = sweep.next_size() {
        if size > 3.7e7 { sweep.refuse(size) } else { sweep.add(processor.point(size)) }
    }
    let cap = sweep.cap().unwrap();
    assert!((3.7e7 / 1.05..=3.7e7).contains(&cap), "{cap}");
    assert_eq!(sweep.model("p").unwrap().max_size(), Some(cap));
    assert!(sweep.points.len() < 40);
    // Nothing fits: no model, and the search ends.
    let mut none = AdaptiveSweep::new(1e3, 1e9, 0.05).unwrap();
    none.refuse(none.next_size().unwrap());
    assert_eq!((none.next_size(), none.cap()), (None, None));
}

#[test]
fn a_cap_is_found_where_sizes_are_rounded() {
    for limit in [1100.0, 2000.0, 5000.0, 70_000.0] {
        let mut sweep = AdaptiveSweep::new(1024.0, 90_000.0, 0.05).unwrap();
        let mut asked = 0;
        while let Some(size) = sweep.next_size() {
            let square = size.sqrt().round().powi(2);
            if square > limit {
                sweep.refuse(square)
            } else {
                sweep.add(Point::new(square, square / 5.0))
            }
            asked += 1;
            assert!(asked < 100, "{limit}: it never ends");
        }
        let cap = sweep.cap().unwrap();
        assert!(cap <= limit && cap > 0.85 * limit, "{limit}: {cap}");
    }
}
