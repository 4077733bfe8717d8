//! The hybrid for three processors, fully connected or on a star (Becker 2010, sections 6.1.1 and 6.1.2).

use super::{Communication, block_rectangle, serves, square_corner, square_rectangle};
use crate::error::{Error, Result};
use crate::plan::{Layout, Metrics, Shape, relayed};

/// Of the square corner, the square-rectangle and the straight line (block-rectangle), the layout that fits
/// and communicates least; ties go to the first in this order. `centre` is the centre of a star, which relays
/// the other two processors' data; `None` means fully connected. O(1).
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
    // A shape that does not fit is no candidate; block-rectangle always fits.
    let layouts =
        [square_corner, square_rectangle].into_iter().filter_map(|method| method(shape, weights).ok());
    let least = layouts.chain([block_rectangle(shape, weights)?]).min_by_key(price);
    Ok(least.expect("block-rectangle is a candidate"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::star_volume;

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
}
