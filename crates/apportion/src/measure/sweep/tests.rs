//! A panic in one measuring thread ends the others; ranks measure as the threads of one process do.

use super::*;
use crate::measure::repetition::Timing;
use std::sync::Mutex;

/// Panics on one processor: during its creation before the start, or during timing.
struct Faulty {
    here: bool,
}

impl Trial for Faulty {
    const FEWEST_WHEN_LATE: usize = 1;

    fn time(&mut self, halt: &StopSignal<'_>) -> Result<Timing> {
        assert!(!self.here, "a fault while timing");
        std::thread::sleep(Duration::from_millis(1));
        halt.check().map(|()| Timing::of_wall(0.001))
    }
}

/// The panic of a sweep of two processors; fails if the sweep does not end within a minute.
fn panic_of(trial: impl Fn(usize, f64) -> Faulty + Send + Sync + 'static) -> String {
    let (give, ended) = channel();
    std::thread::spawn(move || {
        let platform = Platform::from_speeds(&[1.0, 1.0]).unwrap();
        let subject = Subject {
            platform: &platform,
            kernel: "test".into(),
            unit: "test".into(),
            parameters: BTreeMap::new(),
            rounded: |size| size,
            largest: Box::new(|_| f64::INFINITY),
        };
        let options = MeasureOptions { seconds_per_size: 300.0, tolerance: 0.0, ..Default::default() };
        let options = MeasureOptions { most_repetitions: u64::MAX, ..options };
        let sweep = Sweep::new(Sizes::Listed(vec![1.0]), options);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            run(&subject, &sweep, trial, &mut |_| Ok(()), &Monitor::new())
        }));
        let panic = outcome.expect_err("it panics");
        give.send(panic.downcast_ref::<&str>().map(|text| text.to_string())).unwrap();
    });
    let message = ended.recv_timeout(Duration::from_secs(60)).expect("it ends");
    message.expect("a text")
}

#[test]
fn a_panic_of_one_thread_ends_the_others() {
    let trial = |rank, _| {
        assert!(rank != 1, "a fault before the start");
        Faulty { here: false }
    };
    assert_eq!(panic_of(trial), "a fault before the start");
    assert_eq!(panic_of(|rank, _| Faulty { here: rank == 0 }), "a fault while timing");
}

/// Rank r takes (r + 1) seconds a unit by its own clock, and fails above `works`.
struct Scripted {
    rank: usize,
    size: f64,
    works: f64,
}

impl Trial for Scripted {
    const FEWEST_WHEN_LATE: usize = 1;

    fn time(&mut self, halt: &StopSignal<'_>) -> Result<Timing> {
        halt.check()?;
        std::thread::sleep(Duration::from_millis(1));
        match self.size <= self.works {
            true => Ok(Timing::of_wall(self.size * (self.rank + 1) as f64)),
            false => Err(Error::infeasible(format!("rank {} failed", self.rank), "help it")),
        }
    }

    fn failure_of_size(&self) -> Option<&str> {
        (self.size > self.works).then_some("full")
    }
}

fn swept(sizes: Sizes, works: [f64; 3], saved: &Mutex<Vec<Models>>) -> Result<Vec<Models>> {
    let monitor = Monitor::new();
    World::threads(3, &monitor, |world| {
        let platform = Platform::from_speeds(&[1.0; 3]).unwrap();
        let subject = Subject {
            platform: &platform,
            kernel: "test".into(),
            unit: "test".into(),
            parameters: BTreeMap::new(),
            rounded: |size| size.round(),
            largest: Box::new(|_| f64::INFINITY),
        };
        let sweep = Sweep { world: Some(world), ..Sweep::new(sizes.clone(), MeasureOptions::default()) };
        let mut save = |models: &Models| {
            assert_eq!(world.rank(), 0);
            saved.lock().unwrap().push(models.clone());
            Ok(())
        };
        let trial = |rank: usize, size| Scripted { rank, size, works: works[rank] };
        run(&subject, &sweep, trial, &mut save, &monitor)
    })
}

#[test]
fn every_rank_measures_its_own_and_all_know_all() {
    let saved = Mutex::default();
    let models = swept(Sizes::Listed(vec![10.0, 20.0]), [1e9; 3], &saved).unwrap();
    assert!(models.iter().all(|m| *m == models[0]));
    assert_eq!(models[0].names(), ["p0", "p1", "p2"]);
    for (rank, model) in models[0].models.iter().enumerate() {
        let found: Vec<(f64, f64)> = model.points().iter().map(|p| (p.size, p.seconds)).collect();
        let slower = (rank + 1) as f64;
        assert_eq!(found, [(10.0, 10.0 * slower), (20.0, 20.0 * slower)]);
    }
    let saved = saved.into_inner().unwrap();
    assert_eq!(saved.last(), Some(&models[0]));
    assert!(saved[0].models.iter().all(|m| m.points().len() == 1), "saved after each round");
}

/// The ranks need different numbers of rounds.
#[test]
fn each_rank_finds_its_own_cap_and_a_real_failure_ends_all() {
    let sizes = Sizes::Adaptive { smallest: 10.0, largest: 1000.0, accuracy: 0.05, most: 30 };
    let models = swept(sizes.clone(), [1e9, 100.0, 1e9], &Mutex::default()).unwrap();
    let caps: Vec<Option<f64>> = models[2].models.iter().map(|m| m.max_size()).collect();
    assert_eq!((caps[0], caps[2]), (None, None));
    assert!(caps[1].is_some_and(|cap| (95.0..=100.0).contains(&cap)), "{caps:?}");
    let error = swept(sizes, [1e9, 1e9, 1.0], &Mutex::default()).unwrap_err();
    assert!(error.to_string().contains("rank 2 failed"), "{error}");
}
