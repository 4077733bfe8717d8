//! Any division and engine gives the bytes of one processor, the three counts agree, and what is wrong is found.

use super::*;
use apportion::error::{Error, Result};
use apportion::geometry::Rank;
use apportion::job::{Context, Sources};
use apportion::kernels::{Kernel, Real, View, ViewMut, gemm};
use apportion::matrix::{AnyMatrix, Matrix, npy_header};
use apportion::plan::{BlockColumns, Factors};
use apportion::platform::{Platform, Speed};
use apportion::run::{Monitor, Session, World};
use apportion::schedule::{Application, FactorSchedule};

/// Numbers in [-0.5, 0.5), the same on every machine.
fn value(i: u64) -> f64 {
    (i as f64 * 0.618_033_988_749_894_9).fract() - 0.5
}

/// A matrix; for Cholesky its lower triangle is that of a positive definite one, and the rest is NaN.
fn matrix<T: Real>(factors: Factors, n: u64) -> Vec<T> {
    let element = |at: u64| {
        let (i, j) = (at / n, at % n);
        T::from_f64(match factors {
            Factors::Lu => value(at * 7 + i),
            Factors::Cholesky if i == j => n as f64,
            Factors::Cholesky if i < j => f64::NAN,
            Factors::Cholesky => value(at * 5),
        })
    };
    (0..n * n).map(element).collect()
}

/// The divisions of n columns that are tried.
fn divisions(n: u64, block: u64) -> Vec<BlockColumns> {
    let count = n.div_ceil(block) as usize;
    let of = |p: usize, owner: &dyn Fn(usize) -> usize| {
        BlockColumns::new(n, block, p, (0..count).map(|column| Rank(owner(column))).collect())
    };
    vec![
        of(1, &|_| 0),
        of(2, &|column| column % 2),
        of(3, &|column| [1, 1, 0, 1][column % 4]),
        of(4, &|column| (column * column / 2) % 4),
        of(count + 2, &|column| count - column),
    ]
}

fn platform(processors: usize) -> Platform {
    Platform::from_speeds(&vec![1.0; processors]).unwrap()
}

fn own<T: Real>(whole: &[T], columns: &BlockColumns, ranks: std::ops::Range<usize>) -> Vec<LocalColumns<T>> {
    let one = |rank| {
        let mut local = LocalColumns::zeros(columns, Rank(rank)).unwrap();
        local.fill_from(whole);
        local
    };
    ranks.map(one).collect()
}

fn on<T: Real>(
    whole: &[T],
    schedule: &FactorSchedule,
    kernel: Kernel<T>,
    (world, copies): (&World, bool),
) -> Result<FactorOutput<T>> {
    let p = schedule.processors();
    let (platform, monitor) = (platform(p), Monitor::new());
    let session = Session::new(world, &platform, &monitor, 1.0).copying(copies);
    factor(schedule, kernel, own(whole, schedule.columns(), world.processors_here(p)), 1, &session)
}

/// The factors as a whole matrix, and the pivots.
fn whole<T: Real>(columns: &[LocalColumns<T>]) -> Vec<u64> {
    let n = columns[0].rows();
    let mut whole = vec![T::ZERO; n * n];
    columns.iter().for_each(|local| local.put(0, &mut whole));
    whole.iter().map(|x| x.to_f64().to_bits()).collect()
}

fn check_engines<T: Real>(factors: Factors, n: u64, block: u64) {
    let a: Vec<T> = matrix(factors, n);
    let (monitor, kernel) = (Monitor::new(), Kernel::plus_times());
    let mut wanted = None;
    for columns in divisions(n, block) {
        let schedule = FactorSchedule::new(factors, columns.clone());
        for copies in [false, true] {
            let output = on(&a, &schedule, kernel, (&World::solo(&monitor), copies)).unwrap();
            assert!(output.residual.scaled < 1.0, "{factors} {n}: {:?}", output.residual);
            for (rank, lane) in output.trace.lanes.iter().enumerate() {
                let counted: u64 = lane.received.iter().sum();
                assert_eq!(counted, columns.received(factors, Rank(rank)), "{factors} {n} {copies}");
                let bytes = schedule.memory(Rank(rank)) * size_of::<T>() as u64;
                assert_eq!(lane.peak_bytes, bytes, "{factors} {n} {copies}: processor {rank} of {columns:?}");
            }
            let found = (whole(&output.columns), output.pivots);
            assert!(*wanted.get_or_insert(found.clone()) == found, "{factors} {n} by {columns:?}, {copies}");
        }
        let p = schedule.processors();
        let ranks = World::threads(p, &monitor, |world| {
            let output = on(&a, &schedule, kernel, (world, false))?;
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
    for factors in [Factors::Cholesky, Factors::Lu] {
        for (n, block) in [(1, 4), (3, 4), (16, 4), (37, 8), (150, 32), (211, 48)] {
            check_engines::<f64>(factors, n, block);
        }
        check_engines::<f32>(factors, 97, 16);
    }
}

#[test]
fn threads_share_a_panel_of_cholesky() {
    let (rows, width) = (300, 24);
    let whole: Vec<f64> = matrix(Factors::Cholesky, rows as u64);
    let panel: Vec<f64> = whole.chunks(rows).flat_map(|row| row[..width].to_vec()).collect();
    let by = |threads: usize, mut panel: Vec<f64>| {
        let failed = application::cholesky_together(&mut panel, width, threads).unwrap();
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
    for factors in [Factors::Cholesky, Factors::Lu] {
        let (n, monitor) = (230, Monitor::new());
        let a: Vec<f64> = matrix(factors, n);
        let columns = divisions(n, 32).remove(1);
        let schedule = FactorSchedule::new(factors, columns.clone());
        let by = |cores: &[usize]| {
            let mut platform = platform(2);
            platform.processors.iter_mut().for_each(|processor| processor.cores = cores.to_vec());
            let world = World::solo(&monitor);
            let session = Session::new(&world, &platform, &monitor, 1.0);
            let output =
                factor(&schedule, Kernel::plus_times(), own(&a, &columns, 0..2), 1, &session).unwrap();
            (whole(&output.columns), output.pivots)
        };
        assert!(by(&[]) == by(&[0, 0, 0]), "{factors}");
    }
}

/// The residual of a small matrix is exact, by its definition.
#[test]
fn the_exact_residual_is_that_of_the_definition() {
    let n = 60_usize;
    let (a, monitor): (Vec<f64>, _) = (matrix(Factors::Lu, n as u64), Monitor::new());
    let schedule = FactorSchedule::new(Factors::Lu, divisions(n as u64, 16).remove(1));
    let output = on(&a, &schedule, Kernel::plus_times(), (&World::solo(&monitor), false)).unwrap();
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
    for factors in [Factors::Cholesky, Factors::Lu] {
        for n in [100, 300] {
            let a: Vec<f64> = matrix(factors, n);
            let schedule = FactorSchedule::new(factors, divisions(n, 32).remove(1));
            let kernel = Kernel::plus_times().with_update(wrong);
            let error = on(&a, &schedule, kernel, (&World::solo(&monitor), false)).unwrap_err();
            assert!(matches!(error, Error::WrongResult { .. }) && error.exit_code() == 1, "{error}");
        }
    }
}

/// Elements beyond the range of squares do no harm to the check.
#[test]
fn large_and_small_elements_are_verified() {
    let monitor = Monitor::new();
    for factors in [Factors::Cholesky, Factors::Lu] {
        for scale in [1e200, 1e-200] {
            let a: Vec<f64> = matrix::<f64>(factors, 140).into_iter().map(|x| x * scale).collect();
            let schedule = FactorSchedule::new(factors, divisions(140, 32).remove(1));
            let output = on(&a, &schedule, Kernel::plus_times(), (&World::solo(&monitor), false)).unwrap();
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
        for (factors, a, words) in [
            (Factors::Cholesky, minor, format!("leading minor of order {}", at + 1)),
            (Factors::Lu, singular, format!("U({at}, {at})")),
        ] {
            for columns in divisions(n, 8) {
                let schedule = FactorSchedule::new(factors, columns);
                let world = World::solo(&monitor);
                let error = on(&a, &schedule, Kernel::plus_times(), (&world, false)).unwrap_err();
                assert!(error.to_string().contains(&words) && error.exit_code() == 1, "{error}");
                let ranks = World::threads(schedule.processors(), &monitor, |world| {
                    Ok(on(&a, &schedule, Kernel::plus_times(), (world, false)).unwrap_err().to_string())
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
        let a = MatrixSource::Memory { name: "a".into(), matrix };
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
    // Cholesky does not read the upper triangle.
    let a = MatrixSource::Memory { name: "a".into(), matrix: square(f64::NAN) };
    assert!(run(FactorTask { sources: speeds(&[1.0]), ..FactorTask::new(Factors::Cholesky, a) }).is_ok());
}

fn solution(task: SolveTask) -> Result<SolveOutcome> {
    let monitor = Monitor::new();
    let world = World::solo(&monitor);
    solve_matrix(task, Context::silent(&world, &monitor))
}

/// A whole matrix, symmetric for Cholesky, and right-hand sides.
fn system(factors: Factors, n: u64, sides: u64) -> (Vec<f64>, Vec<f64>) {
    let mut a: Vec<f64> = matrix(factors, n);
    if factors == Factors::Cholesky {
        for at in 0..n * n {
            let (i, j) = (at / n, at % n);
            if i < j {
                a[at as usize] = a[(j * n + i) as usize];
            }
        }
    }
    (a, (0..n * sides).map(|i| value(i * 3 + 1)).collect())
}

fn solve_system(
    factors: Factors,
    (a, b): (&[f64], &[f64]),
    n: usize,
    gigaflops: &[f64],
) -> Result<SolveOutcome> {
    let source = |elements: &[f64], cols| MatrixSource::whole("m", Matrix::new(n, cols, elements.to_vec()));
    let factor =
        FactorTask { sources: speeds(gigaflops), block: Some(16), ..FactorTask::new(factors, source(a, n)) };
    solution(SolveTask { factor, b: source(b, b.len() / n), output: None })
}

#[test]
fn solutions_fulfil_their_systems() {
    for factors in [Factors::Cholesky, Factors::Lu] {
        for (n, sides) in [(1, 1), (5, 3), (61, 1), (150, 19)] {
            let (a, b) = system(factors, n as u64, sides as u64);
            let outcome = solve_system(factors, (&a, &b), n, &[3.0, 1.0, 2.0]).unwrap();
            let x = outcome.x.elements::<f64>().unwrap();
            let largest = x.iter().fold(1.0, |most: f64, x| most.max(x.abs()));
            for (i, side) in (0..n).flat_map(|i| (0..sides).map(move |side| (i, side))) {
                let product: f64 = (0..n).map(|j| a[i * n + j] * x[j * sides + side]).sum();
                let off = (product - b[i * sides + side]).abs();
                assert!(off < 1e-13 * n as f64 * largest, "{factors} {n}: {off} at ({i}, {side})");
            }
            let [before, after] = outcome.report.residuals;
            assert!(after <= before && after < 1.0, "{factors} {n}: {before} {after}");
        }
    }
}

/// The estimate is at most the condition number, and seldom below a third of it.
#[test]
fn conditions_are_estimated_from_below() {
    let n = 40;
    for factors in [Factors::Cholesky, Factors::Lu] {
        let (a, _) = system(factors, n as u64, 1);
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

/// Ranks give the bytes of threads, by the same plan.
#[test]
fn solutions_on_ranks_are_those_of_threads() {
    let (n, sides, monitor) = (90, 4, Monitor::new());
    for factors in [Factors::Cholesky, Factors::Lu] {
        let (a, b) = system(factors, n as u64, sides as u64);
        let threads = solve_system(factors, (&a, &b), n, &[3.0, 1.0]).unwrap();
        let ranks = World::threads(2, &monitor, |world| {
            let source =
                |elements: &[f64], cols| MatrixSource::whole("m", Matrix::new(n, cols, elements.to_vec()));
            let factor = FactorTask {
                sources: speeds(&[3.0, 1.0]),
                block: Some(16),
                ..FactorTask::new(factors, source(&a, n))
            };
            let task = SolveTask { factor, b: source(&b, sides), output: None };
            let outcome = solve_matrix(task, Context::silent(world, &monitor))?;
            Ok((outcome.x, outcome.report.residuals, outcome.report.condition))
        });
        for (x, residuals, condition) in ranks.unwrap() {
            assert!(x == threads.x, "{factors}");
            assert_eq!((residuals, condition), (threads.report.residuals, threads.report.condition));
        }
    }
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
        let error = solution(SolveTask { factor, b: MatrixSource::whole("b", b), output: None }).unwrap_err();
        assert!(error.to_string().contains(words) && error.exit_code() == 2, "{error}");
    }
}
