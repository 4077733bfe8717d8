//! A sweep by several processes, each of which measures its own processor while all others do the same.

use super::course::{Course, Task, ask, courses, models};
use super::settle::{Settled, Settling, Trial};
use super::{Found, Keep, MeasureOptions, Subject, Sweep};
use crate::error::{Error, Result};
use crate::model::Models;
use crate::platform::Processor;
use crate::run::clock;
use crate::run::mailboxes::StopSignal;
use crate::run::{Monitor, World};
use std::time::{Duration, Instant};

/// Time after which the processes ask each other who still measures.
const SLICE: Duration = Duration::from_millis(100);

/// Runs a sweep on a world whose rank r measures processor r. Every rank returns the models of all
/// processors; `keep` is called on rank 0.
///
/// # Errors
/// As for a single process, on all ranks.
///
/// # Panics
/// If the number of ranks is not that of the processors.
pub(super) fn run<T: Trial>(
    subject: &Subject<'_>,
    sweep: &Sweep<'_>,
    trial: &impl Fn(&Processor, usize, f64) -> T,
    keep: &mut Keep<'_>,
    (world, monitor): (&World, &Monitor),
) -> Result<Models> {
    let here = world.processors_here(subject.platform.len()).start;
    let mut courses = world.all_ok(courses(subject, sweep))?;
    monitor.begin(0);
    let mut measured = 0;
    let mut known = together(subject, &courses, world)?;
    loop {
        world.all_ok(ask(subject, &mut courses, &known, sweep))?;
        let task = courses[here].task();
        let measures = matches!(task, Some(Task::Measure(_)));
        if world.all_reduce(&[u64::from(measures)], |a, b| a + b)?[0] == 0 {
            break;
        }
        monitor.expect(measured + courses[here].expected());
        let found = task.map(|task| one(subject, (here, task), &sweep.options, trial, (world, monitor)));
        let taken = match found.transpose() {
            Ok(Some(Some(found))) => courses[here].take(found),
            Ok(_) => Ok(false),
            Err(error) => Err(error),
        };
        if world.all_ok(taken)? {
            measured += 1;
            monitor.advance(1);
        }
        known = together(subject, &courses, world)?;
        world.all_ok(if world.rank() == 0 { keep(&known) } else { Ok(()) })?;
    }
    let all = together(subject, &courses, world)?;
    world.all_ok(if world.rank() == 0 { keep(&all) } else { Ok(()) })?;
    Ok(all)
}

/// This rank's part of a round: it measures a size, and works on until all ranks have measured theirs.
fn one<T: Trial>(
    subject: &Subject<'_>,
    (here, task): (usize, Task),
    options: &MeasureOptions,
    trial: &impl Fn(&Processor, usize, f64) -> T,
    (world, monitor): (&World, &Monitor),
) -> Result<Option<Found>> {
    let halt = StopSignal::new(monitor);
    let processor = &subject.platform.processors[here];
    clock::pin(&processor.cores);
    let (Task::Measure(size) | Task::Accompany(size)) = task;
    let mut trial = trial(processor, here, size);
    world.barrier()?;
    let mut settling = matches!(task, Task::Measure(_)).then(|| Settling::new(options));
    let (mut found, mut idle) = (None, false);
    loop {
        let failed = matches!(found, Some(Err(_)));
        let states = [u64::from(settling.is_some()), u64::from(failed)];
        let states = world.all_reduce(&states, |a, b| a + b)?;
        if states[0] == 0 || states[1] > 0 {
            return found.transpose();
        }
        let begin = Instant::now();
        while begin.elapsed() < SLICE && !idle {
            let Some(measuring) = &mut settling else {
                // A program that fails is not started again and again.
                idle = trial.time(&halt).is_err();
                continue;
            };
            let step = measuring
                .step(&mut trial, &halt)
                .map(|settled: Option<Settled>| settled.map(|settled| settled.point(size)));
            if let Some(outcome) = step.transpose() {
                idle = outcome.is_err();
                found = Some(Found::of(&trial, size, outcome));
                settling = None;
                break;
            }
        }
    }
}

/// The models so far of all ranks, on every rank.
fn together(subject: &Subject<'_>, courses: &[Course], world: &World) -> Result<Models> {
    let own = models(subject, courses)?;
    let here = world.processors_here(courses.len()).start;
    let name = &subject.platform.processors[here].name;
    let mine =
        Models { models: own.models.into_iter().filter(|model| model.processor() == name).collect(), ..own };
    let text = if mine.models.is_empty() { String::new() } else { mine.to_json() };
    let mut all = Models { models: Vec::new(), ..mine };
    for text in world.all_gather(text.as_bytes())?.iter().filter(|text| !text.is_empty()) {
        let text = std::str::from_utf8(text).map_err(|error| {
            Error::infeasible(format!("a rank's models are no text: {error}"), "run it again")
        })?;
        all.models.extend(Models::parse(text, "models of a rank")?.models);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use crate::measure::sweep::{self, Keep, MeasureOptions, Sizes, Subject, Sweep, Timing, Trial};
    use crate::model::Models;
    use crate::platform::Platform;
    use crate::run::mailboxes::StopSignal;
    use crate::run::{Monitor, World};
    use crate::{Error, Result};
    use std::collections::BTreeMap;
    use std::sync::Mutex;

    /// Rank r takes (r + 1) seconds a unit by its own clock, and fails above `works`.
    struct Told {
        rank: usize,
        size: f64,
        works: f64,
    }

    impl Trial for Told {
        const FEWEST_WHEN_LATE: usize = 1;

        fn warm_up(&mut self, halt: &StopSignal<'_>) -> Result<f64> {
            Ok(self.time(halt)?.wall)
        }

        fn time(&mut self, halt: &StopSignal<'_>) -> Result<Timing> {
            halt.check()?;
            std::thread::sleep(std::time::Duration::from_millis(1));
            match self.size <= self.works {
                true => Ok(Timing::of_wall(self.size * (self.rank + 1) as f64)),
                false => Err(Error::infeasible(format!("rank {} failed", self.rank), "help it")),
            }
        }

        fn too_large(&self) -> Option<&str> {
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
                largest: &|_| f64::INFINITY,
            };
            let sweep = Sweep { world: Some(world), ..Sweep::new(sizes.clone(), MeasureOptions::default()) };
            let mut save = |models: &Models| {
                assert_eq!(world.rank(), 0);
                saved.lock().unwrap().push(models.clone());
                Ok(())
            };
            let keep: &mut Keep<'_> = &mut save;
            let trial = |_: &_, rank: usize, size| Told { rank, size, works: works[rank] };
            sweep::run(&subject, &sweep, trial, keep, &monitor)
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
}
