//! The engine against three loops, and the three-count law at run time.

use super::*;
use crate::kernels::Semiring;
use crate::plan::{Layout, Metrics, Shape, repeated, shapes};
use crate::platform::Network;
use crate::schedule::{Flow, ScheduleOptions};
use proptest::prelude::*;

fn factors(shape: Shape) -> (Matrix<f64>, Matrix<f64>) {
    let fill = |rows: u64, cols: u64, seed: u64| {
        let data = (0..rows * cols).map(|i| ((i * 7 + seed) % 11) as f64 - 5.0).collect();
        Matrix::new(rows as usize, cols as usize, data)
    };
    (fill(shape.m, shape.k, 3), fill(shape.k, shape.n, 8))
}

fn naive(a: &Matrix<f64>, b: &Matrix<f64>) -> Vec<f64> {
    let mut c = vec![0.0; a.rows() * b.cols()];
    for i in 0..a.rows() {
        for x in 0..a.cols() {
            for j in 0..b.cols() {
                c[i * b.cols() + j] += a.row(i)[x] * b.row(x)[j];
            }
        }
    }
    c
}

fn platform(p: usize) -> Platform {
    Platform::from_speeds(&vec![1.0; p]).unwrap()
}

fn layouts(shape: Shape, weights: &[f64]) -> Vec<Layout> {
    let mut out = vec![shapes::rows(shape, weights).unwrap(), shapes::columns(shape, weights).unwrap()];
    out.extend(shapes::straight_line(shape, weights));
    out.extend(shapes::square_corner(shape, weights));
    // Block-cyclic: a generalised block of 5 x 7 that recurs, cut off at the ends.
    let block = Shape::new(5, shape.k, 7, "test").unwrap();
    let blocks = [shapes::columns(block, weights), shapes::square_corner(block, weights)];
    out.extend(blocks.iter().flatten().map(|block| repeated(shape, block).unwrap()));
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    /// Every flow on every layout computes the product and moves what the formula says.
    #[test]
    fn products_are_right_and_bytes_are_counted(
        m in 1u64..20, k in 1u64..20, n in 1u64..20, block in 1u64..24, overlap: bool, look_ahead in 1u64..4,
        weights in prop::collection::vec(0.1f64..10.0, 1..6),
    ) {
        let shape = Shape::new(m, k, n, "test").unwrap();
        let (a, b) = factors(shape);
        let expected = naive(&a, &b);
        for layout in layouts(shape, &weights) {
            let metrics = Metrics::of_layout(&layout, 1.0);
            for flow in Flow::ALL {
                let schedule = MatmulSchedule::new(&layout, ScheduleOptions::new(flow, block).with_look_ahead(u64::from(overlap) * look_ahead));
                let run = run_threads(&a, &b, &schedule, &platform(weights.len()), &Monitor::new()).unwrap();
                // Small whole numbers: exact.
                prop_assert_eq!(run.c.as_slice(), &expected[..]);
                if !matches!(flow, Flow::Ring | Flow::Broadcast) {
                    prop_assert_eq!(&run.trace.volume_matrix(), metrics.volume_matrix.as_ref().unwrap());
                }
                let sent: u64 = run.trace.lanes.iter().flat_map(|l| &l.sent).sum();
                prop_assert_eq!(sent, metrics.volume.unwrap());
            }
        }
    }
}

/// Every semiring on every flow and layout, one or three threads per processor, against the definition.
fn agrees<T: Element>(
    kernel: Kernel<T>,
    shape: Shape,
    weights: &[f64],
    order: (u64, bool, usize),
    value: fn(usize) -> T,
) {
    let (block, overlap, cores) = order;
    let fill = |rows: u64, cols: u64, by: usize| {
        let data =
            (0..(rows * cols) as usize).map(|i| if i % 6 == 5 { kernel.zero() } else { value(i * by + 2) });
        Matrix::new(rows as usize, cols as usize, data.collect())
    };
    let (a, b) = (fill(shape.m, shape.k, 7), fill(shape.k, shape.n, 5));
    let columns: Vec<Vec<T>> = (0..b.cols()).map(|j| (0..b.rows()).map(|p| b.row(p)[j]).collect()).collect();
    let expected: Vec<T> = (0..a.rows())
        .flat_map(|i| columns.iter().map(move |column| (i, column)))
        .map(|(i, column)| kernel.entry(a.row(i), column))
        .collect();
    let mut platform = platform(weights.len());
    platform.processors[0].cores = (0..cores).collect();
    for layout in layouts(shape, weights) {
        let metrics = Metrics::of_layout(&layout, 1.0);
        for flow in Flow::ALL {
            let schedule = MatmulSchedule::new(
                &layout,
                ScheduleOptions::new(flow, block).with_look_ahead(u64::from(overlap)),
            );
            let run = run_kernel(kernel, (&a, &b), &schedule, &platform, &Monitor::new()).unwrap();
            // Small whole numbers: exact.
            assert_eq!(run.c.as_slice(), expected, "{} {flow}", kernel.name());
            if !matches!(flow, Flow::Ring | Flow::Broadcast) {
                assert_eq!(&run.trace.volume_matrix(), metrics.volume_matrix.as_ref().unwrap());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10))]
    #[test]
    fn every_semiring_on_every_flow_and_layout(
        m in 1u64..20, k in 1u64..20, n in 1u64..70, block in 1u64..24, overlap: bool, cores in 1usize..4,
        weights in prop::collection::vec(0.1f64..10.0, 1..6),
    ) {
        let shape = Shape::new(m, k, n, "test").unwrap();
        let order = (block, overlap, cores);
        for semiring in [Semiring::PlusTimes, Semiring::MaxPlus, Semiring::MinPlus] {
            agrees(Kernel::<f64>::over(semiring).unwrap(), shape, &weights, order, |i| (i % 11) as f64 - 5.0);
            agrees(Kernel::<f32>::over(semiring).unwrap(), shape, &weights, order, |i| (i % 11) as f32 - 5.0);
        }
        agrees(Kernel::or_and(), shape, &weights, order, |i| if i % 11 < 3 { (i % 255) as u8 } else { 0 });
    }
}

#[test]
fn several_threads_per_processor_compute_the_same() {
    let shape = Shape::new(37, 29, 41, "test").unwrap();
    let (a, b) = factors(shape);
    let layout = shapes::square_corner(shape, &[4.0, 1.0]).unwrap();
    let schedule = MatmulSchedule::new(&layout, ScheduleOptions::new(Flow::OneToAll, 8).with_look_ahead(1));
    let mut platform = platform(2);
    platform.processors[0].cores = vec![0, 1, 2];
    let run = run_threads(&a, &b, &schedule, &platform, &Monitor::new()).unwrap();
    assert_eq!(run.c.as_slice(), &naive(&a, &b)[..]);
}

/// 2 x 40 x 20 elements of 8 bytes at 64 kB/s on a half-duplex wire: at least 0.2 s, and not much more.
#[test]
fn an_emulated_wire_takes_its_time() {
    let shape = Shape::new(40, 40, 40, "test").unwrap();
    let (a, b) = factors(shape);
    let layout = shapes::square_corner(shape, &[3.0, 1.0]).unwrap();
    let mut platform = platform(2);
    platform.network = Network::uniform(0.0, 64_000.0);
    platform.network.emulate = true;
    platform.network.duplex = false;
    let schedule = MatmulSchedule::new(&layout, ScheduleOptions::new(Flow::Bulk, 40));
    let run = run_threads(&a, &b, &schedule, &platform, &Monitor::new()).unwrap();
    assert!(run.trace.seconds() >= 0.2);
    assert_eq!(run.c.as_slice(), &naive(&a, &b)[..]);
}

#[test]
fn a_stopped_run_ends_with_interrupted() {
    let shape = Shape::new(40, 40, 40, "test").unwrap();
    let (a, b) = factors(shape);
    let layout = shapes::rows(shape, &[1.0; 3]).unwrap();
    let mut platform = platform(3);
    platform.network = Network::uniform(1e6, 1.0);
    platform.network.emulate = true;
    let schedule = MatmulSchedule::new(&layout, ScheduleOptions::new(Flow::OneToAll, 8));
    let monitor = Monitor::new();
    let error = std::thread::scope(|scope| {
        let run = scope.spawn(|| run_threads(&a, &b, &schedule, &platform, &monitor));
        std::thread::sleep(std::time::Duration::from_millis(30));
        monitor.stop();
        run.join().unwrap().unwrap_err()
    });
    assert!(matches!(error, Error::Interrupted));
}

/// The last worker finds rows missing and panics; the others wait for its data and must be told.
#[test]
fn a_lost_worker_ends_the_run_with_its_name() {
    let shape = Shape::new(40, 40, 40, "test").unwrap();
    let (_, b) = factors(shape);
    let short = Matrix::zeros(30, 40);
    let layout = shapes::columns(shape, &[1.0; 4]).unwrap();
    let platform = platform(4);
    let monitor = Monitor::new();
    for flow in Flow::ALL {
        let schedule = MatmulSchedule::new(&layout, ScheduleOptions::new(flow, 8));
        let shared = Shared {
            kernel: Kernel::plus_times(),
            factors: Factors { a: &short, b: &b },
            schedule: &schedule,
            platform: &platform,
            post: Mailboxes::new(4, &platform.network),
            halt: StopSignal::new(&monitor),
            gate: StartBarrier::new(4),
            epoch: OnceLock::new(),
        };
        let Err(error) = all_workers(&shared, vec![None; 4]) else { panic!("the run should fail") };
        assert_eq!(error.exit_code(), 1);
        assert!(error.to_string().starts_with("processor p"), "{error}");
    }
}
