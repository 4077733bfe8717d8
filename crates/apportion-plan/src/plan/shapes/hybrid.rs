//! The hybrid of square corner and straight line (Becker 2010, sections 5.3.3 and 5.4.3), also for three
//! processors, fully connected or on a star (sections 6.1.1 and 6.1.2).

use super::strips::lines_of_three;
use super::{
    BlockRectangle, Columns, LayoutMethod, NamedLayout, Rows, SquareCorner, SquareRectangle, StraightLine,
    retain_balanced, serves,
};
use crate::error::{Error, Result};
use crate::plan::{Layout, Metrics, Shape, relayed};

/// Whether the two directions of a link work one after the other or at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Communication {
    /// One transfer at a time: the whole volume counts (HSCP-SC).
    Serial,
    /// Both directions at once: the busier one counts (HSCP-PC).
    Parallel,
}

/// The square corner if it moves no more than the straight line by exact shares, and whole rows and columns make it
/// at most 2 % less balanced; otherwise the straight line.
///
/// On square matrices with two processors the switch is at 3:1 for serial and at 2:1 for parallel
/// communication; at the switch point the two are equal and the square corner is taken.
///
/// This is the smallest volume of all corner rectangles a x b of the slower share, also on rectangular
/// products m x k x n. Inside the matrix (a < m, b < n) the lines that both processors touch make the volume
/// k (a + b), which is smallest for the square (Becker 2010, Proposition 8.2). At a = m the faster one no
/// longer touches the b columns, and the volume drops to k m for any b (k n at b = n). If the square's side
/// exceeds the shorter side, the case that the thesis leaves open, a strip across the shorter side is
/// therefore the optimum: k min(m, n), less than any corner, since a + b > min(m, n). It is already the
/// optimum if the side is more than half the shorter side. The inner dimension k only scales: A's and B's
/// parts are cut in C's proportions, so that no side has to fit into it.
///
/// Of three processors: of the square corner, the square-rectangle, a strip with two halves (block-rectangle)
/// and three strips, in either direction and with any processor in the strip, the layout that fits and
/// communicates least, of those whose imbalance is at most 2 % above that of the best balanced one and that leave
/// the fewest processors idle; ties go to the first in this order. Serial communication counts every element, and relayed ones twice. Parallel communication
/// counts the busiest direction of a link: between two processors, or between one and the centre with all
/// traffic through it. O(1).
///
/// # Errors
/// Neither two nor three processors: exit code 1. A centre that does not exist: exit code 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hybrid {
    /// Whether the two directions of a link work one after the other or at once.
    pub communication: Communication,
    /// The centre of a star of three processors, which relays the other two's data; `None`: fully connected.
    pub centre: Option<usize>,
}

impl LayoutMethod for Hybrid {
    fn layout(&self, shape: Shape, weights: &[f64]) -> Result<Layout> {
        self.choose(shape, weights).map(|found| found.layout)
    }
}

impl Hybrid {
    /// The layout that it takes, and the name of its method.
    ///
    /// # Errors
    /// As for [`Hybrid`].
    pub fn choose(&self, shape: Shape, weights: &[f64]) -> Result<NamedLayout> {
        serves("hybrid", weights.len(), 2, 3)?;
        if weights.len() == 3 {
            return self.choose_of_three(shape, weights);
        }
        let slow = weights[0].min(weights[1]) / (weights[0] + weights[1]);
        let line = StraightLine.layout(shape, weights)?;
        // The line of a processor that gets nothing would run along the shorter side.
        let cut = if line.volume() > 0 { line.volume() } else { shape.k * shape.m.min(shape.n) };
        let volumes = [corner_volumes(shape, slow), line_volumes(cut, slow)];
        let [corner_moves, line_moves]: [f64; 2] = match self.communication {
            Communication::Serial => volumes.map(|directions| directions.iter().sum()),
            Communication::Parallel => volumes.map(largest),
        };
        let mut candidates = vec![("straight-line", line)];
        let fits = side(shape, slow) <= shape.m.min(shape.n) as f64;
        // The tolerance makes the switch point itself (a tie in exact arithmetic) a square corner.
        if fits && corner_moves <= line_moves * (1.0 + 1e-12) {
            candidates.push(("square-corner", SquareCorner.layout(shape, weights)?));
            retain_balanced(&mut candidates, weights, |(_, layout)| layout);
        }
        let (name, layout) = candidates.pop().expect("the best balanced one is retained");
        Ok(NamedLayout { method: name.into(), layout })
    }

    fn choose_of_three(&self, shape: Shape, weights: &[f64]) -> Result<NamedLayout> {
        if let Some(centre) = self.centre.filter(|&c| c >= 3) {
            let what = format!("there is no processor {centre} among 3");
            return Err(Error::input("star", what, "name one of the plan's processors as the centre"));
        }
        let price = |layout: &Layout| {
            let table = Metrics::of_layout(layout, 1.0).volume_matrix.unwrap_or_default();
            let links = relayed(&table, self.centre);
            let loads = links.iter().flatten().copied();
            match self.communication {
                Communication::Serial => loads.sum::<u64>(),
                Communication::Parallel => loads.max().unwrap_or(0),
            }
        };
        // A shape that does not fit is no candidate.
        let corners = [
            ("square-corner", SquareCorner.layout(shape, weights)),
            ("square-rectangle", SquareRectangle.layout(shape, weights)),
            ("block-rectangle", BlockRectangle.layout(shape, weights)),
        ];
        let corners = corners.into_iter().filter_map(|(name, layout)| Some((name, layout.ok()?)));
        // Rows and columns are two of these lines, but for rounding.
        let lines = lines_of_three(shape, weights).into_iter().chain([
            ("rows", Rows::default().layout(shape, weights)?),
            ("columns", Columns::default().layout(shape, weights)?),
        ]);
        let mut candidates: Vec<(&'static str, Layout)> = corners.chain(lines).collect();
        retain_balanced(&mut candidates, weights, |(_, layout)| layout);
        let least = candidates.into_iter().min_by_key(|(_, layout)| price(layout));
        let (name, layout) = least.expect("strips serve any three");
        Ok(NamedLayout { method: name.into(), layout })
    }
}

fn largest(directions: [f64; 2]) -> f64 {
    directions[0].max(directions[1])
}

fn side(shape: Shape, slow: f64) -> f64 {
    (slow * shape.m as f64 * shape.n as f64).sqrt()
}

/// Elements to the slow and to the fast processor: (5.10), (5.12), for any shape.
fn corner_volumes(shape: Shape, slow: f64) -> [f64; 2] {
    let (m, k, n) = (shape.m as f64, shape.k as f64, shape.n as f64);
    let side = side(shape, slow);
    let to_fast = side * side * (k / n + k / m);
    [2.0 * k * side - to_fast, to_fast]
}

/// Elements to the slow and to the fast processor by a line across which `moved` elements travel: (5.7), for
/// any shape.
fn line_volumes(moved: u64, slow: f64) -> [f64; 2] {
    [(1.0 - slow) * moved as f64, slow * moved as f64]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Span;
    use crate::plan::shapes::{idle, imbalance};
    use crate::plan::star_volume;
    use proptest::prelude::*;

    fn cube(n: u64) -> Shape {
        Shape::new(n, n, n, "test").unwrap()
    }

    #[test]
    fn switches_at_three_and_two_to_one() {
        for n in [7, 100, 999, 1000, 4500] {
            for (communication, switch) in [(Communication::Serial, 3.0), (Communication::Parallel, 2.0)] {
                for ratio in [1.0, 1.9, 2.0, 2.1, 2.9, 3.0, 3.1, 25.0] {
                    let weights = [ratio, 1.0];
                    let ours = Hybrid { communication, centre: None }.layout(cube(n), &weights).unwrap();
                    let expected: &dyn LayoutMethod =
                        if ratio >= switch { &SquareCorner } else { &StraightLine };
                    assert_eq!(
                        ours,
                        expected.layout(cube(n), &weights).unwrap(),
                        "{n} {ratio} {communication:?}"
                    );
                }
            }
        }
    }

    /// Table 5.1: the three zones of the parallel hybrid, as fractions of N^2.
    #[test]
    fn zones_of_the_parallel_hybrid() {
        let zone = |ratio: f64| {
            let layout = Hybrid { communication: Communication::Parallel, centre: None }
                .layout(cube(2000), &[ratio, 1.0])
                .unwrap();
            Metrics::of_layout(&layout, 1.0).largest_direction().unwrap() as f64 / 4e6
        };
        let s2 = |ratio: f64| 1.0 / (1.0 + ratio);
        for ratio in [1.0, 1.3, 1.9] {
            assert!((zone(ratio) - ratio / (1.0 + ratio)).abs() < 1e-3);
        }
        for ratio in [2.0, 2.5, 2.99] {
            assert!((zone(ratio) - 2.0 * s2(ratio)).abs() < 2e-3);
        }
        for ratio in [3.0, 8.0, 25.0] {
            assert!((zone(ratio) - 2.0 * (s2(ratio).sqrt() - s2(ratio))).abs() < 2e-3);
        }
    }

    /// Whole rows balance 2:1 on three rows, and whole columns and squares do not.
    #[test]
    fn balance_goes_before_volume() {
        let shape = |m, n| Shape::new(m, 5, n, "test").unwrap();
        let shares = |shape, weights: &[f64]| {
            Hybrid { communication: Communication::Serial, centre: None }
                .layout(shape, weights)
                .unwrap()
                .shares()
        };
        assert_eq!(shares(shape(3, 20), &[2.0, 1.0]), [40, 20]);
        assert_eq!(shares(shape(20, 3), &[2.0, 1.0]), [40, 20]);
        // A square of 3 x 3 is a quarter of 4 x 9, as one row is, and moves less.
        let corner = Hybrid { communication: Communication::Serial, centre: None }
            .layout(shape(4, 9), &[3.0, 1.0])
            .unwrap();
        assert_eq!((corner.shares(), corner.volume()), (vec![27, 9], 30));
    }

    /// Exhaustive on small matrices: no corner rectangle, of whichever processor, moves less than
    /// k min(2 sqrt(s m n), m, n), and the hybrid reaches that up to the rounding of two sides. The sum of
    /// half-perimeters is never below min(3, 2 + 2 sqrt(s)), which the scaled corner has (Proposition 8.1).
    #[test]
    fn no_corner_rectangle_moves_less() {
        for (m, k, n) in (1..=9).flat_map(|m| (1..=9).map(move |n| (m, 1 + (m * n) % 4, n))) {
            let shape = Shape::new(m, k, n, "test").unwrap();
            for (high, wide) in (1..=m).flat_map(|a| (1..=n).map(move |b| (a, b))) {
                let corner = crate::plan::shapes::layout(
                    shape,
                    2,
                    [
                        (0, Span::new(0, m - high), Span::new(0, n)),
                        (0, Span::new(m - high, m), Span::new(0, n - wide)),
                        (1, Span::new(m - high, m), Span::new(n - wide, n)),
                    ],
                );
                let metrics = Metrics::of_layout(&corner, 1.0);
                let moved = metrics.volume.unwrap();
                let [rest, area] = [m * n - high * wide, high * wide].map(|x| x as f64);
                let slow = rest.min(area);
                let least = (2.0 * slow.sqrt()).min(m.min(n) as f64) * k as f64;
                assert!(moved as f64 >= least - 1e-9, "{shape:?} {high} {wide}");
                let cost = metrics.sum_half_perimeters.unwrap();
                assert!(cost >= (2.0 + 2.0 * (slow / (m * n) as f64).sqrt()).min(3.0) - 1e-9);
                let line = StraightLine.layout(shape, &[rest, area]).unwrap();
                if line.volume() > k * m.min(n) {
                    // The cut of the longer side would balance worse.
                    continue;
                }
                let ours = Hybrid { communication: Communication::Serial, centre: None }
                    .layout(shape, &[rest, area])
                    .unwrap()
                    .volume();
                assert!(ours <= moved + 2 * k, "{shape:?} {high} {wide}: {ours} {moved}");
            }
        }
    }

    fn shapes(weights: &[f64]) -> [Option<Layout>; 3] {
        let methods: [&dyn LayoutMethod; 3] = [&SquareCorner, &SquareRectangle, &BlockRectangle];
        methods.map(|method| method.layout(cube(1000), weights).ok())
    }

    /// (6.9): with the fastest in the middle of a star, the square corner always beats the straight line;
    /// (6.10): fully connected, it does where sqrt(s2) + sqrt(s3) < 1 - s1/2.
    #[test]
    fn conditions_of_the_thesis() {
        for (s1, s2, s3) in
            [(0.9, 0.06, 0.04), (0.8, 0.1, 0.1), (0.6, 0.3, 0.1), (0.55, 0.25, 0.2), (0.7, 0.29, 0.01)]
        {
            let [corner, _, line] = shapes(&[s1, s2, s3]).map(Option::unwrap);
            assert!(star_volume(&corner, 0).unwrap() < star_volume(&line, 0).unwrap());
            let volume = |layout: &Layout| Metrics::of_layout(layout, 1.0).volume.unwrap();
            let expected = f64::sqrt(s2) + f64::sqrt(s3) < 1.0 - s1 / 2.0;
            assert_eq!(volume(&corner) < volume(&line), expected, "{s1} {s2} {s3}");
        }
    }

    /// Whatever the topology and communication, no candidate is cheaper than the choice.
    #[test]
    fn the_choice_is_the_cheapest() {
        for weights in [[90.0, 6.0, 4.0], [1.0, 1.0, 1.0], [3.0, 60.0, 37.0], [10.0, 11.0, 50.0]] {
            for centre in [None, Some(0), Some(1), Some(2)] {
                let serial = Hybrid { communication: Communication::Serial, centre }
                    .layout(cube(1000), &weights)
                    .unwrap();
                let cost = |layout: &Layout| match centre {
                    Some(centre) => star_volume(layout, centre).unwrap(),
                    None => Metrics::of_layout(layout, 1.0).volume.unwrap(),
                };
                assert!(shapes(&weights).iter().flatten().all(|l| cost(&serial) <= cost(l)));
            }
            let parallel = Hybrid { communication: Communication::Parallel, centre: None }
                .layout(cube(1000), &weights)
                .unwrap();
            let busiest = |layout: &Layout| Metrics::of_layout(layout, 1.0).largest_direction();
            assert!(shapes(&weights).iter().flatten().all(|l| busiest(&parallel) <= busiest(l)));
        }
        assert_eq!(
            Hybrid { communication: Communication::Serial, centre: Some(3) }
                .layout(cube(9), &[1.0; 3])
                .unwrap_err()
                .exit_code(),
            2
        );
    }

    /// Long matrices, where a strip and two halves moves up to five times as much as three strips.
    #[test]
    fn strips_on_long_matrices() {
        for ([m, k, n], weights) in [
            ([20, 30, 1000], [80.0, 10.0, 10.0]),
            ([100, 10, 1000], [1.0, 1.0, 1.0]),
            ([500, 10, 1000], [1.0, 1.0, 1.0]),
        ] {
            let shape = Shape::new(m, k, n, "test").unwrap();
            let volume = |layout: &Layout| Metrics::of_layout(layout, 1.0).volume.unwrap();
            let ours = volume(
                &Hybrid { communication: Communication::Serial, centre: None }
                    .layout(shape, &weights)
                    .unwrap(),
            );
            assert!(ours <= volume(&Columns::default().layout(shape, &weights).unwrap()), "{shape:?} {ours}");
            assert!(ours <= 2 * k * m.min(n), "{shape:?} {ours}");
        }
    }

    /// 104 x 104 at 8:3:4: three strips are 0.9 % less balanced than a square corner could be, and move a quarter less.
    #[test]
    fn rounding_does_not_outweigh_volume() {
        let serial = Hybrid { communication: Communication::Serial, centre: None };
        for (m, k, n, weights) in [(104, 104, 104, [8.0, 3.0, 4.0]), (97, 333, 97, [7.3, 1.0, 5.0])] {
            let shape = Shape::new(m, k, n, "test").unwrap();
            let ours = serial.layout(shape, &weights).unwrap().volume();
            let line = StraightLine.layout(shape, &weights).unwrap().volume();
            assert!(ours <= line, "{m} x {k} x {n}: {ours}, and the straight line {line}");
        }
    }

    proptest! {
        /// On any shape of three processors, star and communication: no simple alternative balances better by more
        /// than 2 %, and none within 2 % of the best balance that leaves no more processors idle is cheaper.
        #[test]
        fn no_simple_layout_is_better(
            weights in prop::collection::vec(1u32..60, 3), m in 2u64..400, k in 1u64..9, n in 2u64..400,
            centre in prop::option::of(0usize..3), serial in any::<bool>(),
        ) {
            let weights: Vec<f64> = weights.into_iter().map(f64::from).collect();
            let shape = Shape::new(m, k, n, "test").unwrap();
            let communication = if serial { Communication::Serial } else { Communication::Parallel };
            let price = |layout: &Layout| {
                let table = Metrics::of_layout(layout, 1.0).volume_matrix.unwrap();
                let loads = relayed(&table, centre).into_iter().flatten();
                if serial { loads.sum::<u64>() } else { loads.max().unwrap() }
            };
            let ours = Hybrid { communication, centre }.layout(shape, &weights).unwrap();
            let balance = imbalance(&ours, &weights);
            let (rows, columns) = (Rows::default(), Columns::default());
            let all: [&dyn LayoutMethod; 6] =
                [&rows, &columns, &StraightLine, &SquareCorner, &SquareRectangle, &BlockRectangle];
            // The strips are alternatives too: one of them may balance best of all.
            let lines = lines_of_three(shape, &weights).into_iter().map(|(_, line)| line);
            let all = all.iter().filter_map(|other| other.layout(shape, &weights).ok()).chain(lines);
            let all: Vec<Layout> = all.collect();
            let least = all.iter().map(|other| imbalance(other, &weights)).fold(balance, f64::min);
            prop_assert!(balance <= least * 1.02 * (1.0 + 1e-12), "{balance} {least}");
            for other in all.iter().filter(|other| idle(other) <= idle(&ours)) {
                let uneven = imbalance(other, &weights) > least * 1.02;
                prop_assert!(uneven || price(&ours) <= price(other), "{} {}", price(&ours), price(other));
            }
        }
    }
}
