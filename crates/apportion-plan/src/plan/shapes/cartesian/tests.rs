use super::alternate::{self, Depth, fit};
use super::*;
use crate::plan::Metrics;
use crate::random::Random;
use proptest::prelude::*;

fn cube(n: u64) -> Shape {
    Shape::new(n, n, n, "test").unwrap()
}

/// The largest area over speed of the layout, both relative to the whole.
fn imbalance(n: u64, weights: &[f64]) -> f64 {
    late(&Cartesian::default().layout(cube(n), weights).unwrap(), weights)
}

fn late(layout: &Layout, weights: &[f64]) -> f64 {
    let (sum, all) = (weights.iter().sum::<f64>(), layout.shape().elements() as f64);
    layout.shares().iter().zip(weights).map(|(&s, w)| s as f64 / all / (w / sum)).fold(0.0, f64::max)
}

/// Weights as the planner passes them: whole numbers of elements.
fn areas(n: u64, speeds: &[f64]) -> Vec<f64> {
    proportional(n * n, speeds).iter().map(|&s| s as f64).collect()
}

/// The exact optimum for a 2 x c grid of given speeds: at the optimum the tight cells connect all lines, so
/// that every choice of one tight row for each column, and one column for both rows, is tried.
fn two_rows(speeds: &[Vec<f64>]) -> f64 {
    let cols = speeds[0].len();
    let mut best = f64::INFINITY;
    for both in 0..cols {
        for mask in 0..1u32 << cols {
            let (h0, h1) = (speeds[0][both], speeds[1][both]);
            let w: Vec<f64> = (0..cols)
                .map(|j| if mask >> j & 1 == 0 { speeds[0][j] / h0 } else { speeds[1][j] / h1 })
                .collect();
            let fits = (0..cols).all(|j| {
                h0 * w[j] <= speeds[0][j] * (1.0 + 1e-12) && h1 * w[j] <= speeds[1][j] * (1.0 + 1e-12)
            });
            if fits {
                best = best.min(1.0 / ((h0 + h1) * w.iter().sum::<f64>()));
            }
        }
    }
    best
}

/// Every permutation, with the heights and widths of many alternations: slow, and right where alternations
/// are; the last processor's place is fixed by exchanging whole rows and columns.
fn every_arrangement(speeds: &[f64], Mesh { rows, cols }: Mesh) -> f64 {
    fn permute(cells: &mut Vec<usize>, from: usize, visit: &mut impl FnMut(&[usize])) {
        if from == cells.len() {
            return visit(cells);
        }
        for i in from..cells.len() {
            cells.swap(from, i);
            permute(cells, from + 1, visit);
            cells.swap(from, i);
        }
    }
    let mut best = f64::INFINITY;
    permute(&mut (0..speeds.len()).collect(), 1, &mut |cells| {
        best = best.min(fit(rows, cols, |i, j| speeds[cells[i * cols + j]], Depth::of(false)).0);
    });
    best
}

proptest! {
    #[test]
    fn fit_is_exact_for_two_rows(a in prop::collection::vec(0.2f64..5.0, 2..6), seed in 0.2f64..5.0) {
        let b: Vec<f64> = a.iter().rev().map(|x| x * seed + 0.3).collect();
        let speeds = vec![a, b];
        let (time, heights, widths) = fit(2, speeds[0].len(), |i, j| speeds[i][j], Depth::of(false));
        let optimum = two_rows(&speeds);
        prop_assert!(time >= optimum * (1.0 - 1e-9));
        prop_assert!(time <= optimum * (1.0 + 1e-9), "{} {}", time, optimum);
        let really = (0..2).flat_map(|i| (0..widths.len()).map(move |j| (i, j)))
            .map(|(i, j)| heights[i] * widths[j] / speeds[i][j]).fold(0.0, f64::max);
        prop_assert!((really - time).abs() < 1e-9 * time);
    }

    /// Rank one in any order, on 2 x 2 to 4 x 5: balanced but for whole rows and columns.
    #[test]
    fn rank_one_is_balanced_in_any_order(
        rows in 2usize..=4, more in 0usize..=2, seed in any::<u64>(), counted in any::<bool>(),
    ) {
        let Mesh { rows, cols } = Mesh::cheapest(rows * (rows + more), 7, 7);
        let mut random = Random::new(seed);
        let mut draw = |n: usize| (0..n).map(|_| 1.0 + (random.word() % 60) as f64 / 6.0).collect::<Vec<_>>();
        let (a, b) = (draw(rows), draw(cols));
        let mut weights: Vec<f64> = a.iter().flat_map(|x| b.iter().map(move |y| x * y)).collect();
        for i in (1..weights.len()).rev() {
            weights.swap(i, random.word() as usize % (i + 1));
        }
        let n = 100_000;
        let given = if counted { areas(n, &weights) } else { weights.clone() };
        let found = late(&Cartesian::default().layout(cube(n), &given).unwrap(), &weights);
        prop_assert!(found <= 1.002, "{} {:?}", found, weights);
    }

    /// Up to six processors: no permutation is better.
    #[test]
    fn no_arrangement_of_few_is_better(weights in prop::collection::vec(0.2f64..5.0, 4..=6)) {
        let mesh = Mesh::cheapest(weights.len(), 7, 7);
        let speeds = scaled(&weights);
        let sorted = descending(&weights);
        let given: Vec<usize> = (0..weights.len()).collect();
        let found = exact::best(&speeds, &given, &sorted, mesh, 1e-12).time;
        let oracle = every_arrangement(&speeds, mesh);
        prop_assert!(found <= oracle * (1.0 + 1e-9), "{} {}", found, oracle);
    }

    /// The arrangement is the same for every size of the matrix, equal speeds included.
    #[test]
    fn the_size_does_not_matter(speeds in prop::collection::vec(1u32..9, 4..=10)) {
        let speeds: Vec<f64> = speeds.into_iter().map(f64::from).collect();
        let owners = |n| -> Vec<usize> {
            Cartesian::default().layout(cube(n), &areas(n, &speeds)).unwrap().parts().iter().map(|p| p.owner.0).collect()
        };
        let first = owners(12_000);
        for n in [11_999, 1000, 5000, 50_000, 100_000] {
            prop_assert_eq!(owners(n), first.clone(), "{}", n);
        }
    }
}

/// Eight and nine processors: no permutation is better. A few draws, since 9! / 9 permutations are solved.
#[test]
fn no_arrangement_of_eight_or_nine_is_better() {
    let mut random = Random::new(7);
    for p in [8, 9] {
        let weights: Vec<f64> = (0..p).map(|_| 0.5 + (random.word() % 1000) as f64 / 200.0).collect();
        let mesh = Mesh::cheapest(p, 7, 7);
        let given: Vec<usize> = (0..p).collect();
        let found = exact::best(&scaled(&weights), &given, &descending(&weights), mesh, 1e-12);
        let oracle = every_arrangement(&scaled(&weights), mesh);
        assert!(found.time <= oracle * (1.0 + 1e-9), "{} {oracle}", found.time);
    }
}

/// Rank one in the order given, and in an order that sorting destroys; and one that used to change with the
/// size of the matrix.
#[test]
fn known_cases() {
    assert!((imbalance(12_000, &[6.0, 4.0, 2.0, 3.0, 2.0, 1.0]) - 1.0).abs() < 1e-12);
    let layout = Cartesian::default().layout(cube(12_000), &[6.0, 4.0, 2.0, 3.0, 2.0, 1.0]).unwrap();
    assert_eq!(layout.parts().iter().map(|p| p.owner.0).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    assert!(imbalance(1_000_000, &[1.0, 2.0, 3.0, 2.0, 4.0, 6.0, 3.0, 6.0, 9.0]) < 1.000_01);
    assert!(imbalance(1_000_000, &[1.0, 2.0, 5.0, 3.0, 6.0, 15.0, 7.0, 14.0, 35.0]) < 1.000_01);
    let erratic = [
        10.438819693914935,
        39.41321052526803,
        12.43373980863594,
        4.572528510107625,
        17.264215120672677,
        5.446365722303781,
        12.19425284479627,
        46.04109168112818,
        14.52464660552561,
    ];
    for n in [1000, 5000, 11_999, 12_000, 50_000, 100_000] {
        let found = late(&Cartesian::default().layout(cube(n), &areas(n, &erratic)).unwrap(), &erratic);
        assert!(found < 1.0 + 20.0 / n as f64, "{n}: {found}");
    }
}

#[test]
fn cuts_are_straight_and_cost_rows_plus_columns() {
    let shape = cube(100);
    for p in [12, 15] {
        let weights: Vec<f64> = (1..=p).map(f64::from).collect();
        let layout = Cartesian::default().layout(shape, &weights).unwrap();
        let Mesh { rows, cols } = Mesh::cheapest(p as usize, 100, 100);
        assert_eq!(Metrics::of_layout(&layout, 1.0).volume, Some((rows + cols - 2) as u64 * 100 * 100));
        let mut cuts: Vec<u64> = layout.parts().iter().map(|part| part.cols.start).collect();
        cuts.sort_unstable();
        cuts.dedup();
        assert_eq!(cuts.len(), cols);
        assert!(layout.shares()[0] < layout.shares()[p as usize - 1]);
    }
}

#[test]
fn awkward_inputs() {
    let dot = cube(1);
    assert_eq!(Cartesian::default().layout(dot, &[1.0; 6]).unwrap().shares().iter().sum::<u64>(), 1);
    assert_eq!(Cartesian::default().layout(dot, &[0.0, 3.0]).unwrap().shares(), [0, 1]);
    let shape = Shape::new(10, 10, 3, "test").unwrap();
    let shares = Cartesian::default().layout(shape, &[1.0, 1.0, 0.0, 1.0]).unwrap().shares();
    assert_eq!((shares[2], shares.iter().sum::<u64>()), (0, 30));
    let steep = Cartesian::default().layout(cube(100), &[1e300, 1e-300, 1.0, 1e150]).unwrap();
    assert_eq!(steep.shares().iter().sum::<u64>(), 10_000);
}

/// A mesh that is named is the one that is laid out.
#[test]
fn a_mesh_is_kept() {
    let layout = Cartesian { mesh: Some(Mesh::new(3, 2)), quick: false }.layout(cube(60), &[1.0; 6]).unwrap();
    assert_eq!(layout.shares(), [600; 6]);
    assert_eq!(layout.rects_by_owner()[1][0].cols.start, 30);
    assert_eq!(
        Cartesian { mesh: Some(Mesh::new(2, 2)), quick: false }
            .layout(cube(60), &[1.0; 6])
            .unwrap_err()
            .exit_code(),
        2
    );
}

/// The quick search loses less than 0.3 % of the time on the mean, and nothing up to 64 processors.
#[test]
fn the_quick_search_loses_little() {
    let mut random = Random::new(5);
    for side in [4usize, 8, 10, 16, 30] {
        let p = side * side;
        let mut ratios = 0.0;
        for _ in 0..10 {
            let weights: Vec<f64> = (0..p).map(|_| 50f64.powf(random.unit())).collect();
            let (speeds, sorted) = (scaled(&weights), descending(&weights));
            let given: Vec<usize> = (0..p).collect();
            let best = |quick| {
                alternate::best(&speeds, &given, &sorted, Mesh::new(side, side), 1e-9, Depth::of(quick)).time
            };
            ratios += best(true) / best(false) / 10.0;
        }
        assert!(ratios <= if p <= 64 { 1.0 + 1e-12 } else { 1.003 }, "{p}: {ratios}");
    }
}
