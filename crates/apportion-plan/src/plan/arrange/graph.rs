//! Parts of a graph on a network: processors of equal shares change places until no exchange shortens what travels.

use super::distance::Distances;
use super::{CostFunction, finite};
use crate::error::Result;
use crate::plan::Border;
use crate::plan::arrange::Cost;
use crate::platform::Platform;

/// Least gain of an exchange, as a fraction of the cost.
const GAIN: f64 = 1e-12;

/// The processor of each part, so that the sum over borders of values times distance is small: parts begin at the processor
/// of their number, and two change places where that is shorter, until no two do. `alike` says whether two processors may.
/// Values at borders lie side by side in a message: where a link's directions differ, the vertical one counts.
///
/// O(p^2 borders / p) a round.
///
/// # Errors
/// A processor that the platform lacks; bandwidths beyond the range of numbers.
pub fn arrange_borders(
    borders: &[Border],
    names: &[String],
    platform: &Platform,
    objective: CostFunction,
    alike: impl Fn(usize, usize) -> bool,
) -> Result<Vec<usize>> {
    let p = names.len();
    let distances = Distances::new(names, platform, objective)?;
    let mut around: Vec<Vec<&Border>> = vec![Vec::new(); p];
    for border in borders {
        around[border.from.0].push(border);
        around[border.to.0].push(border);
    }
    let mut places: Vec<usize> = (0..p).collect();
    let cost_of = |border: &Border, places: &[usize]| {
        border.vertices as f64 * distances.between(places[border.from.0], places[border.to.0])[1]
    };
    let all = |places: &[usize]| borders.iter().map(|border| cost_of(border, places)).sum::<f64>();
    let least = GAIN * finite(Cost::of(all(&places), 0.0))?.total;
    let near = |parts: [usize; 2], places: &[usize]| -> f64 {
        // A border between the two counts twice before and after.
        parts.iter().flat_map(|part| &around[*part]).map(|border| cost_of(border, places)).sum()
    };
    loop {
        let mut better = false;
        for one in 0..p {
            for other in one + 1..p {
                let owners = [places[one], places[other]];
                if !alike(owners[0], owners[1]) || distances.kind(owners[0]) == distances.kind(owners[1]) {
                    continue;
                }
                let before = near([one, other], &places);
                places.swap(one, other);
                match near([one, other], &places) < before - least {
                    true => better = true,
                    false => places.swap(one, other),
                }
            }
        }
        if !better {
            return Ok(places);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Rank;
    use crate::plan::arrange::{Pivots, every_objective};
    use crate::platform::parse_platform;
    use crate::random::Random;

    /// Four alike processors in two clusters, dealt in turn; the first two and the last two parts exchange much.
    #[test]
    fn parts_that_exchange_much_come_into_one_cluster() {
        let mut text = String::from("[network]\nbandwidth = \"10 MB/s\"\n");
        for (name, cluster) in [("a", "x"), ("b", "y"), ("c", "x"), ("d", "y")] {
            text += &format!("[[processor]]\nname = \"{name}\"\ncluster = \"{cluster}\"\n");
        }
        for cluster in ["x", "y"] {
            text += &format!("[[network.link]]\nbetween = [\"{cluster}\", \"{cluster}\"]\nbandwidth = 1e9\n");
        }
        let platform = parse_platform(&text, "p.toml").unwrap();
        let both =
            |a, b, vertices| [(a, b), (b, a)].map(|(a, b)| Border { from: Rank(a), to: Rank(b), vertices });
        let borders = [both(0, 1, 100), both(2, 3, 100), both(1, 2, 5)].concat();
        for objective in every_objective() {
            let places =
                arrange_borders(&borders, &platform.names(), &platform, objective, |_, _| true).unwrap();
            assert_eq!(places[0] % 2, places[1] % 2, "{objective:?} {places:?}");
            assert_eq!(places[2] % 2, places[3] % 2, "{objective:?} {places:?}");
            let fixed = arrange_borders(&borders, &platform.names(), &platform, objective, |_, _| false);
            assert_eq!(fixed.unwrap(), [0, 1, 2, 3]);
        }
    }

    /// Against the best of all exchanges of six processors, and never worse than before.
    #[test]
    fn exchanges_end_near_the_best() {
        let (mut random, mut best) = (Random::new(3), 0);
        for _ in 0..40 {
            let mut text = String::from("[network]\nbandwidth = \"10 MB/s\"\n");
            for i in 0..6 {
                text += &format!("[[processor]]\nname = \"p{i}\"\ncluster = \"c{}\"\n", random.below(3));
            }
            let platform = parse_platform(&text, "p.toml").unwrap();
            let mut borders = Vec::new();
            for (from, to) in (0..36).map(|pair| (pair / 6, pair % 6)).filter(|(from, to)| from != to) {
                let vertices = random.below(50) as u64;
                borders.push(Border { from: Rank(from), to: Rank(to), vertices });
            }
            let objective = CostFunction::Hops(Pivots::OneToAll);
            let distances = Distances::new(&platform.names(), &platform, objective).unwrap();
            let cost = |places: &[usize]| -> f64 {
                let one =
                    |b: &Border| b.vertices as f64 * distances.between(places[b.from.0], places[b.to.0])[1];
                borders.iter().map(one).sum()
            };
            let found =
                arrange_borders(&borders, &platform.names(), &platform, objective, |_, _| true).unwrap();
            let given: Vec<usize> = (0..6).collect();
            let mut least = f64::INFINITY;
            permutations(&mut given.clone(), 0, &mut |places| least = least.min(cost(places)));
            assert!(cost(&found) <= cost(&given));
            assert!(cost(&found) <= 1.2 * least, "{} {least}", cost(&found));
            best += usize::from(cost(&found) <= least);
        }
        // Exchanges of two alone end in the best of all more often than not.
        assert!(best > 20, "{best} of 40");
    }

    fn permutations(places: &mut Vec<usize>, fixed: usize, see: &mut dyn FnMut(&[usize])) {
        if fixed == places.len() {
            return see(places);
        }
        for next in fixed..places.len() {
            places.swap(fixed, next);
            permutations(places, fixed + 1, see);
            places.swap(fixed, next);
        }
    }
}
