//! Speed as a function of two or three size parameters, and its sections.
//!
//! Source: Lastovetsky and Reddy 2007, sections 2 and 3.2, Fig. 8: a surface over (n1, n) is cut at the
//! problem's n, and the set is partitioned by the resulting curves over n1.

use super::{Interpolation, Model, Point};
use crate::error::{Error, Result};
use crate::input::{extreme, quoted};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// A speed function over a grid of sizes: (rows, columns), or (m, k, n).
///
/// The work of a task is a product of powers of its coordinates, by default of the coordinates themselves.
/// Speed is work per second; it is multilinear between the nodes of the grid and constant beyond its edges. A
/// section is therefore a piecewise-linear [`Model`].
///
/// # Example
/// ```
/// use apportion_plan::model::{Surface, SurfacePoint};
/// // Seconds for rows x columns: twice as fast at 100 columns as at 10.
/// let measured = [([10.0, 10.0], 1.0), ([20.0, 10.0], 2.0), ([10.0, 100.0], 5.0), ([20.0, 100.0], 10.0)];
/// let samples = measured.map(|(at, seconds)| SurfacePoint { at: at.to_vec(), seconds });
/// let surface = Surface::new("p0", &["rows", "cols"], &samples)?;
/// assert_eq!(surface.speed(&[15.0, 55.0]), 150.0);
/// let model = surface.section(&[None, Some(100.0)])?;
/// assert_eq!(model.seconds(15.0), 7.5);
/// # Ok::<(), apportion_plan::error::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Surface {
    processor: String,
    names: Vec<String>,
    /// The exponent of each coordinate in the work.
    powers: Vec<f64>,
    /// Ascending coordinates of each axis.
    axes: Vec<Vec<f64>>,
    /// Row-major over the axes: work per second.
    speeds: Vec<f64>,
}

/// The time of a task whose sizes are a node of the grid.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SurfacePoint {
    /// The coordinates of the node, one for each axis.
    pub at: Vec<f64>,
    /// The time.
    pub seconds: f64,
}

impl Surface {
    /// A surface through `samples`, which must fill a grid: every combination of
    /// the coordinates that occur, once. The work of a task is the product of its coordinates.
    ///
    /// # Errors
    /// Coordinates or times that are not positive, or not between 1e-100 and 1e100; not one coordinate per
    /// axis; a node missing or given twice.
    pub fn new(processor: impl Into<String>, names: &[&str], samples: &[SurfacePoint]) -> Result<Self> {
        Self::with_work(processor, names, &vec![1.0; names.len()], samples)
    }

    /// [`Surface::new`] for tasks whose work is a product of powers of the coordinates: `powers` has one
    /// exponent per axis, such as \[1, 2\] for n1 n^2.
    ///
    /// # Errors
    /// As [`Surface::new`]; exponents that are not numbers from 0 to 10, or work out of range.
    pub(crate) fn with_work(
        processor: impl Into<String>,
        names: &[&str],
        powers: &[f64],
        samples: &[SurfacePoint],
    ) -> Result<Self> {
        let processor = processor.into();
        let place = format!("surface of {}", quoted(&processor));
        let refuse =
            |what: String| Err(Error::input(place.clone(), what, "measure every node of the grid once"));
        if names.is_empty() || samples.is_empty() {
            return refuse("there is no axis or no point".into());
        }
        if powers.len() != names.len() || powers.iter().any(|p| !(0.0..=10.0).contains(p)) {
            let remedy = "give each axis an exponent from 0 to 10";
            return Err(Error::input(format!("{place}: work"), format!("has exponents {powers:?}"), remedy));
        }
        for SurfacePoint { at, seconds } in samples {
            if at.len() != names.len() {
                return refuse(format!("{at:?} has {} of {} coordinates", at.len(), names.len()));
            }
            let speed = work_of(powers, at) / seconds;
            if let Some(what) = at.iter().chain([seconds, &speed]).find_map(|&x| extreme(x)) {
                return refuse(format!("{what}: the point at {at:?}"));
            }
        }
        let axes: Vec<Vec<f64>> = (0..names.len())
            .map(|axis| {
                let mut values: Vec<f64> = samples.iter().map(|sample| sample.at[axis]).collect();
                values.sort_by(f64::total_cmp);
                values.dedup();
                values
            })
            .collect();
        // In the order of the grid, a node that is missing or given twice is the first that differs.
        let mut sorted: Vec<&SurfacePoint> = samples.iter().collect();
        sorted.sort_by(|a, b| in_order(&a.at, &b.at));
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0].at == pair[1].at) {
            return refuse(format!("{:?} is given twice", pair[0].at));
        }
        let nodes = axes.iter().try_fold(1usize, |product, values| product.checked_mul(values.len()));
        if nodes != Some(sorted.len()) {
            let missing = Nodes::of(&axes).zip(sorted.iter().map(|sample| Some(&sample.at)).chain([None]));
            let first = missing.map(|(node, at)| (at != Some(&node), node)).find(|(differs, _)| *differs);
            return refuse(format!("{:?} is missing", first.expect("a node is missing").1));
        }
        let speeds = sorted.iter().map(|sample| work_of(powers, &sample.at) / sample.seconds).collect();
        let names = names.iter().map(|&n| n.to_owned()).collect();
        Ok(Self { processor, names, powers: powers.to_vec(), axes, speeds })
    }

    /// The names of the size parameters.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// The processor's name.
    pub fn processor(&self) -> &str {
        &self.processor
    }

    /// The grid's nodes with their seconds; the last parameter varies fastest.
    pub(crate) fn samples(&self) -> Vec<SurfacePoint> {
        let sample = |(at, speed): (Vec<f64>, &f64)| {
            let seconds = work_of(&self.powers, &at) / speed;
            SurfacePoint { at, seconds }
        };
        Nodes::of(&self.axes).zip(&self.speeds).map(sample).collect()
    }

    /// Work per second.
    ///
    /// # Panics
    /// If there is not one coordinate per axis.
    pub fn speed(&self, at: &[f64]) -> f64 {
        assert_eq!(at.len(), self.axes.len(), "one coordinate per axis");
        self.along(at, 0, 0)
    }

    /// Seconds for a task of these sizes; 0 if one of them is 0.
    ///
    /// # Panics
    /// If there is not one coordinate per axis.
    pub fn seconds(&self, at: &[f64]) -> f64 {
        work_of(&self.powers, at) / self.speed(at)
    }

    /// The section with all parameters fixed but one (`None`): a model whose size is that parameter.
    ///
    /// # Errors
    /// Not exactly one `None`, not one entry per axis, a fixed value that is not positive, or work that is
    /// not proportional to the free parameter.
    pub fn section(&self, fixed: &[Option<f64>]) -> Result<Model> {
        let free: Vec<usize> = (0..fixed.len()).filter(|&i| fixed[i].is_none()).collect();
        let positive = fixed.iter().flatten().all(|x| x.is_finite() && *x > 0.0);
        let &[axis] = &free[..] else {
            return Err(self.wrong_section(fixed));
        };
        if fixed.len() != self.axes.len() || !positive {
            return Err(self.wrong_section(fixed));
        }
        if self.powers[axis] != 1.0 {
            return Err(Error::input(
                format!("section of the surface of {}", quoted(&self.processor)),
                format!(
                    "work is not proportional to {}, but to its power {}",
                    self.names[axis], self.powers[axis]
                ),
                "divide along a parameter whose exponent in `work` is 1",
            ));
        }
        let points = self.axes[axis].iter().map(|&x| {
            let at: Vec<f64> = fixed.iter().map(|f| f.unwrap_or(x)).collect();
            Point::new(x, self.seconds(&at))
        });
        Model::new(self.processor.clone(), Interpolation::PiecewiseLinear, points.collect(), None)
    }

    fn wrong_section(&self, fixed: &[Option<f64>]) -> Error {
        Error::input(
            format!("section of the surface of \"{}\"", self.processor),
            format!("{fixed:?} does not leave one of ({}) free and fix the others", self.names.join(", ")),
            "give a positive number for each parameter but one",
        )
    }

    /// Linear interpolation along `axis` of the interpolants along the axes after it.
    fn along(&self, at: &[f64], axis: usize, node: usize) -> f64 {
        let Some(values) = self.axes.get(axis) else {
            return self.speeds[node];
        };
        let below = |i: usize| self.along(at, axis + 1, node * values.len() + i);
        let right = values.partition_point(|v| *v <= at[axis]);
        if right == 0 {
            return below(0);
        }
        if right == values.len() {
            return below(right - 1);
        }
        let (a, b) = (values[right - 1], values[right]);
        let t = (at[axis] - a) / (b - a);
        (1.0 - t) * below(right - 1) + t * below(right)
    }
}

/// The work of a task: the product of its coordinates to their powers.
fn work_of(powers: &[f64], at: &[f64]) -> f64 {
    at.iter().zip(powers).map(|(x, &power)| if power == 1.0 { *x } else { x.powf(power) }).product()
}

/// The order of nodes in the grid: the last coordinate varies fastest.
fn in_order(a: &[f64], b: &[f64]) -> Ordering {
    a.iter().zip(b).map(|(x, y)| x.total_cmp(y)).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
}

/// The nodes of a grid in order.
struct Nodes<'a> {
    axes: &'a [Vec<f64>],
    /// The index of the next node on each axis; `None` at the end.
    next: Option<Vec<usize>>,
}

impl<'a> Nodes<'a> {
    fn of(axes: &'a [Vec<f64>]) -> Self {
        Self { axes, next: Some(vec![0; axes.len()]) }
    }
}

impl Iterator for Nodes<'_> {
    type Item = Vec<f64>;

    fn next(&mut self) -> Option<Vec<f64>> {
        let mut at = self.next.take()?;
        let node = at.iter().zip(self.axes).map(|(&i, values)| values[i]).collect();
        for axis in (0..at.len()).rev() {
            at[axis] += 1;
            if at[axis] < self.axes[axis].len() {
                self.next = Some(at);
                break;
            }
            at[axis] = 0;
        }
        Some(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::shares::{compositions, fpm};
    use proptest::prelude::*;

    fn grid(axes: &[&[f64]], seconds: impl Fn(&[f64]) -> f64) -> Vec<SurfacePoint> {
        let mut nodes: Vec<Vec<f64>> = vec![vec![]];
        for axis in axes {
            nodes = nodes
                .iter()
                .flat_map(|n| axis.iter().map(|&x| n.iter().copied().chain([x]).collect()))
                .collect();
        }
        nodes.into_iter().map(|at| SurfacePoint { seconds: seconds(&at), at }).collect()
    }

    #[test]
    fn incomplete_grids_are_refused_by_node() {
        let axes: [&[f64]; 3] = [&[1.0, 2.0], &[3.0, 4.0], &[5.0, 6.0, 7.0]];
        let whole = grid(&axes, |at| at.iter().sum());
        let names = ["m", "k", "n"];
        assert!(Surface::new("p", &names, &whole).is_ok());
        let error = Surface::new("p", &names, &whole[..11]).unwrap_err();
        assert!(error.to_string().contains("[2.0, 4.0, 7.0] is missing"), "{error}");
        let twice: Vec<_> = whole.iter().chain(&whole[3..4]).cloned().collect();
        assert!(Surface::new("p", &names, &twice).unwrap_err().to_string().contains("twice"));
        assert!(Surface::new("p", &names[..2], &whole).is_err());
        assert!(Surface::new("p", &["x"], &[SurfacePoint { at: vec![1.0], seconds: 0.0 }]).is_err());
        let surface = Surface::new("p", &names, &whole).unwrap();
        for fixed in
            [&[None, None, Some(1.0)][..], &[None, Some(2.0)], &[Some(1.0); 3], &[None, Some(0.0), Some(1.0)]]
        {
            assert_eq!(surface.section(fixed).unwrap_err().exit_code(), 2);
        }
    }

    #[test]
    fn large_grids_are_refused_before_memory_is_taken() {
        // Three axes of 1800 nodes, of which 1800 are given: 47 GB if made.
        let line: Vec<_> =
            (1..=1800).map(|i| SurfacePoint { at: vec![f64::from(i); 3], seconds: 1.0 }).collect();
        let error = Surface::new("p", &["m", "k", "n"], &line).unwrap_err().to_string();
        assert!(error.contains("[1.0, 1.0, 2.0] is missing"), "{error}");
        let names: Vec<&str> = vec!["x"; 64];
        let wide: Vec<_> = (1..=70)
            .map(|i| SurfacePoint { at: vec![1.0 + 1e-3 * f64::from(i); 64], seconds: 1.0 })
            .collect();
        assert!(Surface::new("p", &names, &wide).unwrap_err().to_string().contains("missing"));
        for (at, seconds) in [([1.0, 1.0], 1e-320), ([1e-200, 1.0], 1.0), ([1e90, 1e90], 1.0)] {
            let sample = SurfacePoint { at: at.to_vec(), seconds };
            let error = Surface::new("p", &["m", "n"], &[sample]).unwrap_err().to_string();
            assert!(error.contains("1e-100") && error.contains("the point at"), "{error}");
        }
    }

    #[test]
    fn work_may_grow_with_a_power() {
        // n1 n^2 at 100 and 50 units per second: at n = 15 by hand 75 a second, 4 x 225 / 75.
        let samples =
            [(10.0, 4.0), (20.0, 32.0)].map(|(n, seconds)| SurfacePoint { at: vec![4.0, n], seconds });
        let surface = Surface::with_work("p", &["n1", "n"], &[1.0, 2.0], &samples).unwrap();
        assert_eq!(surface.speed(&[4.0, 15.0]), 75.0);
        assert_eq!(surface.seconds(&[4.0, 15.0]), 12.0);
        let section = surface.section(&[None, Some(15.0)]).unwrap();
        assert_eq!(section.seconds(8.0), 24.0);
        assert!(surface.section(&[Some(4.0), None]).unwrap_err().to_string().contains("power 2"));
        assert!(Surface::with_work("p", &["n1", "n"], &[1.0, -2.0], &samples).is_err());
        assert_eq!(surface.samples(), samples);
    }

    proptest! {
        #[test]
        fn a_section_is_the_surface_cut(
            times in prop::collection::vec(0.1f64..10.0, 12),
            at in prop::collection::vec(0.5f64..12.0, 3),
            free in 0usize..3,
        ) {
            let axes: [&[f64]; 3] = [&[1.0, 2.0], &[3.0, 9.0], &[5.0, 6.0, 10.0]];
            let mut next = times.iter();
            let mut samples = grid(&axes, |_| 1.0);
            samples.iter_mut().for_each(|s| s.seconds = *next.next().unwrap());
            let surface = Surface::new("p", &["m", "k", "n"], &samples).unwrap();
            for SurfacePoint { at: node, seconds } in &samples {
                prop_assert!((surface.seconds(node) - seconds).abs() < 1e-9 * seconds);
            }
            let fixed: Vec<Option<f64>> = (0..3).map(|i| (i != free).then_some(at[i])).collect();
            let section = surface.section(&fixed).unwrap();
            let (ours, theirs) = (section.seconds(at[free]), surface.seconds(&at));
            prop_assert!((ours - theirs).abs() < 1e-9 * theirs, "{ours} against {theirs}");
        }

        /// Fig. 8(d): cut at n, then partition the rows.
        #[test]
        fn partitioning_a_section_is_optimal_on_the_surface(n in 1u64..20, speeds in prop::collection::vec(1.0f64..9.0, 2..4)) {
            let axes: [&[f64]; 2] = [&[1.0, 8.0, 20.0], &[4.0, 30.0]];
            let surfaces: Vec<Surface> = speeds
                .iter()
                .map(|&s| grid(&axes, |at| at[0] * at[1] * (1.0 + 0.02 * at[0]) * (1.0 + 0.1 * at[1]) / s))
                .map(|samples| Surface::new("p", &["rows", "cols"], &samples).unwrap())
                .collect();
            let models: Vec<Model> = surfaces.iter().map(|s| s.section(&[None, Some(n as f64)]).unwrap()).collect();
            let time = |shares: &[u64]| {
                surfaces.iter().zip(shares).map(|(s, &x)| s.seconds(&[x as f64, n as f64])).fold(0.0, f64::max)
            };
            let best = compositions(n, speeds.len()).iter().map(|c| time(c)).fold(f64::INFINITY, f64::min);
            prop_assert!(time(&fpm(&models, n).unwrap()) <= best * (1.0 + 1e-9));
        }
    }
}
