//! One speed function for work of two kinds.

use super::{Model, Point};
use crate::error::{Error, Result};

/// The speed functions of processors whose work is of two kinds, by rank:
/// `time = weight * first + (1 - weight) * second`. A layer of a language model, for example, reads prompts
/// and writes answers. Each function has the sizes of both, at which it is exact, and the smaller of their
/// caps.
///
/// # Errors
/// Not as many models of one kind as of the other, or of other processors; ratios of speeds, which have no
/// times to add; a weight that is not from 0 to 1.
///
/// # Example
/// ```
/// use apportion::model::{Model, mixed};
/// let prefill = [Model::constant("gpu", 100.0)?];
/// let decode = [Model::constant("gpu", 25.0)?];
/// // 0.3 / 100 + 0.7 / 25 seconds a unit.
/// let speed = mixed(&prefill, &decode, 0.3)?[0].speed(10.0);
/// assert!((speed - 1.0 / 0.031).abs() < 1e-9);
/// # Ok::<(), apportion::Error>(())
/// ```
pub fn mixed(first: &[Model], second: &[Model], weight: f64) -> Result<Vec<Model>> {
    if !(0.0..=1.0).contains(&weight) {
        let what = format!("{weight} is not a fraction from 0 to 1");
        return Err(Error::input("`mix`", what, "0.3 means three tenths of the first kind"));
    }
    if first.len() != second.len() {
        let what = format!("{} models of the first kind and {} of the second", first.len(), second.len());
        return Err(Error::input("models", what, "measure the same processors for both"));
    }
    first.iter().zip(second).map(|(a, b)| of_one(a, b, weight)).collect()
}

fn of_one(a: &Model, b: &Model, weight: f64) -> Result<Model> {
    let place = || format!("model of \"{}\"", a.processor());
    if a.processor() != b.processor() {
        let what = format!("its second kind is that of \"{}\"", b.processor());
        return Err(Error::input(place(), what, "measure the same processors for both"));
    }
    if a.is_ratio() || b.is_ratio() {
        let what = "a speed without a unit has no time to add";
        return Err(Error::input(place(), what, "give both as times, or speeds with units"));
    }
    let cap = [a.max_size(), b.max_size()].into_iter().flatten().reduce(f64::min);
    let mut sizes: Vec<f64> = a.points().iter().chain(b.points()).map(|p| p.size).collect();
    sizes.retain(|size| cap.is_none_or(|cap| *size <= cap));
    sizes.extend(cap);
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    let point = |size: f64| Point::new(size, weight * a.seconds(size) + (1.0 - weight) * b.seconds(size));
    Model::piecewise(a.processor(), sizes.into_iter().map(point).collect(), cap)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_add_up_at_the_sizes_of_both() {
        let a =
            Model::piecewise("p", vec![Point::new(10.0, 1.0), Point::new(20.0, 4.0)], Some(40.0)).unwrap();
        let b = Model::piecewise("p", vec![Point::new(15.0, 3.0), Point::new(50.0, 20.0)], None).unwrap();
        let both = mixed(std::slice::from_ref(&a), std::slice::from_ref(&b), 0.25).unwrap().remove(0);
        assert_eq!(both.points().iter().map(|p| p.size).collect::<Vec<_>>(), [10.0, 15.0, 20.0, 40.0]);
        for size in [10.0, 15.0, 20.0, 40.0] {
            let expected = 0.25 * a.seconds(size) + 0.75 * b.seconds(size);
            assert!((both.seconds(size) - expected).abs() < 1e-12 * expected);
        }
        assert_eq!(both.max_size(), Some(40.0));
        // Only one kind: its own times.
        assert_eq!(mixed(std::slice::from_ref(&a), &[b], 1.0).unwrap()[0].seconds(15.0), a.seconds(15.0));
    }

    #[test]
    fn what_cannot_be_added_is_refused() {
        let timed = |name: &str| vec![Model::constant(name, 2.0).unwrap()];
        let ratio = vec![Model::ratio("p", 2.0).unwrap()];
        assert_eq!(mixed(&timed("p"), &timed("q"), 0.5).unwrap_err().exit_code(), 2);
        assert_eq!(mixed(&timed("p"), &ratio, 0.5).unwrap_err().exit_code(), 2);
        assert_eq!(mixed(&timed("p"), &[], 0.5).unwrap_err().exit_code(), 2);
        for weight in [-0.1, 1.1, f64::NAN] {
            assert_eq!(mixed(&timed("p"), &timed("p"), weight).unwrap_err().exit_code(), 2);
        }
    }
}
