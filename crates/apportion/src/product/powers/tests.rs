//! Powers and closures on the engine against slow implementations of the definition.

use super::*;
use crate::kernels::{View, ViewMut};
use crate::matrix::Matrix;
use crate::model::{Model, WorkUnit, platform_models};
use crate::plan::shapes::LayoutMethod;
use crate::plan::{Layout, Plan, Shape, shapes};
use crate::platform::Platform;
use crate::product::tests::{PATHS, on, parts, whole};
use crate::run::Monitor;
use crate::schedule::{DataPath, Flow, ScheduleOptions};
use std::sync::atomic::{AtomicU64, Ordering};

/// The result of all processes after a job on a square matrix, as one matrix, and the rest of the first
/// process's result.
fn with<T: Element, U: Element, V: Element, R: Send>(
    path: DataPath,
    kernel: Kernel<T>,
    a: &Matrix<U>,
    job: impl Fn(&LocalBlocks<U>, &MatmulJob<'_, T>, &Session<'_>) -> Result<(LocalBlocks<V>, R)> + Sync,
) -> Result<(Matrix<V>, R)> {
    let n = a.rows();
    let shape = Shape::new(n as u64, n as u64, n as u64, "test").unwrap();
    let platform = Platform::from_speeds(&[3.0, 1.0]).unwrap();
    let models: Vec<Model> = ["p0", "p1"].iter().map(|name| Model::constant(*name, 1e9).unwrap()).collect();
    let layout: Layout = shapes::StraightLine.layout(shape, &[3.0, 1.0]).unwrap();
    let plan = Plan::of_layout("straight-line", platform.names(), layout, 1.0);
    let order = ScheduleOptions::new(Flow::OneToAll, 4).with_look_ahead(1);
    let what = MatmulJob::new(kernel, &plan, order, &models, 4).with_seed(5);
    let schedule = MatmulSchedule::new(plan.layout()?, order);
    let found = on(path, (&platform, &Monitor::new()), what.work(), |session| {
        job(&parts(a, &OwnRects::of(&schedule, session.world()).a), &what, session)
    })?;
    let (blocks, others): (Vec<_>, Vec<_>) = found.into_iter().unzip();
    let first = others.into_iter().next().expect("a world has a rank");
    Ok((whole((n, n), &blocks), first))
}

/// A product, each element by its definition.
fn times<T: Element>(kernel: Kernel<T>, a: &Matrix<T>, b: &Matrix<T>) -> Matrix<T> {
    let column = |j: usize| -> Vec<T> { (0..b.rows()).map(|l| b.row(l)[j]).collect() };
    let elements =
        (0..a.rows() * b.cols()).map(|at| kernel.entry(a.row(at / b.cols()), &column(at % b.cols())));
    Matrix::new(a.rows(), b.cols(), elements.collect())
}

/// The identity multiplied `exponent` times.
fn power<T: Element>(kernel: Kernel<T>, a: &Matrix<T>, exponent: u64) -> Matrix<T> {
    let n = a.rows();
    let unit = |at: usize| if at.is_multiple_of(n + 1) { kernel.one() } else { kernel.zero() };
    let identity = Matrix::new(n, n, (0..n * n).map(unit).collect());
    (0..exponent).fold(identity, |so_far, _| times(kernel, &so_far, a))
}

/// Floyd and Warshall's algorithm.
fn closure(a: &Matrix<f64>, semiring: Semiring) -> Vec<f64> {
    let (n, better): (_, fn(f64, f64) -> f64) =
        (a.rows(), if semiring == Semiring::MaxPlus { f64::max } else { f64::min });
    let mut d = a.as_slice().to_vec();
    d.iter_mut().step_by(n + 1).for_each(|x| *x = better(*x, 0.0));
    for (via, i, j) in (0..n).flat_map(|via| (0..n * n).map(move |at| (via, at / n, at % n))) {
        d[i * n + j] = better(d[i * n + j], d[i * n + via] + d[via * n + j]);
    }
    d
}

fn graph(n: usize, absent: f64) -> Matrix<f64> {
    let value = |i: usize| if i * i % 7 < 4 { absent } else { (i % 5) as f64 * absent.signum() };
    Matrix::new(n, n, (0..n * n).map(value).collect())
}

#[test]
fn powers_equal_those_of_one_thread() {
    for semiring in [Semiring::PlusTimes, Semiring::MaxPlus, Semiring::MinPlus] {
        let kernel = Kernel::<f64>::over(semiring).unwrap();
        let n = 7;
        let a = match semiring {
            Semiring::PlusTimes => Matrix::new(n, n, (0..n * n).map(|i| (i % 3) as f64).collect()),
            _ => graph(n, kernel.zero()),
        };
        let powers = [(0, 0), (1, 0), (2, 1), (5, 3), (7, 4)];
        for ((exponent, products), path) in powers.into_iter().flat_map(|x| PATHS.map(|path| (x, path))) {
            let (found, report) =
                with(path, kernel, &a, |a, what, session| matrix_power(a, exponent, what, session)).unwrap();
            let expected = power(kernel, &a, exponent);
            assert_eq!(found, expected, "{semiring}, {exponent}");
            assert_eq!(report.products, products);
            let one = report.plan.metrics.volume.unwrap();
            assert_eq!(report.volume(), one * products, "counted over all products");
        }
    }
}

#[test]
fn closures_equal_those_of_one_thread() {
    for (n, path) in [1, 2, 3, 9, 17].into_iter().flat_map(|n| PATHS.map(|path| (n, path))) {
        for semiring in [Semiring::MaxPlus, Semiring::MinPlus] {
            let kernel = Kernel::<f64>::over(semiring).unwrap();
            let a = graph(n, kernel.zero());
            // Over max-plus no weight is positive, over min-plus none is negative: no cycle improves.
            let (found, report) = with(path, kernel, &a, matrix_closure).unwrap();
            let expected = closure(&a, semiring);
            assert_eq!(found.as_slice(), expected, "{semiring}, {n}");
            assert!(report.products <= u64::from(n.next_power_of_two().ilog2()));
            let bits: Vec<u8> = a.as_slice().iter().map(|x| if x.is_finite() { 9 } else { 0 }).collect();
            let bits = Matrix::new(n, n, bits);
            let reached: Vec<u8> = expected.iter().map(|x| u8::from(x.is_finite())).collect();
            let (found, _) = with(path, Kernel::or_and(), &bits, matrix_closure).unwrap();
            assert_eq!(found.as_slice(), reached, "or-and, {n}");
        }
    }
}

/// Calls of a loop with a defect before the one that loses an element.
static BEFORE: AtomicU64 = AtomicU64::new(0);

fn losing(a: View<f64>, b: View<f64>, mut c: ViewMut<f64>) {
    Kernel::min_plus().update(a, b, c.reborrow());
    if c.rows() > 0 && c.cols() > 0 && BEFORE.fetch_sub(1, Ordering::SeqCst) == 1 {
        let middle = c.cols() / 2;
        c.row(c.rows() / 2)[middle] = f64::INFINITY;
    }
}

/// One element that is lost in one of the products spreads, and all later products by it are right: the result is
/// right, or it is not given out.
#[test]
fn an_element_lost_on_the_way_is_found_in_the_result() {
    for (rows, method) in [(7, ClosureMethod::Squaring), (14, ClosureMethod::Elimination)] {
        let n = 20 * rows;
        let street = |at: usize| {
            let (i, j) = (at / n, at % n);
            let next = i.abs_diff(j) == 20 || i.abs_diff(j) == 1 && i.min(j) % 20 != 19;
            if next { 50.0 + ((i * 37 + j * 11) % 101) as f64 } else { f64::INFINITY }
        };
        let a = Matrix::new(n, n, (0..n * n).map(street).collect());
        let right = closure(&a, Semiring::MinPlus);
        let mut found = 0;
        for before in (1..1500).step_by(53) {
            BEFORE.store(before, Ordering::SeqCst);
            let kernel = Kernel::min_plus().with_update(losing);
            let closed = with(DataPath::InPlace, kernel, &a, |a, what, session| {
                matrix_closure(a, &what.clone().with_closure(Some(method)), session)
            });
            match closed {
                Ok((closed, report)) => {
                    assert_eq!(closed.as_slice(), right, "{method}: {before}");
                    assert_eq!((report.error_probability, report.rows.unwrap().rows), (Some(0.0), n as u64));
                }
                Err(error) => found += usize::from(matches!(error, Error::WrongResult { .. })),
            }
        }
        // A later square makes up for most of them.
        assert!(found > 0 || method == ClosureMethod::Squaring, "no loss mattered");
    }
}

#[test]
fn improving_cycles_are_named() {
    let far = f64::INFINITY;
    let a = Matrix::new(3, 3, vec![far, 1.0, far, far, far, -3.0, 1.0, far, far]);
    for path in PATHS {
        let error = with(path, Kernel::min_plus(), &a, matrix_closure).unwrap_err();
        assert_eq!(error.exit_code(), 1);
        assert!(
            error.to_string().starts_with("a cycle of negative weight passes through vertex 0"),
            "{error}"
        );
        let error = with(path, Kernel::plus_times(), &a, matrix_closure).unwrap_err();
        assert_eq!(error.exit_code(), 2);
    }
}

/// Follows every chain of predecessors back: it must end at the start of the path, and its edges must add up
/// to the length.
fn check_paths((path, method): (DataPath, ClosureMethod), semiring: Semiring, a: &Matrix<i64>) {
    let n = a.rows();
    let paths = Kernel::paths(semiring).unwrap();
    let found = [false, true].map(|ends| {
        with(path, paths, a, |a, what, session| {
            let what = what.clone().with_closure(Some(method));
            let Paths { lengths, predecessors, .. } = matrix_paths(a, &what, session)?;
            // Predecessors are numbers of vertices: whole as i64, too.
            let widened = predecessors
                .into_iter()
                .map(|(rect, block)| (rect, block.into_iter().map(i64::from).collect()));
            Ok((if ends { widened.collect() } else { lengths }, ()))
        })
        .unwrap()
        .0
    });
    let [lengths, before] = found;
    let kernel = Kernel::<i64>::tropical(semiring).unwrap();
    let (expected, _) = with(path, kernel, a, matrix_closure).unwrap();
    assert_eq!(lengths, expected);
    for (i, j) in (0..n * n).map(|at| (at / n, at % n)) {
        let (mut at, mut length, mut edges) = (j, 0, 0);
        while let Ok(previous) = usize::try_from(before.row(i)[at]) {
            length += a.row(previous)[at];
            (at, edges) = (previous, edges + 1);
            assert!(edges < n, "from {i} to {j}");
        }
        if at == i {
            assert_eq!(length, lengths.row(i)[j], "from {i} to {j}");
        } else {
            assert_eq!((at, lengths.row(i)[j]), (j, kernel.zero()), "from {i} to {j}");
        }
    }
}

#[test]
fn predecessors_lead_back_along_best_paths() {
    for n in [1, 2, 7, 31, 131] {
        // Potentials: edges of both signs and many cycles of length 0, but none that improves.
        let height = |i: usize| (i * i % 13) as i64;
        for sign in [1, -1] {
            let (semiring, absent) =
                if sign == 1 { (Semiring::MinPlus, i64::MAX) } else { (Semiring::MaxPlus, i64::MIN) };
            let edge = |at: usize| {
                if at * at % 11 < 7 {
                    absent
                } else {
                    sign * ((at % 3) as i64 + height(at / n) - height(at % n))
                }
            };
            let edges = Matrix::new(n, n, (0..n * n).map(edge).collect());
            let how = |path| {
                if n == 31 { (path, ClosureMethod::Squaring) } else { (path, ClosureMethod::Elimination) }
            };
            PATHS.into_iter().for_each(|path| check_paths(how(path), semiring, &edges));
        }
    }
    let cycle = Matrix::new(2, 2, vec![0, -3, 2, 0]);
    let error =
        with(DataPath::Packed, Kernel::paths(Semiring::MinPlus).unwrap(), &cycle, |a, what, session| {
            matrix_paths(a, what, session).map(|paths| (paths.lengths, ()))
        });
    assert!(error.unwrap_err().to_string().contains("vertex 0"));
    assert_eq!(Kernel::<PathElement<f64>>::paths(Semiring::OrAnd).unwrap_err().exit_code(), 2);
}

/// Every flow on strips of rows and of columns: the broadcast flow has its right factor elsewhere.
#[test]
fn powers_of_every_flow_are_those_of_one_thread() {
    let (n, kernel, semiring) = (11, Kernel::<f64>::over(Semiring::MinPlus).unwrap(), Semiring::MinPlus);
    let a = graph(n, kernel.zero());
    let (cube, closed) = (power(kernel, &a, 3), closure(&a, semiring));
    let shape = Shape::new(n as u64, n as u64, n as u64, "test").unwrap();
    let speeds = [3.0, 1.0, 2.0];
    let platform = Platform::from_speeds(&speeds).unwrap();
    let models: Vec<Model> =
        platform.names().into_iter().map(|name| Model::constant(name, 1e9).unwrap()).collect();
    let layouts = [
        shapes::Rows::default().layout(shape, &speeds).unwrap(),
        shapes::Columns::default().layout(shape, &speeds).unwrap(),
    ];
    for (layout, flow) in layouts.into_iter().flat_map(|layout| Flow::ALL.map(|flow| (layout.clone(), flow)))
    {
        let plan = Plan::of_layout("strips", platform.names(), layout, 1.0);
        let job = MatmulJob::new(kernel, &plan, ScheduleOptions::new(flow, 4), &models, 4).with_seed(5);
        let schedule = MatmulSchedule::new(plan.layout().unwrap(), job.order);
        for path in PATHS {
            let run = |closes: bool| {
                let found = on(path, (&platform, &Monitor::new()), job.work(), |session| {
                    let own = parts(&a, &OwnRects::of(&schedule, session.world()).a);
                    match closes {
                        true => matrix_closure(&own, &job, session),
                        false => matrix_power(&own, 3, &job, session),
                    }
                });
                let (blocks, _): (Vec<_>, Vec<_>) = found.unwrap().into_iter().unzip();
                whole((n, n), &blocks)
            };
            assert_eq!(run(false), cube, "{flow}, {path:?}");
            assert_eq!(run(true).as_slice(), closed, "{flow}, {path:?}");
        }
    }
}

/// The closures by elimination, of sizes around those of the leaves, on every path of data.
#[test]
fn closures_by_elimination_equal_those_of_one_thread() {
    for (n, path) in [3, 128, 129, 257, 300].into_iter().flat_map(|n| PATHS.map(|path| (n, path))) {
        for semiring in [Semiring::MaxPlus, Semiring::MinPlus] {
            let kernel = Kernel::<f64>::over(semiring).unwrap();
            // A long chain with a few short cuts: squaring would take many products.
            let value = |at: usize| {
                let (i, j) = (at / n, at % n);
                let weight = (i % 5) as f64 + (j % 3) as f64;
                let here = j == (i + 1) % n || i * 7 % n == j * 3 % n;
                if here { weight * kernel.zero().signum() } else { kernel.zero() }
            };
            let a = Matrix::new(n, n, (0..n * n).map(value).collect());
            let (found, report) = with(path, kernel, &a, by_elimination).unwrap();
            let expected = closure(&a, semiring);
            assert!(found.as_slice() == expected, "{semiring}, {n}, {path:?}");
            assert_eq!(report.closure, Some(ClosureMethod::Elimination));
            let leaves = n.div_ceil(128) as u64;
            assert_eq!(report.products, (6 * (leaves - 1)).max(1));
            assert!(report.sampled >= Some(n.min(128).pow(2) as u64), "leaves are checked in full");
            assert!(report.error_probability.is_some_and(|odds| odds < 1e-4));
            let bits: Vec<u8> = a.as_slice().iter().map(|x| u8::from(x.is_finite())).collect();
            let (found, _) = with(path, Kernel::or_and(), &Matrix::new(n, n, bits), by_elimination).unwrap();
            let reached: Vec<u8> = expected.iter().map(|x| u8::from(x.is_finite())).collect();
            assert!(found.as_slice() == reached, "or-and, {n}, {path:?}");
        }
    }
}

fn by_elimination<T: Element>(
    a: &LocalBlocks<T>,
    job: &MatmulJob<'_, T>,
    session: &Session<'_>,
) -> Result<(LocalBlocks<T>, RunReport)> {
    matrix_closure(a, &job.clone().with_closure(Some(ClosureMethod::Elimination)), session)
}

/// A cycle that improves is found wherever it is: within a leaf and across leaves.
#[test]
fn elimination_names_a_vertex_of_an_improving_cycle() {
    let n = 260;
    for cycle in [[3, 5], [7, 200], [140, 259]] {
        let mut a = vec![f64::INFINITY; n * n];
        a[cycle[0] * n + cycle[1]] = 1.0;
        a[cycle[1] * n + cycle[0]] = -2.0;
        let a = Matrix::new(n, n, a);
        for path in PATHS {
            let error = with(path, Kernel::min_plus(), &a, by_elimination).unwrap_err();
            assert_eq!(error.exit_code(), 1);
            let named = format!("a cycle of negative weight passes through vertex {}:", cycle[1]);
            assert!(error.to_string().starts_with(&named), "{error}");
        }
    }
}

/// The work of an elimination is that of one product, but for the leaves; a long chain is closed by it.
#[test]
fn the_work_of_a_closure_is_counted() {
    assert_eq!(ClosureMethod::Elimination.work(128), 0.0);
    // 128 + 64: 128 x 128 x 64 and 64 x 128 x 128, 64 x 128 x 64, 128 x 64 x 64, 128 x 64 x 128, 64 x 64
    // x 128.
    assert_eq!(ClosureMethod::Elimination.work(192), 3.0 * 128.0 * 128.0 * 64.0 + 3.0 * 128.0 * 64.0 * 64.0);
    let n = 128.0 * 64.0_f64;
    let relative = ClosureMethod::Elimination.work(128 * 64) / n.powi(3);
    assert!((0.99..1.0).contains(&relative), "{relative}");
    assert_eq!(ClosureMethod::Squaring.work(1000), 1e10);
}

/// A kernel that forgets the last row of its result is found out, by the leaves or by the products.
#[test]
fn elimination_verifies_what_it_computes() {
    fn forgetful(a: View<f64>, b: View<f64>, mut c: ViewMut<f64>) {
        let last = c.rows() - 1;
        let before = c.row(last).to_vec();
        Kernel::<f64>::min_plus().update(a, b, c.reborrow());
        c.row(last).copy_from_slice(&before);
    }
    for n in [100, 300] {
        let weight =
            |at: usize| if at / n * 3 % n == at % n + 1 { f64::INFINITY } else { (at % 7) as f64 + 1.0 };
        let a = Matrix::new(n, n, (0..n * n).map(weight).collect());
        let kernel = Kernel::min_plus().with_update(forgetful);
        let error = with(DataPath::InPlace, kernel, &a, by_elimination).unwrap_err();
        assert!(matches!(error, Error::WrongResult { .. }), "{error}");
    }
}

/// Slow processors gain by the smaller work, fast ones lose by the many products; few vertices are squared.
#[test]
fn the_forecast_decides_how_a_closure_is_computed() {
    let monitor = Monitor::new();
    let (world, platform) = (World::solo(&monitor), Platform::from_speeds(&[3.0, 1.0]).unwrap());
    let chosen = |method: &str, n: u64, speed: f64| {
        let shape = Shape::new(n, n, n, "test").unwrap();
        let models: Vec<Model> =
            platform.names().into_iter().map(|name| Model::constant(name, speed).unwrap()).collect();
        let layout = shapes::Columns::default().layout(shape, &[3.0, 1.0]).unwrap();
        let plan = Plan::of_layout(method, platform.names(), layout, 1.0);
        let order = ScheduleOptions::new(Flow::OneToAll, 64);
        let job = MatmulJob::new(Kernel::<f64>::min_plus(), &plan, order, &models, 64);
        ClosureMethod::of(&job, &platform, &world).unwrap()
    };
    assert_eq!(chosen("columns", 1000, 1e7), ClosureMethod::Elimination);
    assert_eq!(chosen("columns", 1000, 1e12), ClosureMethod::Squaring);
    assert_eq!(chosen("columns", 255, 1e7), ClosureMethod::Squaring);
    assert_eq!(chosen("by hand", 1000, 1e7), ClosureMethod::Squaring, "of no method");
}

/// A graph of climbs: the weight of (i, j) is a climb of 0 to 1 and the difference of heights within `scale`,
/// rounded to two decimals or not. Sums of a path cancel, and no cycle improves.
fn climbs<T: Element>(n: usize, scale: f64, density: f64, climb: f64, kernel: Kernel<T>) -> Matrix<T> {
    let mut random = crate::random::Random::new(n as u64 + scale as u64);
    let mut unit = || (random.word() >> 11) as f64 / (1u64 << 53) as f64;
    let heights: Vec<f64> = (0..n).map(|_| (scale * unit() * 10.0).round() / 10.0).collect();
    let sign = if kernel.semiring() == Semiring::MaxPlus { -1.0 } else { 1.0 };
    let weight = |at: usize| {
        let (i, j) = (at / n, at % n);
        let rise = climb * (0.1 + 0.9 * unit());
        let absent = i == j || unit() >= density;
        if absent { kernel.zero() } else { T::from_f64(sign * (rise + heights[j] - heights[i])) }
    };
    Matrix::new(n, n, (0..n * n).map(weight).collect())
}

/// What rounding may add to a length: that of each edge on the way, of the largest size.
fn rounding<T: Element>(a: &Matrix<T>) -> f64 {
    let sizes = a.as_slice().iter().map(|x| x.to_f64().abs()).filter(|x| x.is_finite());
    2.0 * a.rows() as f64 * T::EPSILON * sizes.fold(0.0, f64::max)
}

fn close_enough<T: Element>(found: &Matrix<T>, wanted: &[f64], rounding: f64) -> bool {
    found.as_slice().iter().zip(wanted).all(|(x, y)| {
        let x = x.to_f64();
        x == *y || (x - y).abs() <= rounding
    })
}

fn doubles<T: Element>(a: &Matrix<T>) -> Matrix<f64> {
    Matrix::new(a.rows(), a.cols(), a.as_slice().iter().map(|x| x.to_f64()).collect())
}

/// The closure by a method, with or without predecessors, and the notes of its report.
fn closed_by<T: Element + Tropical>(
    path: DataPath,
    (method, paths): (ClosureMethod, bool),
    semiring: Semiring,
    a: &Matrix<T>,
) -> Result<(Matrix<T>, Vec<String>)>
where
    PathElement<T>: Element,
{
    if !paths {
        let kernel = Kernel::<T>::tropical(semiring).unwrap();
        return with(path, kernel, a, |a, what, session| {
            let (c, report) = matrix_closure(a, &what.clone().with_closure(Some(method)), session)?;
            Ok((c, report.notes))
        });
    }
    with(path, Kernel::paths(semiring).unwrap(), a, |a, what, session| {
        let found = matrix_paths(a, &what.clone().with_closure(Some(method)), session)?;
        Ok((found.lengths, found.report.notes))
    })
}

const METHODS: [ClosureMethod; 2] = [ClosureMethod::Squaring, ClosureMethod::Elimination];

fn climbs_are_closed<T: Element + Tropical>(sizes: &[(usize, f64, f64)])
where
    PathElement<T>: Element,
{
    for (number, &(n, scale, density)) in sizes.iter().enumerate() {
        for semiring in [Semiring::MinPlus, Semiring::MaxPlus] {
            let a = climbs(n, scale, density, 1.0, Kernel::<T>::tropical(semiring).unwrap());
            let wanted = closure(&doubles(&a), semiring);
            for (method, paths) in METHODS.into_iter().flat_map(|method| [(method, false), (method, true)]) {
                let path = PATHS[number % PATHS.len()];
                let found = closed_by(path, (method, paths), semiring, &a);
                let (found, notes) = found.unwrap_or_else(|e| panic!("{n} {scale} {density} {method}: {e}"));
                assert!(close_enough(&found, &wanted, rounding(&a)), "{n} {scale} {density} {method}");
                assert_eq!(notes, [""; 0], "{n} {scale} {density} {method}");
            }
        }
    }
}

/// Sums that cancel are right as far as their summands are.
#[test]
fn lengths_of_sums_that_cancel_are_no_errors() {
    climbs_are_closed::<f64>(&[(24, 1e6, 0.5), (40, 1.0, 1.0), (135, 1000.0, 0.1)]);
    climbs_are_closed::<f32>(&[(24, 1000.0, 0.5), (40, 10.0, 1.0), (135, 100.0, 0.02)]);
}

/// Within a leaf, one element that is off by a millionth is found whatever the sizes of others.
#[test]
fn elimination_finds_an_error_beside_large_numbers() {
    fn careless(a: View<f64>, b: View<f64>, mut c: ViewMut<f64>) {
        Kernel::<f64>::min_plus().update(a, b, c.reborrow());
        if b.row(0)[7] != f64::INFINITY && c.rows() == 60 {
            c.row(5)[7] -= 1e-6;
        }
    }
    for scale in [1.0, 1e6] {
        let a = climbs(60, scale, 0.5, 1.0, Kernel::<f64>::min_plus());
        let kernel = Kernel::min_plus().with_update(careless);
        let error = with(DataPath::InPlace, kernel, &a, by_elimination).unwrap_err();
        assert!(matches!(error, Error::WrongResult { .. }), "{error}");
    }
}

fn zero_cycles_are_accepted<T: Element + Tropical>(n: usize, scale: f64, ways: &[(ClosureMethod, bool)])
where
    PathElement<T>: Element,
{
    for semiring in [Semiring::MinPlus, Semiring::MaxPlus] {
        let kernel = Kernel::<T>::tropical(semiring).unwrap();
        // Differences of heights: each path has the length of its edge, if there is one.
        let a = climbs(n, scale, 1.0, 0.0, kernel);
        let wanted: Vec<f64> =
            doubles(&a).as_slice().iter().map(|x| if x.is_finite() { *x } else { 0.0 }).collect();
        for (number, how) in ways.iter().enumerate() {
            let path = PATHS[(n + number) % PATHS.len()];
            let found = closed_by(path, *how, semiring, &a);
            let (found, notes) = found.unwrap_or_else(|e| panic!("{n} {how:?}: {e}"));
            assert!(close_enough(&found, &wanted, rounding(&a)), "{n} {how:?}");
            assert_eq!(notes.len(), 1, "{n} {how:?}: {notes:?}");
            assert!(notes[0].contains("0 up to "), "{}", notes[0]);
            assert!((0..n).all(|i| found.row(i)[i].to_f64() == 0.0));
        }
    }
}

#[test]
fn cycles_of_zero_up_to_rounding_count_as_zero() {
    let ways = METHODS.map(|method| [(method, false), (method, true)]);
    zero_cycles_are_accepted::<f64>(30, 10.0, ways.as_flattened());
    zero_cycles_are_accepted::<f32>(30, 10.0, ways.as_flattened());
    // Across leaves: an elimination that went on would double the error at each vertex.
    zero_cycles_are_accepted::<f64>(135, 1000.0, &[(ClosureMethod::Elimination, false)]);
    let far = f64::INFINITY;
    let three = Matrix::new(3, 3, vec![far, 0.1, far, far, far, 0.7, -0.8, far, far]);
    for method in METHODS {
        let (found, notes) =
            closed_by(DataPath::InPlace, (method, false), Semiring::MinPlus, &three).unwrap();
        assert_eq!(found.row(0)[0], 0.0);
        let cycle = if method == METHODS[0] { "0 -> 1 -> 2 -> 0" } else { "2 -> 0 -> 1 -> 2" };
        assert!(notes[0].starts_with(&format!("the cycle {cycle} weighs -8.3")), "{}", notes[0]);
    }
}

/// Where cycles have length 0 up to rounding, chains of predecessors still end where the path begins, and add
/// up to the length.
#[test]
fn predecessors_are_trees_in_spite_of_cycles_of_zero() {
    for (n, semiring) in [(30, Semiring::MinPlus), (45, Semiring::MaxPlus)] {
        let kernel = Kernel::<f64>::tropical(semiring).unwrap();
        for (density, method) in [(1.0, METHODS[0]), (0.2, METHODS[1])] {
            let a = climbs(n, 100.0, density, 0.0, kernel);
            for path in PATHS {
                let paths = Kernel::<PathElement<f64>>::paths(semiring).unwrap();
                let found = |predecessors: bool| {
                    with(path, paths, &a, |a, what, session| {
                        let what = what.clone().with_closure(Some(method));
                        let found = matrix_paths(a, &what, session)?;
                        let before = found.predecessors.into_iter();
                        let before = before.map(|(rect, x)| (rect, x.into_iter().map(f64::from).collect()));
                        Ok((if predecessors { before.collect() } else { found.lengths }, ()))
                    })
                    .unwrap()
                    .0
                };
                let [lengths, before] = [false, true].map(found);
                for (i, j) in (0..n * n).map(|at| (at / n, at % n)) {
                    let (mut at, mut length, mut edges) = (j, 0.0, 0);
                    while before.row(i)[at] >= 0.0 {
                        let previous = before.row(i)[at] as usize;
                        length += a.row(previous)[at];
                        (at, edges) = (previous, edges + 1);
                        assert!(edges < n, "{n} {density} {path:?}: from {i} to {j}");
                    }
                    let reached = lengths.row(i)[j] != kernel.zero();
                    assert_eq!(at, if reached { i } else { j }, "{n} {density} {path:?}: from {i} to {j}");
                    assert!(!reached || (length - lengths.row(i)[j]).abs() <= rounding(&a), "{i} {j}");
                }
            }
        }
    }
}

/// A cycle that is negative by more than its own rounding is named with its weight, also among far larger
/// numbers and among cycles of 0.
#[test]
fn improving_cycles_are_told_with_weight_and_vertices() {
    let n = 140;
    for (semiring, sign, word) in
        [(Semiring::MinPlus, 1.0, "negative"), (Semiring::MaxPlus, -1.0, "positive")]
    {
        for (below, close) in [(0.5, false), (1e-4, false), (1e-12, true)] {
            for method in METHODS {
                let kernel = Kernel::<f64>::tropical(semiring).unwrap();
                let mut a = climbs(n, 1000.0, 1.0, 0.0, kernel);
                for at in 0..n * n {
                    // The vertices 137 to 139 are reached from the others, and lead nowhere else.
                    if (137..140).contains(&(at / n)) {
                        a.as_mut_slice()[at] = kernel.zero();
                    }
                }
                for (from, to, weight) in [(137, 138, 0.25), (138, 139, 0.5), (139, 137, -0.75 - below)] {
                    a.as_mut_slice()[from * n + to] = sign * weight;
                }
                for (path, paths) in [(PATHS[0], false), (PATHS[PATHS.len() - 1], true)] {
                    let error = closed_by(path, (method, paths), semiring, &a).unwrap_err();
                    let text = error.to_string();
                    assert_eq!(error.exit_code(), 1, "{text}");
                    assert!(
                        text.starts_with(&format!("a cycle of {word} weight passes through vertex 13")),
                        "{text}"
                    );
                    let round =
                        ["137 -> 138 -> 139 -> 137", "138 -> 139 -> 137 -> 138", "139 -> 137 -> 138 -> 139"];
                    assert!(round.iter().any(|cycle| text.contains(cycle)), "{text}");
                    assert_eq!(text.contains("whole numbers"), close, "{text}");
                    let weight =
                        text.split("weighs ").nth(1).and_then(|rest| rest.split(',').next()).unwrap();
                    let weight: f64 = weight.parse().unwrap();
                    assert!((weight + sign * below).abs() <= 1e-3 * below, "{text}");
                }
            }
        }
    }
}

/// Zeros in a graph without absent edges may be meant to be such.
#[test]
fn a_graph_full_of_zeros_has_a_note() {
    let n = 10;
    let weight = |at: usize| if at.is_multiple_of(3) && at / n != at % n { 5.0 } else { 0.0 };
    let a = Matrix::new(n, n, (0..n * n).map(weight).collect());
    for how in METHODS.into_iter().flat_map(|method| [(method, false), (method, true)]) {
        let (found, notes) = closed_by(DataPath::InPlace, how, Semiring::MinPlus, &a).unwrap();
        assert!(found.as_slice().iter().all(|x| *x == 0.0));
        assert!(notes[0].contains("write inf"), "{notes:?}");
    }
    let whole = Matrix::new(n, n, (0..n * n).map(|at| weight(at) as i32).collect());
    let (_, notes) = closed_by(DataPath::Packed, (METHODS[0], false), Semiring::MinPlus, &whole).unwrap();
    assert!(notes[0].contains("largest integer"), "{notes:?}");
    let mut known = a;
    known.as_mut_slice()[1] = f64::INFINITY;
    let (_, notes) = closed_by(DataPath::InPlace, (METHODS[0], false), Semiring::MinPlus, &known).unwrap();
    assert_eq!(notes, [""; 0], "who writes inf for an absent edge means 0 by 0");
}

/// Ratios of speeds say nothing of times, but the work does: a core's speed decides.
#[test]
fn ratios_of_speeds_decide_how_a_closure_is_computed() {
    let monitor = Monitor::new();
    let world = World::solo(&monitor);
    for ratios in [[1.0, 1.0], [1e-90, 1e90]] {
        let platform = Platform::from_speeds(&ratios).unwrap();
        let models = platform_models(&platform, WorkUnit::MultiplyAdd).unwrap();
        let chosen = |n: u64| {
            let shape = Shape::new(n, n, n, "test").unwrap();
            let plan = Plan::of_layout(
                "columns",
                platform.names(),
                shapes::Columns::default().layout(shape, &[1.0, 1.0]).unwrap(),
                1.0,
            );
            let job = MatmulJob::new(
                Kernel::<f64>::min_plus(),
                &plan,
                ScheduleOptions::new(Flow::OneToAll, 64),
                &models,
                1,
            );
            ClosureMethod::of(&job, &platform, &world).unwrap()
        };
        assert_eq!(chosen(1500), ClosureMethod::Elimination);
        assert_eq!(chosen(200), ClosureMethod::Squaring);
    }
}
