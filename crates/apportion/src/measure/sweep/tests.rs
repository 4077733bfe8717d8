//! A panic in one measuring thread ends the others.

use super::*;

/// Panics on one processor: during its creation before the start, or during timing.
struct Faulty {
    here: bool,
}

impl Trial for Faulty {
    const FEWEST_WHEN_LATE: usize = 1;

    fn warm_up(&mut self, halt: &StopSignal<'_>) -> Result<f64> {
        Ok(self.time(halt)?.wall)
    }

    fn time(&mut self, halt: &StopSignal<'_>) -> Result<Timing> {
        assert!(!self.here, "a fault while timing");
        std::thread::sleep(std::time::Duration::from_millis(1));
        halt.check().map(|()| Timing::of_wall(0.001))
    }
}

/// The panic of a sweep of two processors; fails if the sweep does not end within a minute.
fn panic_of(trial: impl Fn(&Processor, usize, f64) -> Faulty + Send + Sync + 'static) -> String {
    let (give, ended) = channel();
    std::thread::spawn(move || {
        let platform = Platform::from_speeds(&[1.0, 1.0]).unwrap();
        let subject = Subject {
            platform: &platform,
            kernel: "test".into(),
            unit: "test".into(),
            parameters: BTreeMap::new(),
            rounded: |size| size,
            largest: &|_| f64::INFINITY,
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
    let message = ended.recv_timeout(std::time::Duration::from_secs(60)).expect("it ends");
    message.expect("a text")
}

#[test]
fn a_panic_of_one_thread_ends_the_others() {
    let made = |_: &Processor, rank, _| {
        assert!(rank != 1, "a fault before the start");
        Faulty { here: false }
    };
    assert_eq!(panic_of(made), "a fault before the start");
    assert_eq!(panic_of(|_, rank, _| Faulty { here: rank == 0 }), "a fault while timing");
}
