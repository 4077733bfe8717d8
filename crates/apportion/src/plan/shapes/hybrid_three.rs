//! The hybrid for three processors, fully connected or on a star (Becker 2010, sections 6.1.1 and 6.1.2).

use super::straight_line::lines_of_three;
use super::{
    Communication, block_rectangle, columns, retain_balanced, serves, square_corner, square_rectangle,
};
use crate::error::{Error, Result};
use crate::plan::{Layout, Metrics, Shape, relayed};

/// Of the square corner, the square-rectangle, a strip with two halves (block-rectangle) and three strips, in
/// either direction and with any processor in the strip, the layout that fits and communicates least, of
/// those that balance the processors best to half a per cent; ties go to the first in this order. `centre` is
/// the centre of a star, which relays the other two processors' data; `None` means fully connected. O(1).
///
/// Serial communication counts every element, and relayed ones twice. Parallel communication counts the
/// busiest direction of a link: between two processors, or between one and the centre with all traffic
/// through it.
///
/// # Errors
/// Not three processors: exit code 1. A centre that does not exist: exit code 2.
pub fn hybrid_three(
    shape: Shape,
    weights: &[f64],
    communication: Communication,
    centre: Option<usize>,
) -> Result<Layout> {
    serves("hybrid", weights.len(), 3, 3)?;
    choice_of_three(shape, weights, communication, centre).map(|(_, layout)| layout)
}

/// The layout of [`hybrid_three`], and its name.
pub(super) fn choice_of_three(
    shape: Shape,
    weights: &[f64],
    communication: Communication,
    centre: Option<usize>,
) -> Result<(&'static str, Layout)> {
    if let Some(centre) = centre.filter(|&c| c >= 3) {
        let what = format!("there is no processor {centre} among 3");
        return Err(Error::input("star", what, "name one of the plan's processors as the centre"));
    }
    let price = |layout: &Layout| {
        let table = Metrics::of_layout(layout, 1.0).volume_matrix.unwrap_or_default();
        let links = relayed(&table, centre);
        let loads = links.iter().flatten().copied();
        match communication {
            Communication::Serial => loads.sum::<u64>(),
            Communication::Parallel => loads.max().unwrap_or(0),
        }
    };
    // A shape that does not fit is no candidate.
    let corners = [
        ("square-corner", square_corner(shape, weights)),
        ("square-rectangle", square_rectangle(shape, weights)),
        ("block-rectangle", block_rectangle(shape, weights)),
    ];
    let corners = corners.into_iter().filter_map(|(name, layout)| Some((name, layout.ok()?)));
    // Columns are one of these lines, but for rounding.
    let lines = lines_of_three(shape, weights).into_iter().chain([("columns", columns(shape, weights)?)]);
    let mut candidates: Vec<(&'static str, Layout)> = corners.chain(lines).collect();
    retain_balanced(&mut candidates, weights, |(_, layout)| layout);
    let least = candidates.into_iter().min_by_key(|(_, layout)| price(layout));
    Ok(least.expect("strips serve any three"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::shapes::{imbalance, rows, straight_line};
    use crate::plan::star_volume;
    use proptest::prelude::*;

    fn cube(n: u64) -> Shape {
        Shape::new(n, n, n, "test").unwrap()
    }

    fn shapes(weights: &[f64]) -> [Option<Layout>; 3] {
        [square_corner, square_rectangle, block_rectangle].map(|method| method(cube(1000), weights).ok())
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
                let serial = hybrid_three(cube(1000), &weights, Communication::Serial, centre).unwrap();
                let cost = |layout: &Layout| match centre {
                    Some(centre) => star_volume(layout, centre).unwrap(),
                    None => Metrics::of_layout(layout, 1.0).volume.unwrap(),
                };
                assert!(shapes(&weights).iter().flatten().all(|l| cost(&serial) <= cost(l)));
            }
            let parallel = hybrid_three(cube(1000), &weights, Communication::Parallel, None).unwrap();
            let busiest = |layout: &Layout| Metrics::of_layout(layout, 1.0).largest_direction();
            assert!(shapes(&weights).iter().flatten().all(|l| busiest(&parallel) <= busiest(l)));
        }
        assert_eq!(
            hybrid_three(cube(9), &[1.0; 3], Communication::Serial, Some(3)).unwrap_err().exit_code(),
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
            let ours = volume(&hybrid_three(shape, &weights, Communication::Serial, None).unwrap());
            assert!(ours <= volume(&columns(shape, &weights).unwrap()), "{shape:?} {ours}");
            assert!(ours <= 2 * k * m.min(n), "{shape:?} {ours}");
        }
    }

    proptest! {
        /// On any shape, star and communication: no simple alternative balances better by more than half a
        /// per cent, and none that balances as well is cheaper.
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
            let ours = hybrid_three(shape, &weights, communication, centre).unwrap();
            let balance = imbalance(&ours, &weights);
            let all = [rows, columns, straight_line, square_corner, square_rectangle, block_rectangle];
            for (i, other) in all.into_iter().enumerate() {
                let Ok(layout) = other(shape, &weights) else { continue };
                let theirs = imbalance(&layout, &weights);
                prop_assert!(balance <= theirs * 1.005 * (1.0 + 1e-12), "{i}: {balance} {theirs}");
                prop_assert!(theirs > balance || price(&ours) <= price(&layout), "{i}");
            }
        }
    }
}
