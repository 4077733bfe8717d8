//! The search for the largest size that works, against programs that fail above a known one.

use super::*;
use crate::measure::MeasureOptions;
use crate::platform::Platform;

fn subject(platform: &Platform) -> Subject<'_> {
    Subject {
        platform,
        kernel: "test".into(),
        unit: "test".into(),
        parameters: BTreeMap::new(),
        rounded: |size| size.round(),
        largest: &|_| f64::INFINITY,
    }
}

/// Measures until nothing is left to do; a size fails above `works`. Returns the model and the sizes run.
fn swept(sweep: &Sweep<'_>, works: f64, most: usize) -> (Result<Models>, Vec<f64>) {
    let platform = Platform::from_speeds(&[1.0]).unwrap();
    let subject = subject(&platform);
    let mut courses = courses(&subject, sweep).unwrap();
    let mut run = Vec::new();
    while let Some(Task::Measure(size)) = courses[0].task() {
        if run.len() == most {
            break;
        }
        run.push(size);
        let found = if size <= works {
            Found::Point(Point::new(size, 0.01 * size))
        } else {
            Found::TooLarge { size, error: Error::infeasible("it failed", "help it"), reason: "full".into() }
        };
        if let Err(error) = courses[0].take(found) {
            return (Err(error), run);
        }
    }
    (models(&subject, &courses), run)
}

fn listed(sizes: &[f64]) -> Sweep<'static> {
    Sweep::new(Sizes::Listed(sizes.to_vec()), MeasureOptions::default())
}

fn adaptive() -> Sweep<'static> {
    let sizes = Sizes::Adaptive { smallest: 100.0, largest: 20_000.0, accuracy: 0.05, most: 30 };
    Sweep::new(sizes, MeasureOptions::default())
}

/// The cap is at most 5 % below the truth, whatever it is, and never above; few runs find it.
#[test]
fn the_largest_size_that_works_is_found() {
    for works in [100.0, 101.0, 250.0, 999.0, 5000.0, 17_777.0, 19_999.0] {
        for sweep in [listed(&[100.0, 1000.0, 20_000.0, 40_000.0]), adaptive()] {
            let (models, run) = swept(&sweep, works, usize::MAX);
            let model = &models.unwrap().models[0];
            let cap = model.max_size().unwrap();
            let failure = model.failure().unwrap();
            assert!(cap <= works && failure.size > works && failure.reason == "full", "{works}: {model:?}");
            assert!(failure.size <= 1.05 * cap + 1.0, "{works}: between {cap} and {}", failure.size);
            assert!(run.iter().filter(|&&size| size > works).count() <= 10, "{works}: {run:?}");
            assert!(run.len() <= 40, "{works}: {run:?}");
        }
    }
}

#[test]
fn a_failure_at_the_smallest_size_or_below_one_that_worked_is_an_error() {
    for sweep in [listed(&[100.0, 1000.0]), adaptive()] {
        let (models, run) = swept(&sweep, 99.0, usize::MAX);
        assert!(models.unwrap_err().to_string().contains("it failed"));
        assert_eq!(run, [100.0]);
    }
    // A larger size is known to work.
    let known = swept(&listed(&[900.0]), 1e9, usize::MAX).0.unwrap();
    let sweep = Sweep { known: Some(known), ..listed(&[100.0, 900.0]) };
    assert!(swept(&sweep, 50.0, usize::MAX).0.is_err());
}

/// Wherever the first sweep was interrupted, the second ends with the same model and repeats no point.
#[test]
fn an_interrupted_search_is_continued() {
    for sweep in [listed(&[100.0, 1000.0, 20_000.0]), adaptive()] {
        let (whole, all) = swept(&sweep, 5000.0, usize::MAX);
        let whole = whole.unwrap();
        for most in 1..all.len() {
            let (part, before) = swept(&sweep, 5000.0, most);
            let again = Sweep { known: Some(part.unwrap()), ..sweep.clone() };
            let (models, after) = swept(&again, 5000.0, usize::MAX);
            let model = &models.unwrap().models[0];
            assert_eq!(model.max_size(), whole.models[0].max_size(), "{most}");
            assert!(
                !after.iter().any(|size| *size <= 5000.0 && before.contains(size)),
                "{before:?} {after:?}"
            );
        }
        let (same, run) = swept(&Sweep { known: Some(whole.clone()), ..sweep }, 5000.0, usize::MAX);
        assert_eq!((same.unwrap(), run), (whole, Vec::new()), "the cap is kept");
    }
}

#[test]
fn a_given_cap_is_kept_and_not_exceeded() {
    for sweep in [listed(&[100.0, 1000.0, 20_000.0]), adaptive()] {
        let sweep = Sweep { max_size: Some(3000.0), ..sweep };
        let (models, run) = swept(&sweep, 1e9, usize::MAX);
        let models = models.unwrap();
        assert_eq!(models.models[0].max_size(), Some(3000.0));
        assert!(run.iter().all(|size| *size <= 3000.0), "{run:?}");
        // Also by a later sweep that does not know of it, and below a failure.
        let again = Sweep { known: Some(models), max_size: None, ..sweep.clone() };
        assert_eq!(swept(&again, 1e9, usize::MAX).0.unwrap().models[0].max_size(), Some(3000.0));
        let (found, run) = swept(&sweep, 900.0, usize::MAX);
        let cap = found.unwrap().models[0].max_size();
        assert!(cap.is_some_and(|cap| cap <= 900.0), "{cap:?} {run:?}");
    }
}
