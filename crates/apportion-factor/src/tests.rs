//! Any division and engine gives the bytes of one processor, the three counts agree, and what is wrong is found.

use super::*;
use crate::local_columns::cut_columns;
use apportion::error::{Error, Result};
use apportion::geometry::Rank;
use apportion::job::{BlockedOptions, Context, Sources};
use apportion::kernels::{Kernel, Real, View, ViewMut, gemm};
use apportion::matrix::{AnyMatrix, Matrix, npy_header};
use apportion::plan::{Factors, TileMap};
use apportion::platform::{Platform, Speed};
use apportion::product::{Checkpoint, Fingerprint};
use apportion::record::{MixedRun, SolutionRun};
use apportion::run::{Monitor, Session, World};
use apportion::schedule::{Application, FactorSchedule};

/// Numbers in [-0.5, 0.5), the same on every machine.
fn value(i: u64) -> f64 {
    (i as f64 * 0.618_033_988_749_894_9).fract() - 0.5
}

/// A matrix; for Cholesky its lower triangle is that of a positive definite one, for L D L^T that of one with pivots of
/// one and two rows, exchanged in groups of four, and the rest is NaN.
pub(crate) fn matrix<T: Real>(factors: Factors, n: u64) -> Vec<T> {
    let element = |at: u64| {
        let (i, j) = (at / n, at % n);
        T::from_f64(match factors {
            Factors::Lu => value(at * 7 + i),
            _ if i < j => f64::NAN,
            Factors::Cholesky if i == j => n as f64,
            Factors::Ldlt if i == j && (i % 4 == 2 || i % 4 == 0 && i + 2 < n) => 0.0,
            Factors::Ldlt if i == j && i % 4 == 3 => -(n as f64),
            Factors::Ldlt if i == j || i % 4 == 2 && i == j + 2 => n as f64,
            Factors::Cholesky | Factors::Ldlt => value(at * 5),
        })
    };
    (0..n * n).map(element).collect()
}

/// The divisions of n rows that are tried.
pub(crate) fn divisions(factors: Factors, n: u64, block: u64) -> Vec<TileMap> {
    let count = n.div_ceil(block) as usize;
    let of = |p: usize, owner: &dyn Fn(usize) -> usize| {
        TileMap::columns(n, block, p, (0..count).map(|column| Rank(owner(column))).collect())
    };
    let columns = [
        of(1, &|_| 0),
        of(2, &|column| column % 2),
        of(3, &|column| [1, 1, 0, 1][column % 4]),
        of(4, &|column| (column * column / 2) % 4),
        of(count + 2, &|column| count - column),
    ];
    let panels = |columns: &TileMap, by: &dyn Fn(usize) -> usize| {
        columns.clone().factored_by((0..count).map(|column| Rank(by(column))).collect()).unwrap()
    };
    let taken_over = [
        panels(&columns[1], &|_| 0),
        panels(&columns[2], &|column| [0, 0, 1, 2, 1][column % 5]),
        panels(&columns[3], &|column| 3 - column % 2),
        panels(&columns[4], &|column| column % 2),
    ];
    let tiles = |p: usize, owner: &dyn Fn(usize, usize) -> usize| {
        TileMap::tiles(factors, n, block, p, |row, column| Rank(owner(row, column))).unwrap()
    };
    let tiles = [
        tiles(2, &|_, _| 1),
        tiles(2, &|row, _| row % 2),
        tiles(3, &|_, column| column % 3),
        tiles(4, &|row, column| row % 2 * 2 + column % 2),
        tiles(3, &|row, column| if column % 3 == 1 { 2 } else { row * row % 5 % 2 }),
        tiles(6, &|row, column| if column * column % 3 == 0 { row * 7 % 4 } else { 4 + row / 2 % 2 }),
        tiles(count + 1, &|row, _| count - row),
    ];
    columns.into_iter().chain(taken_over).chain(tiles).collect()
}

pub(crate) fn platform(processors: usize) -> Platform {
    Platform::from_speeds(&vec![1.0; processors]).unwrap()
}

/// Factors, and refuses wrong factors.
pub(crate) fn factor<T: Real>(
    schedule: &FactorSchedule,
    kernel: Kernel<T>,
    columns: Vec<LocalColumns<T>>,
    session: &Session<'_>,
) -> Result<FactorOutput<T>> {
    let output = factor::compute(schedule, kernel, columns, 1, session)?;
    output.check(schedule.factors(), session.world())?;
    Ok(output)
}

pub(crate) fn own<T: Real>(
    whole: &[T],
    blocks: &TileMap,
    ranks: std::ops::Range<usize>,
) -> Vec<LocalColumns<T>> {
    cut_columns(whole, blocks, ranks).unwrap()
}

pub(crate) fn on<T: Real>(
    whole: &[T],
    schedule: &FactorSchedule,
    kernel: Kernel<T>,
    world: &World,
    copies: bool,
) -> Result<FactorOutput<T>> {
    let p = schedule.processors();
    let (platform, monitor) = (platform(p), Monitor::new());
    let session = Session::new(world, &platform, &monitor, 1.0).copying(copies);
    factor(schedule, kernel, own(whole, schedule.blocks(), world.processors_here(p)), &session)
}

/// The factors as a whole matrix, and the pivots.
pub(crate) fn whole<T: Real>(columns: &[LocalColumns<T>]) -> Vec<u64> {
    let n = columns[0].n();
    let mut whole = vec![T::ZERO; n * n];
    columns.iter().for_each(|local| local.put(0, &mut whole));
    whole.iter().map(|x| x.to_f64().to_bits()).collect()
}

fn check_engines<T: Real>(factors: Factors, n: u64, block: u64) {
    let a: Vec<T> = matrix(factors, n);
    let (monitor, kernel) = (Monitor::new(), Kernel::plus_times());
    let mut wanted = None;
    for columns in divisions(factors, n, block) {
        let schedule = FactorSchedule::new(factors, columns.clone());
        for copies in [false, true] {
            let output = on(&a, &schedule, kernel, &World::solo(&monitor), copies).unwrap();
            assert!(output.residual.scaled < 1.0, "{factors} {n}: {:?}", output.residual);
            for (rank, lane) in output.trace.lanes.iter().enumerate() {
                let counted: u64 = lane.received.iter().sum();
                assert_eq!(counted, schedule.received()[rank], "{factors} {n} {copies}");
                let bytes = schedule.memory(Rank(rank)) * size_of::<T>() as u64;
                assert_eq!(lane.peak_bytes, bytes, "{factors} {n} {copies}: processor {rank} of {columns:?}");
            }
            let found = (whole(&output.columns), output.pivots);
            assert!(*wanted.get_or_insert(found.clone()) == found, "{factors} {n} by {columns:?}, {copies}");
        }
        let p = schedule.processors();
        let ranks = World::threads(p, &monitor, |world| {
            let output = on(&a, &schedule, kernel, world, false)?;
            Ok((output.columns, output.pivots, output.residual))
        });
        let ranks = ranks.unwrap();
        assert!(ranks.iter().all(|rank| rank.1 == ranks[0].1 && rank.2 == ranks[0].2));
        let columns: Vec<LocalColumns<T>> = ranks.iter().flat_map(|rank| rank.0.clone()).collect();
        assert!(wanted == Some((whole(&columns), ranks[0].1.clone())), "{factors} {n} on {p} ranks");
    }
}

#[test]
fn any_division_and_engine_gives_the_bytes_of_one_processor() {
    for factors in Factors::ALL {
        for (n, block) in [(1, 4), (3, 4), (16, 4), (37, 8), (150, 32), (211, 48)] {
            check_engines::<f64>(factors, n, block);
        }
        check_engines::<f32>(factors, 97, 16);
    }
}

/// Tiles of up to six processors, of whom some may have no tiles: block columns in random groups, and in each of these
/// block rows to random members.
fn random_grid(factors: Factors, n: u64, block: u64, random: &mut apportion::random::Random) -> TileMap {
    let (p, count) = (1 + random.word() as usize % 6, n.div_ceil(block) as usize);
    let groups = 1 + random.word() as usize % p;
    let group_of: Vec<usize> = (0..count).map(|_| random.word() as usize % groups).collect();
    // The members of a group are those whose remainder it is.
    let member = |group: usize, word: u64| {
        let members = (p - group).div_ceil(groups);
        Rank(group + groups * (word as usize % members))
    };
    let mut owners = || -> Vec<Vec<Rank>> {
        (0..groups).map(|group| (0..count).map(|_| member(group, random.word())).collect()).collect()
    };
    let owners = owners();
    TileMap::tiles(factors, n, block, p, |row, column| owners[group_of[column]][row]).unwrap()
}

/// Random matrices, whose pivots come from any processor, and those of other factors, in random grids.
#[test]
fn random_grids_give_the_bytes_of_block_columns() {
    let (mut random, monitor) = (apportion::random::Random::new(3), Monitor::new());
    for (n, block) in [(1, 4), (3, 4), (7, 1), (29, 4), (64, 8), (97, 32), (101, 10), (131, 7)] {
        // Pivots of L D L^T are in groups of four rows.
        let ldlt = (block % 4 == 0).then_some(Factors::Ldlt);
        for factors in [Factors::Lu; 6].into_iter().chain([Factors::Cholesky]).chain(ldlt) {
            let a: Vec<f64> = match factors {
                Factors::Lu => (0..n * n).map(|_| random.unit() - 0.5).collect(),
                _ => matrix(factors, n),
            };
            let world = World::solo(&monitor);
            let by = |blocks: TileMap| {
                let schedule = FactorSchedule::new(factors, blocks);
                let output = on(&a, &schedule, Kernel::plus_times(), &world, false).unwrap();
                for (rank, lane) in output.trace.lanes.iter().enumerate() {
                    assert_eq!(lane.received.iter().sum::<u64>(), schedule.received()[rank]);
                    assert_eq!(lane.peak_bytes, schedule.memory(Rank(rank)) * 8, "{rank}: {schedule:?}");
                }
                (whole(&output.columns), output.pivots)
            };
            let wanted = by(divisions(factors, n, block).remove(0));
            let tiles = random_grid(factors, n, block, &mut random);
            assert!(by(tiles.clone()) == wanted, "{n}: {tiles:?}");
            let far = |at: usize| wanted.1[at] as u64 / block > at as u64 / block;
            let is_far = || (0..n as usize).filter(|&at| far(at)).count() > n as usize / 3;
            assert!(n < 50 || factors != Factors::Lu || is_far());
        }
    }
}

/// Elements beyond the range of the type become infinite and then no numbers: these are the same and exchanged alike, too.
#[test]
fn overflows_in_a_grid_are_those_of_block_columns() {
    let (mut random, monitor, n) = (apportion::random::Random::new(5), Monitor::new(), 45);
    for scale in [1e307, 1e308, 1.7e308] {
        let a: Vec<f64> = (0..n * n).map(|_| (random.unit() - 0.5) * scale).collect();
        let by = |blocks: &TileMap| {
            let schedule = FactorSchedule::new(Factors::Lu, blocks.clone());
            let (platform, world) = (platform(blocks.processors()), World::solo(&monitor));
            let session = Session::new(&world, &platform, &monitor, 1.0);
            let own = own(&a, blocks, 0..blocks.processors());
            factor::compute(&schedule, Kernel::plus_times(), own, 1, &session)
                .map(|output| (whole(&output.columns), output.pivots))
                .map_err(|error| error.to_string())
        };
        let wanted = by(&divisions(Factors::Lu, n, 8)[0]);
        let is_finite = wanted.as_ref().unwrap().0.iter().all(|bits| f64::from_bits(*bits).is_finite());
        assert_eq!(is_finite, scale < 1e308);
        for _ in 0..4 {
            assert!(by(&random_grid(Factors::Lu, n, 8, &mut random)) == wanted, "{scale}: {wanted:?}");
        }
    }
}

#[test]
fn threads_share_a_panel_of_cholesky() {
    let (rows, width) = (300, 24);
    let whole: Vec<f64> = matrix(Factors::Cholesky, rows as u64);
    let panel: Vec<f64> = whole.chunks(rows).flat_map(|row| row[..width].to_vec()).collect();
    let by = |threads: usize, mut panel: Vec<f64>| {
        let failed = tile_kernels::cholesky_together(&mut panel, width, threads).unwrap();
        // What is above the diagonal is not specified.
        let known = |at: usize| at % width <= at / width;
        let bits = panel.iter().enumerate().filter(|(at, _)| known(*at)).map(|(_, x)| x.to_bits());
        (failed, bits.collect::<Vec<u64>>())
    };
    let one = by(1, panel.clone());
    assert_eq!(one.0, None);
    for threads in [2, 3, 50] {
        assert!(by(threads, panel.clone()) == one, "{threads} threads");
    }
    let mut bad = panel;
    bad[5 * width + 5] = -1.0;
    assert_eq!([1, 3].map(|threads| by(threads, bad.clone()).0), [Some(5); 2]);
}

/// Several threads for a processor share its updates.
#[test]
fn pools_give_the_same_bytes() {
    for factors in Factors::ALL {
        let (n, monitor) = (230, Monitor::new());
        let a: Vec<f64> = matrix(factors, n);
        for blocks in divisions(factors, n, 32).into_iter().filter(|blocks| blocks.processors() == 2) {
            let schedule = FactorSchedule::new(factors, blocks.clone());
            let by = |cores: &[usize]| {
                let mut platform = platform(2);
                platform.processors.iter_mut().for_each(|processor| processor.cores = cores.to_vec());
                let world = World::solo(&monitor);
                let session = Session::new(&world, &platform, &monitor, 1.0);
                let output =
                    factor(&schedule, Kernel::plus_times(), own(&a, &blocks, 0..2), &session).unwrap();
                (whole(&output.columns), output.pivots)
            };
            assert!(by(&[]) == by(&[0, 0, 0]), "{factors} by {blocks:?}");
        }
    }
}

/// The factors by one of the [`divisions`].
fn by(factors: Factors, a: &[f64], n: u64, block: u64, division: usize) -> Result<FactorOutput<f64>> {
    let schedule = FactorSchedule::new(factors, divisions(factors, n, block).remove(division));
    let monitor = Monitor::new();
    on(a, &schedule, Kernel::plus_times(), &World::solo(&monitor), false)
}

/// The residual of a small matrix is exact, by its definition.
#[test]
fn the_exact_residual_is_that_of_the_definition() {
    let n = 60_usize;
    let a: Vec<f64> = matrix(Factors::Lu, n as u64);
    let output = by(Factors::Lu, &a, n as u64, 16, 1).unwrap();
    let lu: Vec<f64> = whole(&output.columns).into_iter().map(f64::from_bits).collect();
    let mut rows: Vec<Vec<f64>> = a.chunks(n).map(<[f64]>::to_vec).collect();
    output.pivots.iter().enumerate().for_each(|(i, pivot)| rows.swap(i, *pivot as usize));
    let (mut squares, mut norm) = (0.0, 0.0);
    for i in 0..n {
        for j in 0..n {
            let lower = |p: usize| if p == i { 1.0 } else { lu[i * n + p] };
            let product: f64 = (0..=i.min(j)).map(|p| lower(p) * lu[p * n + j]).sum();
            squares += (rows[i][j] - product) * (rows[i][j] - product);
            norm += a[i * n + j] * a[i * n + j];
        }
    }
    let wanted = squares.sqrt() / (n as f64 * norm.sqrt() * f64::EPSILON / 2.0);
    let Residual { scaled, exact } = output.residual;
    assert!(exact && (scaled / wanted - 1.0).abs() < 0.2, "{scaled} instead of {wanted}");
}

/// The residual of L D L^T is exact too, by the loops of LAPACK's definition.
#[test]
fn the_exact_residual_of_ldlt_is_that_of_the_definition() {
    let n = 61_usize;
    // Its residual is much larger than the rounding errors of these loops.
    let a = indefinite(n as u64, 0);
    let output = by(Factors::Ldlt, &a, n as u64, 16, 1).unwrap();
    let found: Vec<f64> = whole(&output.columns).into_iter().map(f64::from_bits).collect();
    let pivots = &output.pivots;
    assert!(pivots.iter().any(|pivot| *pivot < 0) && pivots.iter().any(|pivot| *pivot >= 0));
    // P^T L, one pivot after the other, the last first, and D.
    let mut product = vec![vec![0.0; n]; n];
    (0..n).for_each(|i| product[i][i] = 1.0);
    let mut d = vec![vec![0.0; n]; n];
    let mut end = n;
    while end > 0 {
        let width = if pivots[end - 1] < 0 { 2 } else { 1 };
        let first = end - width;
        for j in first..end {
            for i in end..n {
                let factor = found[i * n + j];
                (0..n).for_each(|col| product[i][col] += factor * product[j][col]);
            }
            (first..end).for_each(|i| d[i][j] = found[i.max(j) * n + i.min(j)]);
        }
        let with = if width == 2 { -pivots[first] - 1 } else { pivots[first] };
        product.swap(end - 1, with as usize);
        assert!(with as usize / 16 == first / 16, "exchanges remain in their block");
        end = first;
    }
    let (mut squares, mut norm) = (0.0, 0.0);
    for i in 0..n {
        let row: Vec<f64> = (0..n).map(|q| (0..n).map(|p| product[i][p] * d[p][q]).sum()).collect();
        for j in 0..n {
            let again: f64 = (0..n).map(|q| row[q] * product[j][q]).sum();
            let x = a[i.max(j) * n + i.min(j)];
            squares += (again - x) * (again - x);
            norm += x * x;
            assert!(j <= i || found[i * n + j] == 0.0);
        }
    }
    let wanted = squares.sqrt() / (n as f64 * norm.sqrt() * f64::EPSILON / 2.0);
    let Residual { scaled, exact } = output.residual;
    assert!(exact && (scaled / wanted - 1.0).abs() < 0.2, "{scaled} instead of {wanted}");
}

/// Where the pivots of a diagonal block are small beside what is below it, the factors are refused, and a block that
/// has other pivots is enough.
#[test]
fn small_pivots_are_refused_and_said_to_be_the_cause() {
    let n = 24_u64;
    for (tiny, words) in
        [(1e-14, "pivots in the diagonal blocks are too small"), (0.0, "D(0, 0)"), (0.0, "rows 0 to 7")]
    {
        let element = |at: u64| if at / n < 8 { value(at * 5) * tiny } else { value(at * 5) };
        let a: Vec<f64> = (0..n * n).map(element).collect();
        let error = by(Factors::Ldlt, &a, n, 8, 1).unwrap_err();
        let said = error.to_string();
        assert!(said.contains(words) && said.contains("`kind = lu`") && error.exit_code() == 1, "{said}");
        assert!(by(Factors::Ldlt, &a, n, 24, 1).unwrap().residual.scaled < 1.0);
    }
}

/// A symmetric matrix of random numbers: a saddle point, with so many constraints, if there are any.
fn indefinite(n: u64, constraints: u64) -> Vec<f64> {
    let (mut random, free) = (apportion::random::Random::new(7), n - constraints);
    let mut element = |at: u64| match (at / n, at % n) {
        (i, j) if i == j && i < free && constraints > 0 => n as f64 / 4.0,
        (i, j) if i >= free && j >= free && constraints > 0 => 0.0,
        _ => random.unit() - 0.5,
    };
    (0..n * n).map(|at| if at % n <= at / n { element(at) } else { f64::NAN }).collect()
}

#[test]
fn saddle_points_are_factored_in_any_order() {
    let n = 200_u64;
    let a = indefinite(n, 60);
    let entry = |i: u64, j: u64| a[(i.max(j) * n + i.min(j)) as usize];
    let mixed = |at: u64| entry(at / n * 77 % n, at % n * 77 % n);
    for a in [a.clone(), (0..n * n).map(mixed).collect()] {
        for block in [16, 64, n] {
            let output = by(Factors::Ldlt, &a, n, block, 2).unwrap();
            assert!(output.residual.scaled < 5.0, "{block}: {:?}", output.residual);
        }
    }
}

/// Pivots that are too small for the factors are enough for a solution that is refined.
#[test]
fn refined_solutions_make_up_for_small_pivots() {
    let n = 100_usize;
    let lower = indefinite(n as u64, 0);
    let entry = |i: usize, j: usize| lower[i.max(j) * n + i.min(j)] * if i.max(j) < 16 { 1e-6 } else { 1.0 };
    let a: Vec<f64> = (0..n * n).map(|at| entry(at / n, at % n)).collect();
    let b: Vec<f64> = (0..n as u64).map(value).collect();
    let factor = FactorTask {
        sources: speeds(&[2.0, 1.0]),
        block: Some(16),
        ..FactorTask::new(Factors::Ldlt, MatrixSource::whole("a", Matrix::new(n, n, a.clone())))
    };
    let said = run(factor).err().unwrap().to_string();
    assert!(said.contains("pivots in the diagonal blocks are too small"), "{said}");
    let outcome = solve_system(Factors::Ldlt, (&a, &b), n, &[2.0, 1.0]).unwrap();
    let [before, after] = both_residuals(&outcome.report);
    assert!(
        outcome.factor.report.residual.scaled > MOST_SCALED && before > 1.0 && after < 1.0,
        "{before} {after}"
    );
}

/// A kernel with a defect: it adds a little to one element.
fn wrong<T: Real>(a: View<T>, b: View<T>, mut c: ViewMut<T>) {
    gemm(a, b, c.reborrow());
    if c.rows() > 0 && c.cols() > 0 {
        let x = &mut c.row(0)[0];
        *x = *x + T::from_f64(1e-3);
    }
}

#[test]
fn wrong_factors_are_found() {
    let monitor = Monitor::new();
    for factors in Factors::ALL {
        for n in [100, 300] {
            let a: Vec<f64> = matrix(factors, n);
            let schedule = FactorSchedule::new(factors, divisions(factors, n, 32).remove(1));
            let kernel = Kernel::plus_times().with_update(wrong);
            let error = on(&a, &schedule, kernel, &World::solo(&monitor), false).unwrap_err();
            assert!(matches!(error, Error::WrongResult { .. }) && error.exit_code() == 1, "{error}");
        }
    }
}

/// Elements beyond the range of squares do no harm to the check.
#[test]
fn large_and_small_elements_are_verified() {
    for factors in Factors::ALL {
        for scale in [1e200, 1e-200] {
            let a: Vec<f64> = matrix::<f64>(factors, 140).into_iter().map(|x| x * scale).collect();
            let output = by(factors, &a, 140, 32, 1).unwrap();
            assert!(output.residual.scaled < 1.0 && output.residual.scaled > 0.0, "{:?}", output.residual);
        }
    }
}

/// The error names the same index on every engine and division, and exit code 1.
#[test]
fn what_cannot_be_factored_is_named_by_its_index() {
    let (n, monitor) = (50, Monitor::new());
    for at in [0, 9, 33, 49] {
        let mut minor: Vec<f64> = matrix(Factors::Cholesky, n);
        minor[(at * n + at) as usize] = -1.0;
        let mut singular: Vec<f64> = matrix(Factors::Lu, n);
        (0..n).for_each(|i| singular[(i * n + at) as usize] = 0.0);
        let mut without = vec![0.0; (n * n) as usize];
        (0..n).filter(|i| *i != at).for_each(|i| without[(i * n + i) as usize] = value(i * 3 + 1));
        for (factors, a, words) in [
            (Factors::Cholesky, minor, format!("leading minor of order {}", at + 1)),
            (Factors::Lu, singular, format!("U({at}, {at})")),
            (Factors::Ldlt, without, format!("D({at}, {at})")),
        ] {
            for columns in divisions(factors, n, 8) {
                let schedule = FactorSchedule::new(factors, columns);
                let world = World::solo(&monitor);
                let error = on(&a, &schedule, Kernel::plus_times(), &world, false).unwrap_err();
                assert!(error.to_string().contains(&words) && error.exit_code() == 1, "{error}");
                let ranks = World::threads(schedule.processors(), &monitor, |world| {
                    Ok(on(&a, &schedule, Kernel::plus_times(), world, false).unwrap_err().to_string())
                });
                assert!(ranks.unwrap().iter().all(|said| said.contains(&words)));
            }
        }
    }
}

fn speeds(gigaflops: &[f64]) -> Sources {
    let speeds: Vec<Speed> = gigaflops.iter().map(|speed| Speed::Flops(speed * 1e9)).collect();
    let platform = apportion::job::with_speeds(None, &speeds).unwrap();
    Sources { platform: Some(platform), ..Sources::default() }
}

fn run(task: FactorTask) -> Result<FactorOutcome> {
    let monitor = Monitor::new();
    let world = World::solo(&monitor);
    factor_matrix(task, Context::silent(&world, &monitor))
}

/// From a file in either order, and from memory: the same factors.
#[test]
fn files_in_either_order_and_memory_give_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let n = 75;
    let a: Vec<f64> = matrix(Factors::Lu, n);
    let turned: Vec<f64> = (0..n * n).map(|at| a[(at % n * n + at / n) as usize]).collect();
    let write = |name: &str, elements: &[f64], fortran: bool| {
        let mut bytes = npy_header::<f64>(&[n as usize; 2], false);
        if fortran {
            let text = String::from_utf8_lossy(&bytes[10..]).replace("False", "True ");
            bytes.splice(10.., text.bytes());
        }
        bytes.extend(elements.iter().flat_map(|x| x.to_le_bytes()));
        let path = directory.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        MatrixSource::File(path)
    };
    let sources = [
        MatrixSource::whole("a", Matrix::new(n as usize, n as usize, a.clone())),
        write("c.npy", &a, false),
        write("f.npy", &turned, true),
    ];
    let mut wanted = None;
    for (i, source) in sources.into_iter().enumerate() {
        let (output, pivots) = (directory.path().join("lu.npy"), directory.path().join("p.npy"));
        let task = FactorTask {
            output: Some(output.clone()),
            pivots: Some(pivots.clone()),
            sources: speeds(&[3.0, 1.0]),
            ..FactorTask::new(Factors::Lu, source)
        };
        let outcome = run(task).unwrap();
        assert_eq!(outcome.files.len(), 2);
        apportion::output::OutputFile::commit_all(outcome.files).unwrap();
        let found = (std::fs::read(output).unwrap(), std::fs::read(pivots).unwrap());
        assert!(*wanted.get_or_insert(found.clone()) == found, "source {i}");
        let whole = outcome.columns.into_whole::<f64>().unwrap();
        let bytes: Vec<u8> = whole.iter().flat_map(|x| x.to_le_bytes()).collect();
        assert!(found.0.ends_with(&bytes));
    }
}

#[test]
fn what_is_no_matrix_to_factor_is_refused() {
    let of = |matrix: AnyMatrix, factors| {
        let a = MatrixSource::memory("a", matrix);
        run(FactorTask { sources: speeds(&[1.0]), ..FactorTask::new(factors, a) }).unwrap_err()
    };
    let square = |x: f64| AnyMatrix::F64(Matrix::from([[1.0, x], [0.0, 1.0]]));
    for (error, words) in [
        (of(AnyMatrix::F64(Matrix::from([[1.0, 2.0]])), Factors::Lu), "1 x 2, not square"),
        (of(AnyMatrix::I32(Matrix::from([[1]])), Factors::Lu), "holds i32"),
        (of(square(f64::NAN), Factors::Lu), "element (0, 1), counted from 0, is NaN"),
        (of(square(f64::INFINITY), Factors::Lu), "is inf"),
    ] {
        assert!(error.to_string().contains(words) && error.exit_code() == 2, "{error}");
    }
    // The upper triangle of a symmetric matrix may be zero, and nothing else.
    for factors in [Factors::Cholesky, Factors::Ldlt] {
        let said = of(square(f64::NAN), factors).to_string();
        assert!(
            said.contains("is not symmetric: element (1, 0)") && said.contains("(0, 1) is NaN"),
            "{said}"
        );
        let lower = Matrix::from([[1.0, 0.0], [0.5, 1.0]]);
        let a = MatrixSource::memory("a", AnyMatrix::F64(lower));
        assert!(run(FactorTask { sources: speeds(&[1.0]), ..FactorTask::new(factors, a) }).is_ok());
    }
}

fn solution(task: SolveTask) -> Result<SolveOutcome> {
    let monitor = Monitor::new();
    let world = World::solo(&monitor);
    solve_matrix(task, Context::silent(&world, &monitor))
}

/// A whole matrix, symmetric but for LU, and right-hand sides.
fn system(factors: Factors, n: u64, sides: u64) -> (Vec<f64>, Vec<f64>) {
    let mut a: Vec<f64> = matrix(factors, n);
    if factors.is_symmetric() {
        for at in 0..n * n {
            let (i, j) = (at / n, at % n);
            if i < j {
                a[at as usize] = a[(j * n + i) as usize];
            }
        }
    }
    (a, (0..n * sides).map(|i| value(i * 3 + 1)).collect())
}

fn system_task(factors: Factors, (a, b): (&[f64], &[f64]), n: usize, gigaflops: &[f64]) -> SolveTask {
    let source = |elements: &[f64], cols| MatrixSource::whole("m", Matrix::new(n, cols, elements.to_vec()));
    let factor =
        FactorTask { sources: speeds(gigaflops), block: Some(16), ..FactorTask::new(factors, source(a, n)) };
    SolveTask::new(factor, source(b, b.len() / n))
}

fn solve_system(
    factors: Factors,
    matrices: (&[f64], &[f64]),
    n: usize,
    gigaflops: &[f64],
) -> Result<SolveOutcome> {
    solution(system_task(factors, matrices, n, gigaflops))
}

#[test]
fn solutions_fulfil_their_systems() {
    for factors in Factors::ALL {
        for (n, sides) in [(1, 1), (5, 3), (61, 1), (61, 90), (150, 19), (150, 300)] {
            let (a, b) = system(factors, n as u64, sides as u64);
            let outcome = solve_system(factors, (&a, &b), n, &[3.0, 1.0, 2.0]).unwrap();
            let x = outcome.x.elements::<f64>().unwrap();
            let largest = x.iter().fold(1.0, |most: f64, x| most.max(x.abs()));
            for (i, side) in (0..n).flat_map(|i| (0..sides).map(move |side| (i, side))) {
                let product: f64 = (0..n).map(|j| a[i * n + j] * x[j * sides + side]).sum();
                let off = (product - b[i * sides + side]).abs();
                assert!(off < 1e-13 * n as f64 * largest, "{factors} {n}: {off} at ({i}, {side})");
            }
            let [before, after] = both_residuals(&outcome.report);
            assert!(after <= before && after < 1.0, "{factors} {n}: {before} {after}");
            let steps = outcome.report.refinement_steps;
            assert!(steps == 1 || (factors == Factors::Ldlt && steps > 1), "{factors} {n}: {steps} steps");
        }
    }
}

/// The data are in range, and so are all steps between: elements of 1e-200, and solutions of 1e200, with few and with
/// many right-hand sides.
#[test]
fn small_matrices_have_large_solutions() {
    for (factors, sides) in
        Factors::ALL.into_iter().flat_map(|factors| [1, 3, 17, 40].map(|sides| (factors, sides)))
    {
        let n = 30;
        let (a, b) = system(factors, n as u64, sides);
        for size in [2_f64.powi(-664), 2_f64.powi(664)] {
            let scaled: Vec<f64> = a.iter().map(|x| x * size).collect();
            let [wanted, found] =
                [&a, &scaled].map(|a| solve_system(factors, (a, &b), n, &[2.0, 1.0]).unwrap());
            let [wanted, found] = [&wanted, &found].map(|outcome| outcome.x.elements::<f64>().unwrap());
            let largest = wanted.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
            let near = |(x, y): (&f64, &f64)| (x - y * size).abs() <= 1e-11 * largest;
            assert!(wanted.iter().zip(found).all(near), "{factors}, {sides} sides, {size:e}");
        }
    }
}

/// The exact sum of two doubles, and the exact product.
fn two_sum(x: f64, y: f64) -> [f64; 2] {
    let sum = x + y;
    let of_y = sum - x;
    [sum, (x - (sum - of_y)) + (y - of_y)]
}

/// The Frobenius norm of P A - L U, by sums of two doubles: an error of 2^-100 of its terms.
fn exact_residual(a: &[f64], output: &FactorOutput<f64>, n: usize) -> f64 {
    let lu: Vec<f64> = whole(&output.columns).into_iter().map(f64::from_bits).collect();
    let mut rows: Vec<usize> = (0..n).collect();
    output.pivots.iter().enumerate().for_each(|(i, pivot)| rows.swap(i, *pivot as usize));
    let element = |i: usize, j: usize| {
        let mut sum = [-a[rows[i] * n + j], 0.0];
        for p in 0..=i.min(j) {
            let (l, u) = (if p == i { 1.0 } else { lu[i * n + p] }, lu[p * n + j]);
            let product = l * u;
            let [high, low] = two_sum(sum[0], product);
            sum = two_sum(high, sum[1] + low + l.mul_add(u, -product));
        }
        sum[0]
    };
    (0..n * n).map(|at| element(at / n, at % n).powi(2)).sum::<f64>().sqrt()
}

/// Wilkinson's matrix, whose factors are exact while U grows to 2^59, and one like it, whose factors are as inaccurate
/// as such growth makes them: neither is wrong, but an error beyond that is.
#[test]
fn growth_is_no_wrong_result() {
    let (n, monitor) = (60, Monitor::new());
    let world = World::solo(&monitor);
    for noise in [0.0, 1e-3] {
        let element = |at: usize| match (at / n, at % n) {
            (i, j) if i == j || j == n - 1 => 1.0,
            (i, j) if i > j => -1.0 + noise * value(at as u64).abs(),
            _ => 0.0,
        };
        let a: Vec<f64> = (0..n * n).map(element).collect();
        let schedule = FactorSchedule::new(Factors::Lu, divisions(Factors::Lu, n as u64, 16).remove(1));
        let output = on(&a, &schedule, Kernel::plus_times(), &world, false).unwrap();
        output.check(Factors::Lu, &world).unwrap();
        let exact = exact_residual(&a, &output, n);
        assert!(noise > 0.0 || exact == 0.0, "{exact}");
        let upper = |at: &usize| at / n <= at % n;
        let lu: Vec<f64> = whole(&output.columns).into_iter().map(f64::from_bits).collect();
        let size = (0..n * n).filter(upper).map(|at| lu[at] * lu[at]).sum::<f64>().sqrt() / 64.0;
        let scaled = exact / (n as f64 * size * f64::EPSILON / 2.0);
        assert!(
            size > 1e12 && scaled < 3.0 && (output.residual.scaled - scaled).abs() < 3.0,
            "{scaled} {:?}",
            output.residual
        );
        let wrong = Kernel::plus_times().with_update(|a, b, mut c| {
            gemm(a, b, c.reborrow());
            if c.rows() > 0 && c.cols() > 0 {
                let last = c.cols() - 1;
                c.row(0)[last] *= 1.001;
            }
        });
        let error =
            on(&a, &schedule, wrong, &world, false).and_then(|output| output.check(Factors::Lu, &world));
        assert!(matches!(error, Err(Error::WrongResult { .. })), "{error:?}");
    }
}

/// A block column that was wrong when it was kept is found, and computed again.
#[test]
fn a_checkpoint_with_a_wrong_block_column_recovers() {
    let n = 150;
    for factors in Factors::ALL {
        let (a, _) = system(factors, n, 1);
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let mut bytes = npy_header::<f64>(&[n as usize; 2], false);
        bytes.extend(a.iter().flat_map(|x| x.to_le_bytes()));
        std::fs::write(path("a.npy"), bytes).unwrap();
        let task = |output: &str, slabs: BlockedOptions| FactorTask {
            output: Some(path(output)),
            block: Some(16),
            sources: speeds(&[2.0, 1.0]),
            slabs,
            ..FactorTask::new(factors, MatrixSource::File(path("a.npy")))
        };
        let done = |task: FactorTask| {
            let outcome = run(task)?;
            apportion::output::OutputFile::commit_all(outcome.files)?;
            Ok::<_, Error>(outcome.slabs.unwrap().resumed)
        };
        let kept = Some(path("kept"));
        done(task("one.npy", BlockedOptions { checkpoint: kept.clone(), ..BlockedOptions::default() }))
            .unwrap();
        // As a run with a defect would have kept it: with a name that fits its elements.
        let manifest = std::fs::read_to_string(path("kept/checkpoint.json")).unwrap();
        let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
        let inputs = manifest["inputs"].as_array().unwrap().clone();
        let identity = Fingerprint { work: "factorisation", inputs, settings: manifest["settings"].clone() };
        let (checkpoint, _) = Checkpoint::open(&path("kept"), &identity).unwrap();
        let names = std::fs::read_dir(path("kept")).unwrap().map(|entry| entry.unwrap().path());
        let panel = names.into_iter().find(|path| path.to_string_lossy().contains("panel-000006-")).unwrap();
        let AnyMatrix::F64(mut record) = apportion::matrix::read_matrix(&panel).unwrap() else {
            panic!("doubles")
        };
        let last = record.cols() - 1;
        record.as_mut_slice()[last] += 1e-3;
        std::fs::remove_file(panel).unwrap();
        checkpoint.save(6, &record).unwrap();
        drop(checkpoint);
        let resume = BlockedOptions { resume: kept, ..BlockedOptions::default() };
        assert_eq!(
            done(task("two.npy", resume.clone())).unwrap(),
            6,
            "{factors}: right of it all is computed again"
        );
        let [one, two] = ["one.npy", "two.npy"].map(|name| std::fs::read(path(name)).unwrap());
        assert!(one == two, "{factors}");
        assert_eq!(done(task("two.npy", resume)).unwrap(), 10, "{factors}");
    }
}

/// The step of refinement may make solutions of nearly singular systems worse: then it is not taken.
#[test]
fn refinement_never_makes_a_solution_worse() {
    let mut improved = 0;
    for n in 3..16 {
        let hilbert: Vec<f64> = (0..n * n).map(|at| 1.0 / (at / n + at % n + 1) as f64).collect();
        for seed in 0..4 {
            let b: Vec<f64> = (0..n).map(|i| value((i * 5 + seed) as u64)).collect();
            let report = solve_system(Factors::Lu, (&hilbert, &b), n, &[1.0]).unwrap().report;
            let [before, after] = both_residuals(&report);
            assert!(after <= before && report.refinement_steps == 1, "{n} {seed}: {before} {after}");
            improved += usize::from(after < before);
        }
    }
    assert!(improved > 0);
}

/// The estimate is at most the condition number, and seldom below a third of it.
#[test]
fn conditions_are_estimated_from_below() {
    let n = 40;
    for factors in Factors::ALL {
        let (mut a, _) = system(factors, n as u64, 1);
        // Otherwise LU's is singular but for rounding, and has no inverse to compare with.
        (0..n).for_each(|i| a[i * n + i] += 1.0);
        let identity: Vec<f64> = (0..n * n).map(|i| f64::from(u8::from(i % (n + 1) == 0))).collect();
        let outcome = solve_system(factors, (&a, &identity), n, &[1.0, 1.0]).unwrap();
        let inverse = outcome.x.elements::<f64>().unwrap();
        let norm = |a: &[f64]| {
            let column = |j: usize| (0..n).map(|i| a[i * n + j].abs()).sum::<f64>();
            (0..n).map(column).fold(0.0, f64::max)
        };
        let wanted = norm(&a) * norm(inverse);
        let ratio = outcome.report.condition / wanted;
        assert!((0.3..1.000_001).contains(&ratio), "{factors}: {ratio}");
    }
}

/// Ranks give the bytes of threads, by the same plan: with few right-hand sides, for which unknowns travel, and with
/// many, for which block columns do.
#[test]
fn solutions_on_ranks_are_those_of_threads() {
    let (n, monitor) = (90, Monitor::new());
    for (factors, sides) in Factors::ALL.into_iter().flat_map(|factors| [1, 4, 7, 70].map(|r| (factors, r))) {
        let (a, b) = system(factors, n as u64, sides as u64);
        for gigaflops in [&[3.0, 1.0][..], &[1.0, 1e-6, 5.0, 2.0]] {
            let threads = solve_system(factors, (&a, &b), n, gigaflops).unwrap();
            let ranks = World::threads(gigaflops.len(), &monitor, |world| {
                let outcome = solve_matrix(
                    system_task(factors, (&a, &b), n, gigaflops),
                    Context::silent(world, &monitor),
                )?;
                Ok((outcome.x, both_residuals(&outcome.report), outcome.report.condition))
            });
            for (x, residuals, condition) in ranks.unwrap() {
                assert!(x == threads.x, "{factors} {sides} {gigaflops:?}");
                assert_eq!(
                    (residuals, condition),
                    (both_residuals(&threads.report), threads.report.condition)
                );
            }
        }
    }
}

/// A right-hand side has the solution that it has alone, and in singles, as far as the matrix's condition allows.
#[test]
fn right_hand_sides_do_not_know_each_other() {
    let (n, sides) = (130, 64);
    for factors in [Factors::Cholesky, Factors::Lu] {
        let (a, b) = system(factors, n as u64, sides as u64);
        let all = solve_system(factors, (&a, &b), n, &[2.0, 1.0]).unwrap();
        let condition = all.report.condition;
        let all = all.x.elements::<f64>().unwrap();
        let near = |x: f64, y: f64, eps: f64| (x - y).abs() <= 100.0 * condition * eps * y.abs().max(1.0);
        for side in [0, 31, 63] {
            let one: Vec<f64> = b.iter().skip(side).step_by(sides).copied().collect();
            let one = solve_system(factors, (&a, &one), n, &[2.0, 1.0]).unwrap();
            let mut both = one.x.elements::<f64>().unwrap().iter().zip(all.iter().skip(side).step_by(sides));
            assert!(both.all(|(x, y)| near(*x, *y, f64::EPSILON)), "{factors} {side}");
        }
        let single = |x: &[f64], cols| {
            let elements = x.iter().map(|x| *x as f32).collect();
            MatrixSource::memory("m", AnyMatrix::F32(Matrix::new(n, cols, elements)))
        };
        let factor = FactorTask { sources: speeds(&[2.0, 1.0]), ..FactorTask::new(factors, single(&a, n)) };
        let found = solution(SolveTask::new(factor, single(&b, sides))).unwrap();
        let mut both = found.x.elements::<f32>().unwrap().iter().zip(all);
        assert!(both.all(|(x, y)| near(f64::from(*x), *y, f64::from(f32::EPSILON))), "{factors}");
    }
}

/// The largest scaled residual before refinement and after it.
fn both_residuals(report: &SolutionRun) -> [f64; 2] {
    [report.residual_before_refinement, report.residual]
}

fn mixed(factors: Factors, a: &[f64], b: &[f64], n: usize) -> Result<SolveOutcome> {
    solution(SolveTask { mixed: true, ..system_task(factors, (a, b), n, &[3.0, 1.0]) })
}

fn near(found: &SolveOutcome, wanted: &SolveOutcome, within: f64) -> bool {
    let [found, wanted] = [found, wanted].map(|one| one.x.elements::<f64>().unwrap());
    let size = wanted.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    found.iter().zip(wanted).all(|(x, y)| (x - y).abs() <= within * size)
}

/// Single precision and some steps give what double precision gives, whatever the size of the elements.
#[test]
fn mixed_precision_solves_well_conditioned_systems() {
    let n = 120;
    for factors in [Factors::Cholesky, Factors::Lu] {
        for (sides, size) in [(1, 1.0), (40, 1.0), (3, 1e300), (3, 1e-300)] {
            let (mut a, b) = system(factors, n as u64, sides);
            (0..n).for_each(|i| a[i * n + i] += 30.0);
            let a: Vec<f64> = a.into_iter().map(|x| x * size).collect();
            let found = mixed(factors, &a, &b, n).unwrap();
            let MixedRun { steps, why: failure, .. } = found.report.mixed.clone().unwrap();
            assert!(
                failure.is_none() && (1..=6).contains(&steps),
                "{factors} {sides} {size}: {steps} {failure:?}"
            );
            assert_eq!((found.factor.report.element, found.factor.report.element_bytes), ("f32", 4));
            let [before, after] = both_residuals(&found.report);
            assert!(before > 1e3 * after && after <= 1.0 / (n as f64).sqrt(), "{before} {after}");
            let plain = solve_system(factors, (&a, &b), n, &[3.0, 1.0]).unwrap();
            assert!(plain.report.mixed.is_none() && near(&found, &plain, 1e-10), "{factors} {sides} {size}");
        }
    }
}

/// Of factors in single precision as well, whose own inverse is up to a tenth larger than the matrix's here.
#[test]
fn conditions_of_mixed_precision_are_estimated_from_below() {
    let n = 12;
    let identity: Vec<f64> = (0..n * n).map(|i| f64::from(u8::from(i % (n + 1) == 0))).collect();
    let norm = |a: &[f64]| {
        let column = |j: usize| (0..n).map(|i| a[i * n + j].abs()).sum::<f64>();
        (0..n).map(column).fold(0.0, f64::max)
    };
    let mut solved = 0;
    for (factors, shift) in [Factors::Cholesky, Factors::Lu]
        .into_iter()
        .flat_map(|factors| [3e-7, 5e-7, 1e-6, 2e-6, 3e-6, 1e-5].map(|shift| (factors, shift)))
    {
        let mut a: Vec<f64> = (0..n * n).map(|at| 1.0 / (at / n + at % n + 1) as f64).collect();
        (0..n).for_each(|i| a[i * n + i] += shift);
        let found = mixed(factors, &a, &identity, n).unwrap();
        solved += usize::from(!found.report.mixed.unwrap().fell_back);
        let exact = solve_system(factors, (&a, &identity), n, &[1.0, 1.0]).unwrap();
        let ratio = found.report.condition / (norm(&a) * norm(exact.x.elements::<f64>().unwrap()));
        assert!((0.3..1.000_1).contains(&ratio), "{factors} {shift}: {ratio}");
    }
    assert!(solved > 3, "{solved}");
}

/// Ill-conditioned matrices, and those whose elements are zero or infinite in single precision, are solved in double
/// precision, to the bytes that this gives without a first attempt.
#[test]
fn mixed_precision_falls_back_to_double() {
    let n = 11;
    let hilbert: Vec<f64> = (0..n * n).map(|at| 1.0 / (at / n + at % n + 1) as f64).collect();
    let b: Vec<f64> = (0..n).map(|i| value(i as u64)).collect();
    // Rows and columns of sizes from 1 to 1e-100, of a symmetric matrix.
    let graded: Vec<f64> = (0..n * n)
        .map(|at| {
            let (i, j) = (at / n, at % n);
            let x = if i == j { 2.0 } else { 0.1 };
            x * 10_f64.powi(-5 * (i + j) as i32)
        })
        .collect();
    for (factors, a, words) in [
        (Factors::Lu, &hilbert, "step"),
        (Factors::Cholesky, &hilbert, "in f32, the matrix is not positive definite"),
        (Factors::Lu, &graded, "in f32, the matrix is singular"),
        (Factors::Cholesky, &graded, "in f32, the matrix is not positive definite"),
    ] {
        let found = mixed(factors, a, &b, n).unwrap();
        let MixedRun { steps, why: failure, .. } = found.report.mixed.clone().unwrap();
        let why = failure.expect("single precision does not do");
        assert!(why.contains(words) && !why.contains('\n'), "{factors}: {why}");
        assert!(words != "step" || steps > 0);
        let plain = solve_system(factors, (a, &b), n, &[3.0, 1.0]).unwrap();
        assert!(
            found.x == plain.x && both_residuals(&found.report) == both_residuals(&plain.report),
            "{factors}"
        );
        assert_eq!(found.factor.report.element, "f64");
        assert!(found.factor.report.forecast_seconds.is_none());
    }
}

#[test]
fn mixed_precision_gives_the_same_bytes_on_ranks() {
    let (n, monitor) = (90, Monitor::new());
    let graded: Vec<f64> =
        (0..n * n).map(|at| if at % (n + 1) == 0 { 10_f64.powi(-(at as i32 % 90)) } else { 0.0 }).collect();
    for (factors, sides) in
        [(Factors::Cholesky, 2), (Factors::Cholesky, 70), (Factors::Lu, 2), (Factors::Lu, 70)]
    {
        let (mut a, b) = system(factors, n as u64, sides);
        (0..n).for_each(|i| a[i * n + i] += 30.0);
        for a in [&a, &graded] {
            let threads = mixed(factors, a, &b, n).unwrap();
            let ranks = World::threads(2, &monitor, |world| {
                let task = system_task(factors, (a, &b), n, &[3.0, 1.0]);
                let outcome =
                    solve_matrix(SolveTask { mixed: true, ..task }, Context::silent(world, &monitor))?;
                Ok((outcome.x, both_residuals(&outcome.report), outcome.report.mixed.unwrap()))
            });
            let MixedRun { steps, fell_back, .. } = threads.report.mixed.clone().unwrap();
            for (x, residuals, mixed) in ranks.unwrap() {
                assert!(x == threads.x && residuals == both_residuals(&threads.report), "{factors} {sides}");
                assert_eq!((mixed.steps, mixed.fell_back), (steps, fell_back));
            }
        }
    }
}

#[test]
fn mixed_precision_is_for_doubles() {
    let single = |cols| MatrixSource::memory("m", AnyMatrix::F32(Matrix::new(2, cols, vec![1.0; 2 * cols])));
    let factor = FactorTask { sources: speeds(&[1.0]), ..FactorTask::new(Factors::Lu, single(2)) };
    let error = solution(SolveTask { mixed: true, ..SolveTask::new(factor, single(1)) }).unwrap_err();
    assert!(error.to_string().contains("is for doubles") && error.exit_code() == 2, "{error}");
}

#[test]
fn right_hand_sides_that_do_not_fit_are_refused() {
    let a = [2.0, 0.0, 0.0, 2.0];
    for (b, words) in [
        (Matrix::from([[1.0], [2.0], [3.0]]), "is 3 x 1, but the matrix has 2 rows"),
        (Matrix::from([[1.0], [f64::NAN]]), "element (1, 0), counted from 0, is not finite"),
    ] {
        let factor = FactorTask {
            sources: speeds(&[1.0]),
            ..FactorTask::new(Factors::Lu, MatrixSource::whole("a", Matrix::new(2, 2, a.to_vec())))
        };
        let error = solution(SolveTask::new(factor, MatrixSource::whole("b", b))).unwrap_err();
        assert!(error.to_string().contains(words) && error.exit_code() == 2, "{error}");
    }
}
