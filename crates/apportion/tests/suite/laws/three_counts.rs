//! Elements by formula on the layout = summed over the schedule = counted by the simulator = counted while
//! running, in one memory and on ranks with memory of their own, by direction, for every method, flow and
//! overlap.

use super::{layouts, shape};
use apportion::geometry::{Rank, Rect};
use apportion::kernels::Kernel;
use apportion::kernels::Semiring;
use apportion::matrix::{Element, LocalBlocks, Matrix};
use apportion::model::Model;
use apportion::plan::shapes::{LayoutMethod, Method, MethodOptions, Triangle};
use apportion::plan::{Forecast, Layout, Metrics, Plan};
use apportion::platform::{Network, Platform, Topology};
use apportion::product::{MatmulJob, Operands, OwnRects, multiply};
use apportion::run::{Monitor, Session, World};
use apportion::schedule::{
    Application, DataPath, Flow, MatmulSchedule, Messages, ScheduleOptions, predicted_memory,
};
use apportion::simulate::{CostModel, simulate};
use apportion::trace::Trace;
use apportion_testing::cases;
use proptest::prelude::*;

/// `[to][from]`, by adding up what the schedule's steps send.
fn sent_by(schedule: &MatmulSchedule) -> Vec<Vec<u64>> {
    let p = schedule.processors();
    let mut table = vec![vec![0; p]; p];
    for rank in (0..p).map(Rank) {
        for step in schedule.steps(rank) {
            for message in step.sent() {
                assert_eq!(message.from, rank);
                table[message.to.0][rank.0] += message.elements();
            }
        }
    }
    table
}

/// `[to][from]`, by what the lanes say was sent.
fn sent_in(trace: &Trace) -> Vec<Vec<u64>> {
    let p = trace.lanes.len();
    (0..p).map(|to| (0..p).map(|from| trace.lanes[from].sent[to]).collect()).collect()
}

/// Elements that each processor receives.
fn received(table: &[Vec<u64>]) -> Vec<u64> {
    table.iter().map(|row| row.iter().sum()).collect()
}

fn matrix(rows: u64, cols: u64, seed: u64) -> Matrix<f64> {
    let data = (0..rows * cols).map(|i| ((i * 5 + seed) % 17) as f64 - 8.0).collect();
    Matrix::new(rows as usize, cols as usize, data)
}

fn check(layout: &Layout, order: ScheduleOptions) {
    let p = layout.processors();
    let metrics = Metrics::of_layout(layout, 1.0);
    let formula = metrics.volume_matrix.expect("few processors");
    assert_eq!(formula.iter().flatten().sum::<u64>(), metrics.volume.unwrap());
    let schedule = MatmulSchedule::new(layout, order);
    let counted = sent_by(&schedule);
    if order.flow == Flow::Ring {
        // Neighbours pass on what others own: by receiver the counts agree, by direction they differ.
        assert_eq!(received(&counted), received(&formula), "by schedule, {order:?}");
    } else if order.flow == Flow::Broadcast && layout.parts().iter().all(|p| p.cols.len() == layout.shape().n)
    {
        // On strips, B is divided into equal column blocks: the total is the same, the senders differ.
        let sum = |table: &[Vec<u64>]| table.iter().flatten().sum::<u64>();
        assert_eq!(sum(&counted), sum(&formula), "by schedule, {order:?}");
    } else {
        assert_eq!(counted, formula, "by schedule, {order:?}");
    }

    let network = Network::uniform(1e-5, 1e8);
    let costs = CostModel { rates: &vec![1e9; p], network: &network, element: 8 };
    let simulated = simulate(&schedule, costs).unwrap();
    assert_eq!(simulated.volume_matrix(), counted, "received in the simulator, {order:?}");
    assert_eq!(sent_in(&simulated), counted, "sent in the simulator, {order:?}");

    let s = layout.shape();
    let a = matrix(s.m, s.k, 3);
    let b = if layout.is_triangular() { a.transposed() } else { matrix(s.k, s.n, 11) };
    for path in [DataPath::InPlace, DataPath::Copied, DataPath::Packed] {
        let (c, trace) = run(path, Kernel::plus_times(), [&a, &b], &schedule);
        assert_eq!(trace.volume_matrix(), counted, "received, {path:?}, {order:?}");
        assert_eq!(sent_in(&trace), counted, "sent, {path:?}, {order:?}");
        check_memory(&schedule, path, &trace);
        assert_eq!(c, product(&a, &b), "small whole numbers: exact, {path:?}, {order:?}");
    }
    for semiring in [Semiring::MaxPlus, Semiring::MinPlus] {
        check_kernel(Kernel::<f64>::tropical(semiring).unwrap(), [&a, &b], &schedule, &counted);
    }
    let truth = |m: &Matrix<f64>| {
        Matrix::new(m.rows(), m.cols(), m.as_slice().iter().map(|x| u8::from(x % 3.0 == 0.0)).collect())
    };
    check_kernel(Kernel::or_and(), [&truth(&a), &truth(&b)], &schedule, &counted);
}

/// The same schedule over another semiring: each element by definition, and the same counts.
fn check_kernel<T: Element>(
    kernel: Kernel<T>,
    [a, b]: [&Matrix<T>; 2],
    schedule: &MatmulSchedule,
    counted: &[Vec<u64>],
) {
    let (order, semiring) = (schedule.order(), kernel.semiring());
    let (c, trace) = run(DataPath::InPlace, kernel, [a, b], schedule);
    assert_eq!(trace.volume_matrix(), counted, "received over {semiring}, {order:?}");
    let columns: Vec<Vec<T>> = (0..b.cols()).map(|j| (0..b.rows()).map(|p| b.row(p)[j]).collect()).collect();
    for i in 0..a.rows() {
        let row: Vec<T> = columns.iter().map(|column| kernel.entry(a.row(i), column)).collect();
        assert_eq!(c[i * b.cols()..][..b.cols()], row, "row {i} over {semiring}, {order:?}");
    }
}

/// C, and what all processors did: in one memory in place or copied, or on one rank each.
fn run<T: Element>(
    path: DataPath,
    kernel: Kernel<T>,
    [a, b]: [&Matrix<T>; 2],
    schedule: &MatmulSchedule,
) -> (Vec<T>, Trace) {
    let p = schedule.processors();
    let mut platform = Platform::from_speeds(&vec![1.0; p]).unwrap();
    if schedule.order().look_ahead > 1 {
        // Where the schedule orders its turns, sends wait for earlier receives.
        platform.network.topology = Topology::Bus;
    }
    let models = vec![Model::constant("p", 1.0).unwrap(); p];
    let plan = Plan::of_layout("test", platform.names(), schedule.layout().clone(), 1.0);
    // Simulated above.
    let forecast = Forecast { seconds: 1.0, compute: Vec::new(), communicate: Vec::new() };
    let job = MatmulJob::new(kernel, &plan, schedule.order(), &models, 1).with_forecast(Some(forecast));
    let monitor = Monitor::new();
    let one = |session: &Session<'_>| {
        let own = OwnRects::of(schedule, session.world());
        let (c, report) = multiply(Operands::new(&parts(a, &own.a), &parts(b, &own.b)), &job, session)?;
        Ok((c, report.trace))
    };
    let solo = World::solo(&monitor);
    let found = match path {
        DataPath::Packed => {
            World::threads(p, &monitor, |world| one(&Session::new(world, &platform, &monitor, job.work())))
        }
        path => one(&Session::new(&solo, &platform, &monitor, job.work()).copying(path == DataPath::Copied))
            .map(|one| vec![one]),
    };
    let mut c = vec![T::ZERO; a.rows() * b.cols()];
    let found = found.unwrap();
    for (rect, block) in found.iter().flat_map(|(blocks, _)| blocks) {
        let (first, width) = (rect.cols.start as usize, rect.cols.len() as usize);
        for (i, row) in (rect.rows.start as usize..).zip(block.chunks_exact(width.max(1))) {
            c[i * b.cols() + first..][..width].copy_from_slice(row);
        }
    }
    (c, found.into_iter().next().unwrap().1)
}

/// These rectangles of a matrix.
fn parts<T: Element>(matrix: &Matrix<T>, rects: &[Rect]) -> LocalBlocks<T> {
    let row = |rect: Rect, i: u64| &matrix.row(i as usize)[rect.cols.start as usize..rect.cols.end as usize];
    let part = |rect: Rect| (rect.rows.start..rect.rows.end).flat_map(|i| row(rect, i)).copied().collect();
    rects.iter().map(|rect| (*rect, part(*rect))).collect()
}

/// Bytes by formula = bytes counted while running: in place nothing beside the own parts. On a ring that
/// looks ahead, and on ranks of their own with look-ahead, the formula is a bound, and no more blocks above
/// the count than are looked ahead to.
fn check_memory(schedule: &MatmulSchedule, path: DataPath, trace: &Trace) {
    let (layout, order) = (schedule.layout(), schedule.order());
    let counted: Vec<u64> = trace.lanes.iter().map(|lane| lane.peak_bytes).collect();
    if path == DataPath::InPlace {
        let own = |rank: usize| {
            let (a, b) = schedule.own(Rank(rank));
            let operands: u64 = a.iter().chain(b).map(|part| part.rect().area()).sum();
            8 * (operands + layout.shares()[rank])
        };
        assert_eq!(counted, (0..layout.processors()).map(own).collect::<Vec<u64>>(), "own bytes, {order:?}");
    }
    let predicted = |order, path| predicted_memory(layout, order, 8, path);
    let ahead = order.overlaps() && order.flow != Flow::Bulk;
    if !(ahead && (path == DataPath::Packed || path == DataPath::Copied && order.flow == Flow::Ring)) {
        assert_eq!(predicted(order, path), counted, "bytes held, {path:?}, {order:?}");
        return;
    }
    let most = predicted(order, path);
    let least = predicted(order.with_look_ahead(1), DataPath::Copied);
    for ((most, least), counted) in most.into_iter().zip(least).zip(counted) {
        assert!(least <= counted && counted <= most, "{least} <= {counted} <= {most}, {path:?}, {order:?}");
    }
}

fn product(a: &Matrix<f64>, b: &Matrix<f64>) -> Vec<f64> {
    let mut c = vec![0.0; a.rows() * b.cols()];
    for (i, line) in c.chunks_exact_mut(b.cols()).enumerate() {
        for (x, &left) in a.row(i).iter().enumerate() {
            for (sum, right) in line.iter_mut().zip(b.row(x)) {
                *sum += left * right;
            }
        }
    }
    c
}

fn check_all(m: u64, k: u64, n: u64, weights: &[f64], block: u64) {
    for (_, layout) in layouts(shape(m, k, n), weights) {
        let mut orders = Flow::ALL.map(|flow| ScheduleOptions::new(flow, block)).to_vec();
        orders.push(ScheduleOptions::new(Flow::Bulk, block).with_messages(Messages::Separate));
        for order in orders {
            for (overlap, look_ahead) in [(false, 1), (true, 1), (true, 3)] {
                check(&layout, order.with_look_ahead(u64::from(overlap) * look_ahead));
            }
        }
    }
}

#[test]
fn awkward_sizes() {
    let sizes = [(1, 1, 1), (1, 40, 1), (2, 97, 3), (31, 1, 29), (17, 13, 11), (3, 5, 64)];
    let weights = [&[9.0, 1.0][..], &[1.0, 1.0], &[2.0], &[5.0, 1.0, 1.0], &[1.0; 7]];
    let all = sizes.into_iter().flat_map(|size| weights.map(|weights| (size, weights)));
    // Four sizes with different weights, or all with all.
    for ((m, k, n), weights) in all.step_by(cases(7, 1)) {
        check_all(m, k, n, weights, 7);
    }
}

/// With few blocks, the look-ahead reaches into the blocks of the next owners.
#[test]
fn look_ahead_beyond_the_blocks_of_one_owner() {
    for weights in [&[3.0, 2.0, 1.0][..], &[1.0, 1.0], &[5.0, 1.0, 1.0, 1.0, 2.0]] {
        for (blocks, look_ahead) in [(1, 1), (1, 2), (2, 3), (4, 6), (3, 20)] {
            let block = 24u64.div_ceil(blocks);
            for (_, layout) in layouts(shape(18, 24, 20), weights) {
                for flow in [Flow::Broadcast, Flow::OneToAll, Flow::Ring] {
                    check(&layout, ScheduleOptions::new(flow, block).with_look_ahead(look_ahead));
                }
            }
        }
    }
}

#[test]
fn blocks_as_small_and_as_large_as_can_be() {
    for block in [1, 23, u64::MAX, 6, 24].into_iter().take(cases(3, 5)) {
        check_all(21, 23, 19, &[3.0, 1.0], block);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(4, 25)))]
    #[test]
    fn any_size_and_weights(
        m in 1u64..18, k in 1u64..18, n in 1u64..18, block in 1u64..20,
        weights in prop::collection::vec(0.05f64..10.0, 1..5),
    ) {
        check_all(m, k, n, &weights, block);
    }
}

/// A A^T by its lower triangle, with strips that have squares on the diagonal and rectangles between them: the whole of
/// it comes out.
#[test]
fn symmetric_products() {
    let weights = [&[9.0, 1.0][..], &[2.0], &[5.0, 0.0, 1.0, 3.0], &[1.0; 7]];
    let sizes = [(1, 1), (2, 13), (37, 5), (97, 31), (130, 3), (301, 2)];
    let all = sizes.into_iter().flat_map(|size| weights.map(|weights| (size, weights)));
    for ((n, k), weights) in all.step_by(cases(3, 1)) {
        let layout = Triangle.layout(shape(n, k, n), weights).unwrap();
        for flow in Flow::ALL {
            for look_ahead in [0, 1, 3] {
                check(&layout, ScheduleOptions::new(flow, 4).with_look_ahead(look_ahead));
            }
        }
    }
}

/// Where latency dominates, separate messages make the square on an edge and in the middle lose to the
/// corner: 4, 5 and 6 steps of a second each on one link.
#[test]
fn steps_cost_latency() {
    let mut network = Network::uniform(1.0, 1e12);
    network.duplex = false;
    let seconds = |method: Method| {
        let layout = method.layout(shape(90, 90, 90), &[8.0, 1.0], &MethodOptions::default()).unwrap();
        let order = ScheduleOptions::new(Flow::Bulk, 90).with_messages(Messages::Separate);
        let costs = CostModel { rates: &[1e12; 2], network: &network, element: 8 };
        simulate(&MatmulSchedule::new(&layout, order), costs).unwrap().seconds()
    };
    for (method, steps) in
        [(Method::SquareCorner, 4.0), (Method::SquareEdge, 5.0), (Method::SquareMiddle, 6.0)]
    {
        assert!((seconds(method) - steps).abs() < 1e-3, "{method}");
    }
}
