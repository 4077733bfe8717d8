//! All combinations of methods, flows, semirings and element types, in worlds of one to four processes: one
//! mpirun for each world, whose ranks run this test.

use super::launch::Mpi;
use apportion::geometry::Rect;
use apportion::kernels::Kernel;
use apportion::kernels::{Semiring, Tropical};
use apportion::matrix::{Element, LocalBlocks, Matrix};
use apportion::model::Model;
use apportion::plan::shapes::{Method, MethodOptions};
use apportion::plan::{Forecast, Layout, Metrics, Plan, Shape, repeat_block};
use apportion::platform::Platform;
use apportion::product::{MatmulJob, Operands, OwnRects, multiply};
use apportion::run::{Monitor, MpiLaunch, Session, World};
use apportion::schedule::{Flow, MatmulSchedule, ScheduleOptions};
use apportion::trace::Lane;

#[test]
#[ignore = "slow"]
fn every_combination_is_right_and_moves_what_the_formula_says() {
    if MpiLaunch::detect().is_some() {
        let world = World::mpi(&Monitor::new()).unwrap();
        on_rank(&world);
        world.finalize();
        return;
    }
    for mpi in [Mpi::Open, Mpi::Mpich] {
        for processes in 1..=4 {
            let Some(mut command) = mpi.program(processes, std::env::current_exe().unwrap()) else { break };
            let name = "mpi::combinations::every_combination_is_right_and_moves_what_the_formula_says";
            let output =
                command.args(["--exact", name, "--nocapture", "--include-ignored"]).output().unwrap();
            let (said, failed) =
                (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            assert!(output.status.success(), "{mpi:?} {processes}: {said}{failed}");
            // The requested number of ranks have run it, in one world.
            let ran = |text: &str| said.matches(text).count();
            assert_eq!((ran("1 passed"), ran("combinations were right")), (processes, 1), "{mpi:?}: {said}");
        }
    }
}

/// All of them, on this rank.
fn on_rank(world: &World) {
    let p = world.size();
    let orders: Vec<ScheduleOptions> = Flow::ALL
        .into_iter()
        .flat_map(|flow| {
            [(false, 1), (true, 2)].map(|(overlap, look_ahead)| {
                ScheduleOptions::new(flow, 8).with_look_ahead(u64::from(overlap) * look_ahead)
            })
        })
        .collect();
    let mut count = 0;
    // One element, primes, fewer rows and fewer columns than processors; with and without shares of zero.
    for (i, [m, k, n]) in [[1, 1, 1], [31, 29, 37], [2, 41, 3], [67, 5, 3]].into_iter().enumerate() {
        let shape = Shape::new(m, k, n, "test").unwrap();
        let weights: &[f64] = if i % 2 == 1 { &[5.0, 3.0, 2.0, 1.0] } else { &[1e6, 1.0, 3e5, 1.0] };
        let product = Product::new(Kernel::<f64>::plus_times(), shape, |i| (i % 11) as f64 - 5.0);
        for layout in layouts(shape, &weights[..p]) {
            for order in &orders {
                product.check(&layout, *order, world);
                count += 1;
            }
        }
    }
    let shape = Shape::new(31, 29, 37, "test").unwrap();
    let layouts = layouts(shape, &[5.0, 3.0, 2.0, 1.0][..p]);
    let every = |count: &mut usize, check: &dyn Fn(&Layout, ScheduleOptions)| {
        for order in &orders {
            check(&layouts[*count % layouts.len()], *order);
            *count += 1;
        }
    };
    let real = Product::new(Kernel::<f32>::plus_times(), shape, |i| (i % 11) as f32 - 5.0);
    every(&mut count, &|layout, order| real.check(layout, order, world));
    let truth = Product::new(Kernel::or_and(), shape, |i| u8::from(i % 7 == 0));
    every(&mut count, &|layout, order| truth.check(layout, order, world));
    for semiring in [Semiring::MaxPlus, Semiring::MinPlus] {
        let f64s = tropical(semiring, shape, |i| (i % 11) as f64 - 5.0);
        let f32s = tropical(semiring, shape, |i| (i % 11) as f32 - 5.0);
        let i64s = tropical(semiring, shape, |i| (i % 11) as i64 - 5);
        let i32s = tropical(semiring, shape, |i| (i % 11) as i32 - 5);
        every(&mut count, &|layout, order| f64s.check(layout, order, world));
        every(&mut count, &|layout, order| f32s.check(layout, order, world));
        every(&mut count, &|layout, order| i64s.check(layout, order, world));
        every(&mut count, &|layout, order| i32s.check(layout, order, world));
    }
    if world.rank() == 0 {
        println!("{count} combinations were right");
    }
}

/// One layout of every method that supports this number of processors, and one that repeats a block.
fn layouts(shape: Shape, weights: &[f64]) -> Vec<Layout> {
    let groups = (0..weights.len()).collect::<Vec<_>>().chunks(2).map(<[usize]>::to_vec).collect();
    let terms = MethodOptions { groups: Some(groups), ..MethodOptions::default() };
    let mut all: Vec<Layout> =
        Method::all().flat_map(|method| method.layout(shape, weights, &terms)).collect();
    assert!(
        all.len() > if weights.len() == 1 { 2 } else { 6 } || shape.m == 1,
        "{} methods serve",
        all.len()
    );
    let block = Shape::new(5, shape.k, 7, "test").unwrap();
    all.push(repeat_block(shape, &Method::Columns.layout(block, weights, &terms).unwrap()).unwrap());
    all
}

fn tropical<T: Element + Tropical>(semiring: Semiring, shape: Shape, value: fn(usize) -> T) -> Product<T> {
    Product::new(Kernel::tropical(semiring).unwrap(), shape, value)
}

/// Factors of small whole numbers and zeros of the semiring, and their product by definition.
struct Product<T> {
    kernel: Kernel<T>,
    a: Matrix<T>,
    b: Matrix<T>,
    c: Matrix<T>,
}

impl<T: Element> Product<T> {
    fn new(kernel: Kernel<T>, shape: Shape, value: fn(usize) -> T) -> Self {
        let [m, k, n] = [shape.m, shape.k, shape.n].map(|x| x as usize);
        let fill = |rows, cols, by| {
            let element = |i| if i % 6 == 5 { kernel.zero() } else { value(i * by + 2) };
            Matrix::new(rows, cols, (0..rows * cols).map(element).collect())
        };
        let (a, b): (Matrix<T>, Matrix<T>) = (fill(m, k, 7), fill(k, n, 5));
        let columns: Vec<Vec<T>> = (0..n).map(|j| (0..k).map(|l| b.row(l)[j]).collect()).collect();
        let c = (0..m * n).map(|at| kernel.entry(a.row(at / n), &columns[at % n])).collect();
        Self { kernel, a, b, c: Matrix::new(m, n, c) }
    }

    /// This rank's parts of the product, and the three counts.
    fn check(&self, layout: &Layout, order: ScheduleOptions, world: &World) {
        // Some flows cannot use layouts that cut the inner dimension.
        if order.check_layout(layout).is_err() {
            return;
        }
        let what = format!("{} {order:?} {layout:?}", self.kernel.name());
        let schedule = MatmulSchedule::new(layout, order);
        let own = OwnRects::of(&schedule, world);
        let (a, b) = (cut(&self.a, &own.a), cut(&self.b, &own.b));
        let platform = Platform::from_speeds(&vec![1.0; world.size()]).unwrap();
        let models = vec![Model::constant("p", 1.0).unwrap(); world.size()];
        let plan = Plan::of_layout("test", platform.names(), layout.clone(), 1.0);
        // The forecast does not matter here.
        let forecast = Forecast { seconds: 1.0, compute: Vec::new(), communicate: Vec::new() };
        let job = MatmulJob::new(self.kernel, &plan, order, &models, 1).with_forecast(Some(forecast));
        let monitor = Monitor::new();
        let session = Session::new(world, &platform, &monitor, job.work());
        let (c, report) = multiply(Operands::new(&a, &b), &job, &session).unwrap();
        assert_eq!(c, cut(&self.c, &own.c), "rank {}: {what}", world.rank());
        let sum = |of: fn(&Lane) -> u64| report.trace.lanes.iter().map(of).sum::<u64>();
        let counts = [sum(|lane| lane.sent.iter().sum()), sum(|lane| lane.received.iter().sum())];
        let moved = Metrics::of_layout(layout, 1.0).volume.unwrap();
        assert_eq!(counts, [moved, moved], "{what}");
    }
}

fn cut<T: Element>(matrix: &Matrix<T>, rects: &[Rect]) -> LocalBlocks<T> {
    let part = |&rect: &Rect| {
        let cols = rect.cols.start as usize..rect.cols.end as usize;
        (
            rect,
            (rect.rows.start..rect.rows.end)
                .flat_map(|i| matrix.row(i as usize)[cols.clone()].to_vec())
                .collect(),
        )
    };
    rects.iter().map(part).collect()
}
