//! Products on boxes on every engine, over every semiring: the same bytes, the predicted elements, and the
//! predicted bytes of memory.

use super::product;
use crate::geometry::{Rank, Span};
use crate::kernels::{Kernel, PathElement, Semiring};
use crate::matrix::{Element, Matrix};
use crate::plan::{Cuboid, Layout, Metrics, Shape, shapes};
use crate::platform::{Network, Platform};
use crate::product::tests::PATHS;
use crate::random::Random;
use crate::run::Monitor;
use crate::schedule::{DataPath, Flow, MatmulSchedule, ScheduleOptions, predicted_memory};
use proptest::prelude::*;

fn filled<T: Element>(rows: u64, cols: u64, value: impl Fn(usize) -> T) -> Matrix<T> {
    Matrix::new(rows as usize, cols as usize, (0..(rows * cols) as usize).map(value).collect())
}

/// Every path and flow gives equal bytes, elements and memory; returns the product.
fn agreed<T: Element>(
    kernel: Kernel<T>,
    layout: &Layout,
    [a, b]: [&Matrix<T>; 2],
    (block, ahead): (u64, u64),
) -> Matrix<T> {
    let platform = Platform::from_speeds(&vec![1.0; layout.processors()]).unwrap();
    let expected = Metrics::of_layout(layout, 1.0).volume_matrix.unwrap();
    let element = size_of::<T>() as u64;
    let mut all = Vec::new();
    for flow in [Flow::OneToAll, Flow::Bulk] {
        let order = ScheduleOptions::new(flow, block).with_look_ahead(ahead);
        let schedule = MatmulSchedule::new(layout, order);
        let mut of_flow = Vec::new();
        for path in PATHS {
            let (c, trace) = product(path, kernel, [a, b], &schedule, (&platform, &Monitor::new())).unwrap();
            assert_eq!(trace.volume_matrix(), expected, "{flow} {path:?}");
            let predicted = predicted_memory(layout, order, element, path);
            for (rank, (lane, predicted)) in trace.lanes.iter().zip(predicted).enumerate() {
                assert!(lane.peak_bytes <= predicted, "{flow} {path:?}");
                let boxes = layout.cuboids().iter().filter(|one| one.owner.0 == rank).count();
                if boxes < 2 || path == DataPath::InPlace {
                    assert_eq!(lane.peak_bytes, predicted, "{flow} {path:?}");
                }
            }
            of_flow.push(c);
        }
        assert!(of_flow.windows(2).all(|two| two[0] == two[1]), "{flow}: equal bytes on every path");
        all.extend(of_flow);
    }
    all.remove(0)
}

/// The product by definition.
fn defined<T: Element>(kernel: Kernel<T>, a: &Matrix<T>, b: &Matrix<T>) -> Vec<T> {
    let turned = b.transposed();
    (0..a.rows())
        .flat_map(|i| (0..b.cols()).map(move |j| (i, j)))
        .map(|(i, j)| kernel.entry(a.row(i), turned.row(j)))
        .collect()
}

/// A layout of boxes by random cuts; some processors have several boxes and some none.
fn random_layout(shape: Shape, processors: usize, cuts: usize, seed: u64) -> Layout {
    let mut random = Random::new(seed);
    let mut below = |n: u64| (random.unit() * n as f64) as u64;
    let mut boxes = vec![[shape.m, shape.n, shape.k].map(|side| Span::new(0, side))];
    for _ in 0..cuts {
        let (at, side) = (below(boxes.len() as u64) as usize, below(3) as usize);
        let [mut low, mut high] = [boxes[at]; 2];
        if low[side].len() > 1 {
            low[side].end = low[side].start + 1 + below(low[side].len() - 1);
            high[side].start = low[side].end;
            boxes[at] = low;
            boxes.push(high);
        }
    }
    let mut owned = |[rows, cols, inner]: [Span; 3]| {
        let owner = Rank(below(processors as u64) as usize);
        Cuboid { owner, rows, cols, inner }
    };
    let boxes: Vec<Cuboid> = boxes.into_iter().map(&mut owned).collect();
    Layout::of_boxes(shape, processors, boxes).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(25))]
    #[test]
    fn every_semiring_and_type(
        m in 1u64..12, k in 1u64..20, n in 1u64..12, p in 1usize..6, cuts in 1usize..9, block in 1u64..14,
        ahead in 0u64..3, seed: u64,
    ) {
        let shape = Shape::new(m, k, n, "test").unwrap();
        let layout = random_layout(shape, p, cuts, seed);
        prop_assume!(layout.boxes().is_some());
        let order = (block, ahead);
        macro_rules! check {
            ($kernel:expr, $value:expr) => {{
                let kernel = $kernel;
                let (a, b) = (filled(m, k, $value), filled(k, n, |i| $value(i * 5 + 3)));
                let c = agreed(kernel, &layout, [&a, &b], order);
                prop_assert_eq!(c.as_slice(), &defined(kernel, &a, &b)[..]);
            }};
        }
        let number = |i: usize| ((i * i + 1) % 11) as f64 - 5.0;
        check!(Kernel::<f64>::plus_times(), number);
        check!(Kernel::<f32>::plus_times(), |i| number(i) as f32);
        check!(Kernel::<f64>::max_plus(), number);
        check!(Kernel::<f32>::min_plus(), |i| if i % 5 == 0 { f32::INFINITY } else { number(i) as f32 });
        check!(Kernel::<i32>::max_plus(), |i| if i % 5 == 0 { i32::MIN } else { number(i) as i32 });
        check!(Kernel::<i64>::min_plus(), |i| number(i) as i64);
        check!(Kernel::or_and(), |i| u8::from(i % 7 < 2));
        check!(Kernel::<PathElement<f64>>::paths(Semiring::MinPlus).unwrap(), |i| PathElement {
            length: number(i).abs(),
            ..Kernel::<PathElement<f64>>::paths(Semiring::MinPlus).unwrap().one()
        });
    }
}

/// Sums of rounded numbers depend on their order: one order on every engine. (The kernel itself sums single
/// rows and columns in an order that depends on their stride: no box here is that thin.)
#[test]
fn rounded_sums_are_the_same_bytes() {
    let shape = Shape::new(29, 170, 31, "test").unwrap();
    let value = |i: usize| 1.0 / (1.0 + ((i * 7919) % 1013) as f64);
    let (a, b) = (filled(29, 170, value), filled(170, 31, |i| -value(i + 5)));
    let exact = defined(Kernel::plus_times(), &a, &b);
    for weights in [&[3.0, 2.0][..], &[4.0, 3.0, 2.0, 1.0], &[20.0, 3.0, 3.0, 2.0, 2.0]] {
        for layout in shapes::Boxes::all(shape, weights).unwrap() {
            assert!(layout.boxes().is_some());
            assert!(layout.cuboids().iter().all(|one| one.rows.len() > 1 && one.cols.len() > 1));
            let c = agreed(Kernel::plus_times(), &layout, [&a, &b], (16, 1));
            let near = |(x, y): (&f64, &f64)| (x - y).abs() < 1e-12;
            assert!(c.as_slice().iter().zip(&exact).all(near));
        }
    }
}

/// One box for each of eight processors, p = 1, and a processor without a box.
#[test]
fn boxes_of_all_kinds() {
    let halves = |side: u64| [[0, side / 2], [side / 2, side]];
    let shape = Shape::new(6, 8, 10, "test").unwrap();
    let one = |i: usize| Cuboid {
        owner: Rank(i + i / 4),
        rows: halves(6)[i & 1].into(),
        cols: halves(10)[i >> 1 & 1].into(),
        inner: halves(8)[i >> 2].into(),
    };
    let layout = Layout::of_boxes(shape, 9, (0..8).map(one)).unwrap();
    let value = |i: usize| (i % 9) as f64 - 4.0;
    let (a, b) = (filled(6, 8, value), filled(8, 10, value));
    for block in [1, 3, 8] {
        let c = agreed(Kernel::plus_times(), &layout, [&a, &b], (block, 0));
        assert_eq!(c.as_slice(), &defined(Kernel::plus_times(), &a, &b)[..]);
    }
    let alone = (0..4)
        .map(|i| Cuboid { inner: [2 * i, 2 * i + 2].into(), ..Cuboid::new(Rank(0), WHOLE, WHOLE.rows) });
    let layout = Layout::of_boxes(shape, 1, alone).unwrap();
    assert_eq!(Metrics::of_layout(&layout, 1.0).volume, Some(0));
    assert_eq!(agreed(Kernel::plus_times(), &layout, [&a, &b], (3, 1)).rows(), 6);
}

const WHOLE: crate::geometry::Rect =
    crate::geometry::Rect { rows: Span { start: 0, end: 6 }, cols: Span { start: 0, end: 10 } };

/// Four slabs on an emulated star: three times m n elements of 8 bytes, pipelined, take less than one after
/// the other into the owner, and the forecast is the time that is measured at least.
#[test]
fn an_emulated_network_pipelines_the_sums() {
    let shape = Shape::new(256, 8, 128, "test").unwrap();
    let slab = |i: usize| Cuboid {
        owner: Rank(i),
        rows: [0, 256].into(),
        cols: [0, 128].into(),
        inner: [2 * i as u64, 2 * i as u64 + 2].into(),
    };
    let layout = Layout::of_boxes(shape, 4, (0..4).map(slab)).unwrap();
    let mut platform = Platform::from_speeds(&[1.0; 4]).unwrap();
    platform.network = Network::uniform(0.0, 2e6);
    platform.network.emulate = true;
    let schedule = MatmulSchedule::new(&layout, ScheduleOptions::new(Flow::OneToAll, 8));
    let (a, b) = (filled(256, 8, |i| (i % 5) as f64), filled(8, 128, |i| (i % 3) as f64));
    let with = (&platform, &Monitor::new());
    let (c, trace) = product(DataPath::Copied, Kernel::plus_times(), [&a, &b], &schedule, with).unwrap();
    assert_eq!(c.as_slice(), &defined(Kernel::plus_times(), &a, &b)[..]);
    // Eight pieces of 32 rows, three hops: ten pieces one after the other, not 24.
    let forecast = 10.0 * (32 * 128 * 8) as f64 / 2e6;
    let costs = crate::simulate::CostModel { rates: &[f64::MAX; 4], network: &platform.network, element: 8 };
    let seconds = crate::simulate::simulate(&schedule, costs).unwrap().seconds();
    assert!((seconds - forecast).abs() < 1e-6, "{seconds} {forecast}");
    assert!(trace.seconds() >= forecast);
}
