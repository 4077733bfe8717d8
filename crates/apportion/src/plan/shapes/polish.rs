//! Local improvement of a tiling: exchange processors, and change the proportions of blocks, while the cost
//! falls.

use super::tiling::{Tiling, Total};

/// Above this number of processors a tiling stays unchanged: exchanges are tried in pairs.
const MOST_PROCESSORS: usize = 64;

/// Maximum number of rounds over all pairs and blocks.
const MOST_ROUNDS: usize = 8;

/// Lowers the sum of half-perimeters (or the largest) on a `high` x `wide` rectangle until no exchange of two
/// processors and no change of one block's proportions reduces it, or for 8 rounds. O(p^3) per round, p
/// <= 64.
pub(super) fn polish(mut tiling: Tiling, weights: &[f64], high: f64, wide: f64, total: Total) -> Tiling {
    // `seats[i]` is the weight in the place that the tiling calls processor i.
    let mut owners = Vec::new();
    tiling.each(weights, high, wide, &mut |owner, _, _| owners.push(owner));
    if owners.len() > MOST_PROCESSORS {
        return tiling;
    }
    let mut seats = weights.to_vec();
    let mut who: Vec<usize> = (0..weights.len()).collect();
    let mut cost = tiling.cost(&seats, high, wide, total);
    for _ in 0..MOST_ROUNDS {
        let before = cost;
        for (i, &a) in owners.iter().enumerate() {
            for &b in &owners[i + 1..] {
                if seats[a] == seats[b] {
                    continue;
                }
                seats.swap(a, b);
                let new = tiling.cost(&seats, high, wide, total);
                if new < cost {
                    cost = new;
                    who.swap(a, b);
                } else {
                    seats.swap(a, b);
                }
            }
        }
        for step in [1.2, 1.0 / 1.2, 1.03, 1.0 / 1.03] {
            for block in 0..tiling.ratios().len() {
                while cost.is_finite() {
                    *tiling.ratios()[block] *= step;
                    let new = tiling.cost(&seats, high, wide, total);
                    if new >= cost {
                        *tiling.ratios()[block] /= step;
                        break;
                    }
                    cost = new;
                }
            }
        }
        if cost >= before * (1.0 - 1e-9) {
            break;
        }
    }
    tiling.renamed(&who)
}
