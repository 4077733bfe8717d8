//! The product on every engine against three loops, and the equality of the three counts of elements at run
//! time.

mod boxes;

use super::*;
use crate::error::Error;
use crate::geometry::Span;
use crate::kernels::Semiring;
use crate::matrix::{Matrix, views_of};
use crate::plan::shapes::LayoutMethod;
use crate::plan::{Layout, Metrics, Shape, repeat_block, shapes};
use crate::platform::{Network, Platform};
use crate::product::OwnRects;
use crate::product::multiply::data_path;
use crate::product::tests::{PATHS, on, parts, whole};
use crate::run::trace_of_all;
use crate::run::{Monitor, World};
use crate::schedule::{Flow, ScheduleOptions, Step};
use crate::trace::Trace;
use proptest::prelude::*;
use std::sync::Arc;

/// C and the traces of all processors.
fn product<T: Element>(
    path: DataPath,
    kernel: Kernel<T>,
    [a, b]: [&Matrix<T>; 2],
    schedule: &MatmulSchedule,
    with: (&Platform, &Monitor),
) -> Result<(Matrix<T>, Trace)> {
    let one = |session: &Session<'_>| {
        assert_eq!(data_path(session), path);
        let (world, own) = (session.world(), OwnRects::of(schedule, session.world()));
        let (a, b) = (clipped(a, &own.a), clipped(b, &own.b));
        let mut c = empty_blocks(&own.c);
        let lanes = computed(kernel, schedule, [views_of(&a), views_of(&b)], &mut c, (session, path, 0.0))?.0;
        Ok((c, trace_of_all(lanes, world)?))
    };
    let work = schedule.layout().shape().flops() / 2.0;
    let (blocks, traces): (Vec<_>, Vec<_>) = on(path, with, work, one)?.into_iter().unzip();
    let c = whole((a.rows(), b.cols()), &blocks);
    Ok((c, traces.into_iter().next().expect("a world has a rank")))
}

/// These rectangles, cut off at the edge of the matrix.
fn clipped<T: Element>(matrix: &Matrix<T>, rects: &[Rect]) -> LocalBlocks<T> {
    let all = Rect::new(Span::new(0, matrix.rows() as u64), Span::new(0, matrix.cols() as u64));
    parts(matrix, &rects.iter().map(|rect| rect.intersect(all)).collect::<Vec<_>>())
}

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
    let mut out = vec![
        shapes::Rows::default().layout(shape, weights).unwrap(),
        shapes::Columns::default().layout(shape, weights).unwrap(),
    ];
    out.extend(shapes::StraightLine.layout(shape, weights));
    out.extend(shapes::SquareCorner.layout(shape, weights));
    // Block-cyclic: a generalised block of 5 x 7 that repeats and is cut off at the edges.
    let block = Shape::new(5, shape.k, 7, "test").unwrap();
    let blocks =
        [shapes::Columns::default().layout(block, weights), shapes::SquareCorner.layout(block, weights)];
    out.extend(blocks.iter().flatten().map(|block| repeat_block(shape, block).unwrap()));
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    /// Every flow on every layout and engine computes the product and moves the predicted number of elements.
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
            for (flow, path) in Flow::ALL.into_iter().flat_map(|flow| PATHS.map(|path| (flow, path))) {
                let order = ScheduleOptions::new(flow, block).with_look_ahead(u64::from(overlap) * look_ahead);
                let schedule = MatmulSchedule::new(&layout, order);
                let with = (&platform(weights.len()), &Monitor::new());
                let (c, trace) = product(path, Kernel::plus_times(), [&a, &b], &schedule, with).unwrap();
                // Small whole numbers: exact.
                prop_assert_eq!(c.as_slice(), &expected[..]);
                if !matches!(flow, Flow::Ring | Flow::Broadcast) {
                    prop_assert_eq!(&trace.volume_matrix(), metrics.volume_matrix.as_ref().unwrap());
                }
                let sent: u64 = trace.lanes.iter().flat_map(|l| &l.sent).sum();
                prop_assert_eq!(sent, metrics.volume.unwrap());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    /// Ranks that share memory compute what others do: in messages above and below the size from which they
    /// use it.
    #[test]
    fn ranks_that_share_memory_compute_the_same(
        m in 30u64..120, k in 30u64..120, n in 30u64..120, block in 5u64..120, look_ahead in 0u64..4,
        weights in prop::collection::vec(0.1f64..10.0, 1..5),
    ) {
        let shape = Shape::new(m, k, n, "test").unwrap();
        let (a, b) = factors(shape);
        let expected = naive(&a, &b);
        let (platform, monitor) = (platform(weights.len()), Monitor::new());
        let layouts = layouts(shape, &weights).into_iter();
        for (layout, flow) in layouts.flat_map(|layout| Flow::ALL.map(|flow| (layout.clone(), flow))) {
            let order = ScheduleOptions::new(flow, block).with_look_ahead(look_ahead);
            let schedule = MatmulSchedule::new(&layout, order);
            let run = |shares: bool| {
                let blocks = World::threads(weights.len(), &monitor, |world| {
                    if shares {
                        world.share_memory()?;
                        assert_eq!(world.shares_memory(), cfg!(target_os = "linux") && world.size() > 1);
                    }
                    let session = Session::new(world, &platform, &monitor, 1.0);
                    let own = OwnRects::of(&schedule, world);
                    let (a, b) = (parts(&a, &own.a), parts(&b, &own.b));
                    let sides = || [views_of(&a), views_of(&b)];
                    let mut c = empty_blocks(&own.c);
                    // Twice: the second time in memory that was used before.
                    for _ in 0..2 {
                        let how = (&session, DataPath::Packed, 0.0);
                        computed(Kernel::plus_times(), &schedule, sides(), &mut c, how)?;
                    }
                    Ok((c, world.received_words()))
                });
                let (blocks, received): (Vec<_>, Vec<u64>) = blocks.unwrap().into_iter().unzip();
                (whole((a.rows(), b.cols()), &blocks), received)
            };
            let (c, received) = run(true);
            // Small whole numbers: exact.
            prop_assert_eq!(c.as_slice(), &expected[..]);
            let elements = 2 * Metrics::of_layout(&layout, 1.0).volume.unwrap();
            prop_assert!(received.iter().sum::<u64>() >= elements);
        }
    }
}

/// A message that is all of an operand stays where it arrived until the operand is freed; another is copied.
#[test]
fn a_whole_operand_stays_where_it_arrived() {
    let shape = Shape::new(4, 10, 6, "test").unwrap();
    let (a, b) = factors(shape);
    let layout = shapes::Columns::default().layout(shape, &[1.0, 1.0]).unwrap();
    // Rank 0 owns the columns of A up to 5: of block 0 all, of block 1 one, of block 2 none.
    let schedule = MatmulSchedule::new(&layout, ScheduleOptions::new(Flow::OneToAll, 4));
    let own = [Rect::new(Span::new(0, 4), Span::new(0, 5)), Rect::new(Span::new(0, 10), Span::new(0, 3))];
    let half = [parts(&a, &own[..1]), parts(&b, &own[1..])];
    let mut kept = Vec::new();
    let mut c = empty_blocks(&[Rect::new(Span::new(0, 4), Span::new(0, 3))]);
    let sides = [views_of(&half[0]), views_of(&half[1])];
    let product = Product::new(Kernel::plus_times(), &schedule, sides, &mut c, 0..1, DataPath::Packed);
    let mut held = product.hold(Rank(0));
    for step in schedule.steps(Rank(0)) {
        match step {
            Step::PostReceive(message) => {
                for piece in &message.pieces {
                    let memory = Arc::new(parts(&a, &[piece.rect]).remove(0).1);
                    product.accept(&mut held, piece, &Parcel::new(memory.clone()));
                    let stays = piece.rect.cols.start == 8;
                    assert_eq!(Arc::strong_count(&memory), 1 + usize::from(stays), "{piece:?}");
                    kept.push(memory);
                }
            }
            Step::Compute(update) => {
                product.compute(&mut held, &update, 1).unwrap();
            }
            Step::Free(piece) => product.free(&mut held, &piece),
            _ => {}
        }
    }
    assert!(kept.len() == 2 && kept.iter().all(|memory| Arc::strong_count(memory) == 1));
    drop(held);
    drop(product);
    let expected = naive(&a, &b);
    let right = (0..4).flat_map(|i| expected[6 * i..6 * i + 3].to_vec());
    assert!(c[0].1.iter().copied().eq(right));
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
        for (flow, path) in Flow::ALL.into_iter().flat_map(|flow| PATHS.map(|path| (flow, path))) {
            let order = ScheduleOptions::new(flow, block).with_look_ahead(u64::from(overlap));
            let schedule = MatmulSchedule::new(&layout, order);
            let with = (&platform, &Monitor::new());
            let (c, trace) = product(path, kernel, [&a, &b], &schedule, with).unwrap();
            // Small whole numbers: exact.
            assert_eq!(c.as_slice(), expected, "{} {flow} {path:?}", kernel.name());
            if !matches!(flow, Flow::Ring | Flow::Broadcast) {
                assert_eq!(&trace.volume_matrix(), metrics.volume_matrix.as_ref().unwrap());
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
    let layout = shapes::SquareCorner.layout(shape, &[4.0, 1.0]).unwrap();
    let order = ScheduleOptions::new(Flow::OneToAll, 8).with_look_ahead(1);
    let schedule = MatmulSchedule::new(&layout, order);
    let mut platform = platform(2);
    platform.processors[0].cores = vec![0, 1, 2];
    for path in PATHS {
        let with = (&platform, &Monitor::new());
        let (c, _) = product(path, Kernel::plus_times(), [&a, &b], &schedule, with).unwrap();
        assert_eq!(c.as_slice(), &naive(&a, &b)[..]);
    }
}

/// 2 x 40 x 20 elements of 8 bytes at 64 kB/s on a half-duplex wire: at least 0.2 s, and not much more.
#[test]
fn an_emulated_wire_takes_its_time() {
    let shape = Shape::new(40, 40, 40, "test").unwrap();
    let (a, b) = factors(shape);
    let layout = shapes::SquareCorner.layout(shape, &[3.0, 1.0]).unwrap();
    let mut platform = platform(2);
    platform.network = Network::uniform(0.0, 64_000.0);
    platform.network.emulate = true;
    platform.network.duplex = false;
    let schedule = MatmulSchedule::new(&layout, ScheduleOptions::new(Flow::Bulk, 40));
    let with = (&platform, &Monitor::new());
    // An emulated network requires copies, whether they were requested or not.
    let (c, trace) = product(DataPath::Copied, Kernel::plus_times(), [&a, &b], &schedule, with).unwrap();
    assert!(trace.seconds() >= 0.2);
    assert_eq!(c.as_slice(), &naive(&a, &b)[..]);
}

#[test]
fn a_stopped_run_ends_with_interrupted() {
    let shape = Shape::new(40, 40, 40, "test").unwrap();
    let (a, b) = factors(shape);
    let layout = shapes::Rows::default().layout(shape, &[1.0; 3]).unwrap();
    let mut platform = platform(3);
    platform.network = Network::uniform(1e6, 1.0);
    platform.network.emulate = true;
    let schedule = MatmulSchedule::new(&layout, ScheduleOptions::new(Flow::OneToAll, 8));
    let monitor = Monitor::new();
    let error = std::thread::scope(|scope| {
        let (with, schedule, [a, b]) = ((&platform, &monitor), &schedule, [&a, &b]);
        let run =
            scope.spawn(move || product(DataPath::Copied, Kernel::plus_times(), [a, b], schedule, with));
        std::thread::sleep(std::time::Duration::from_millis(30));
        monitor.stop();
        run.join().unwrap().unwrap_err()
    });
    assert!(matches!(error, Error::Interrupted));
}

/// Ranks that compute for hours: emulated speeds, without a network.
#[test]
fn stopped_ranks_end_with_interrupted() {
    let shape = Shape::new(40, 40, 40, "test").unwrap();
    let (a, b) = factors(shape);
    let layout = shapes::Rows::default().layout(shape, &[1.0; 3]).unwrap();
    let mut platform = platform(3);
    platform.processors[1].emulated = Some("peak 1".parse().unwrap());
    let schedule = MatmulSchedule::new(&layout, ScheduleOptions::new(Flow::OneToAll, 8));
    for path in PATHS {
        let monitor = Monitor::new();
        let error = std::thread::scope(|scope| {
            let (with, schedule, [a, b]) = ((&platform, &monitor), &schedule, [&a, &b]);
            let run = scope.spawn(move || product(path, Kernel::plus_times(), [a, b], schedule, with));
            std::thread::sleep(std::time::Duration::from_millis(30));
            monitor.stop();
            run.join().unwrap().unwrap_err()
        });
        assert!(matches!(error, Error::Interrupted), "{path:?}: {error}");
    }
}

/// Some workers find columns of A missing and panic; the others wait for their data and must be stopped.
#[test]
fn a_lost_worker_ends_the_run_with_its_name() {
    let shape = Shape::new(40, 40, 40, "test").unwrap();
    let (a, b) = factors(shape);
    let all = Span::new(0, 40);
    let short = parts(&a, &[Rect::new(all, Span::new(0, 35))]).remove(0).1;
    let short = Matrix::new(40, 35, short);
    let layout = shapes::Columns::default().layout(shape, &[1.0; 4]).unwrap();
    let platform = platform(4);
    for (flow, path) in Flow::ALL.into_iter().flat_map(|flow| PATHS.map(|path| (flow, path))) {
        let schedule = MatmulSchedule::new(&layout, ScheduleOptions::new(flow, 8));
        let with = (&platform, &Monitor::new());
        let error = product(path, Kernel::plus_times(), [&short, &b], &schedule, with).unwrap_err();
        assert!(matches!(error, Error::WorkerLost { .. }), "{error}");
        assert_eq!(error.exit_code(), 1);
        assert!(error.to_string().starts_with("processor p"), "{error}");
        // In shared memory each worker reads A in place. With memory of their own, the owners of the missing
        // columns fail.
        let lost: Vec<String> = (0..4)
            .filter(|&rank| schedule.own(Rank(rank)).0.iter().any(|part| part.cols.end > 35))
            .map(|rank| format!("processor p{rank} "))
            .collect();
        assert!(lost.len() < 4, "some have all they own");
        let named = lost.iter().any(|lost| error.to_string().starts_with(lost));
        assert!(path != DataPath::Packed || named, "{error}");
    }
}

/// A panic on any thread of a pool ends the run, in which the others wait for nobody.
#[test]
fn a_panic_in_a_pool_ends_the_run_with_its_name() {
    fn fails_below(a: View<f64>, _: View<f64>, _: ViewMut<f64>) {
        assert!(a.row(0)[0] < 30.0, "a row that is too large");
    }
    let (m, k) = (64, 8);
    let a = Matrix::new(m, k, (0..m * k).map(|i| (i / k) as f64).collect::<Vec<f64>>());
    let b = Matrix::zeros(k, m);
    let shape = Shape::new(m as u64, k as u64, m as u64, "test").unwrap();
    for threads in [1, 2, 5] {
        let layout = shapes::Rows::default().layout(shape, &[1.0, 1.0]).unwrap();
        let mut platform = platform(2);
        platform.processors[1].cores = vec![0; threads];
        let schedule = MatmulSchedule::new(&layout, ScheduleOptions::new(Flow::OneToAll, 8));
        for path in PATHS {
            let kernel = Kernel::plus_times().with_update(fails_below);
            let with = (&platform, &Monitor::new());
            let error = product(path, kernel, [&a, &b], &schedule, with).unwrap_err();
            assert!(error.to_string().contains("processor p1"), "{error}");
            assert!(error.to_string().contains("a row that is too large"), "{error}");
        }
    }
}

/// A tail changes no byte, also where several threads share narrow rectangles.
#[test]
fn a_tail_changes_no_byte_on_several_threads() {
    let shape = Shape::new(1000, 700, 50, "test").unwrap();
    let value = |i: u64| (i as f64 * 0.618_033_988_75).fract() - 0.5;
    let fill = |rows: u64, cols: u64| {
        Matrix::new(rows as usize, cols as usize, (0..rows * cols).map(value).collect::<Vec<f64>>())
    };
    let (a, b) = (fill(shape.m, shape.k), fill(shape.k, shape.n));
    let mut platform = platform(2);
    platform.processors[0].cores = vec![0; 4];
    let layout = shapes::Rows::default().layout(shape, &[2.0, 1.0]).unwrap();
    let schedule = MatmulSchedule::new(&layout, ScheduleOptions::new(Flow::OneToAll, 350));
    let (monitor, kernel) = (Monitor::new(), Kernel::<f64>::plus_times());
    let world = World::solo(&monitor);
    let product = |tail: f64| {
        let session = Session::new(&world, &platform, &monitor, 1.0);
        let own = OwnRects::of(&schedule, &world);
        let (a, b) = (parts(&a, &own.a), parts(&b, &own.b));
        let mut c = empty_blocks(&own.c);
        let sides = [views_of(&a), views_of(&b)];
        computed(kernel, &schedule, sides, &mut c, (&session, DataPath::InPlace, tail)).unwrap();
        c.into_iter().flat_map(|(_, block)| block).map(f64::to_bits).collect::<Vec<u64>>()
    };
    let right = product(0.0);
    for tail in [0.1, 0.3, 0.5] {
        assert!(product(tail) == right, "{tail}");
    }
}
