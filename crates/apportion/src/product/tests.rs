//! The same job on every engine must give the same bytes, with one forecast.

mod slowdown_after;

use super::*;
use crate::error::Result;
use crate::geometry::Rect;
use crate::kernels::{Kernel, PathElement, Semiring};
use crate::matrix::{Element, LocalBlocks, Matrix};
use crate::model::Model;
use crate::plan::shapes::LayoutMethod;
use crate::plan::{Forecast, Plan, Shape, shapes};
use crate::platform::{Network, Platform, SlowdownAfter};
use crate::run::{Monitor, Session, World};
use crate::schedule::{DataPath, Flow, MatmulSchedule, ScheduleOptions};
use crate::select;
use crate::simulate::CostModel;

/// Every data path: in a single process in place or copied, and with one rank per processor.
pub(super) const PATHS: [DataPath; 3] = [DataPath::InPlace, DataPath::Copied, DataPath::Packed];

/// Runs a job on the engine of a data path, in a session of this much work. Returns the result of each
/// process.
pub(super) fn on<R: Send>(
    path: DataPath,
    (platform, monitor): (&Platform, &Monitor),
    work: f64,
    job: impl Fn(&Session<'_>) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    if path == DataPath::Packed {
        return World::threads(platform.len(), monitor, |world| {
            job(&Session::new(world, platform, monitor, work))
        });
    }
    let world = World::solo(monitor);
    Ok(vec![job(&Session::new(&world, platform, monitor, work).copying(path == DataPath::Copied))?])
}

/// These rectangles of a matrix.
pub(super) fn parts<T: Element>(matrix: &Matrix<T>, rects: &[Rect]) -> LocalBlocks<T> {
    let part = |rect: &Rect| {
        let cols = rect.cols.start as usize..rect.cols.end as usize;
        let rows = (rect.rows.start..rect.rows.end).map(|i| &matrix.row(i as usize)[cols.clone()]);
        (*rect, rows.flatten().copied().collect())
    };
    rects.iter().map(part).collect()
}

/// The matrix that consists of these blocks: each element is in exactly one of them.
pub(super) fn whole<'a, T: Element>(
    (rows, cols): (usize, usize),
    blocks: impl IntoIterator<Item = &'a LocalBlocks<T>>,
) -> Matrix<T> {
    let mut found = vec![None; rows * cols];
    for (rect, elements) in blocks.into_iter().flatten() {
        let places = (rect.rows.start..rect.rows.end)
            .flat_map(|i| (rect.cols.start..rect.cols.end).map(move |j| (i as usize, j as usize)));
        for ((i, j), &x) in places.zip(elements) {
            assert!(found[i * cols + j].replace(x).is_none(), "element ({i}, {j}) is there twice");
        }
    }
    let all = found.into_iter().map(|x| x.expect("every element is in a block"));
    Matrix::new(rows, cols, all.collect())
}

/// A plan on processors of these speeds, with all inputs of a job.
struct Setup {
    platform: Platform,
    models: Vec<Model>,
    plan: Plan,
    order: ScheduleOptions,
}

const N: u64 = 37;

impl Setup {
    /// A square product on a square corner or in columns.
    fn new(speeds: &[f64], order: ScheduleOptions) -> Self {
        let shape = Shape::new(N, N, N, "test").unwrap();
        let layout = shapes::SquareCorner.layout(shape, speeds);
        let layout = layout.or_else(|_| shapes::Columns::default().layout(shape, speeds)).unwrap();
        let mut platform = Platform::from_speeds(speeds).unwrap();
        platform.network = Network::uniform(1e-5, 1e9);
        let models = speeds.iter().map(|s| Model::constant("p", s * 1e6).unwrap()).collect();
        let plan = Plan::of_layout("columns", platform.names(), layout, 1.0);
        Self { platform, models, plan, order }
    }

    fn job<T: Element>(&self, kernel: Kernel<T>) -> MatmulJob<'_, T> {
        MatmulJob::new(kernel, &self.plan, self.order, &self.models, 8)
    }

    /// The rectangles of this session's process.
    fn own(&self, session: &Session<'_>) -> OwnRects {
        OwnRects::of(&MatmulSchedule::new(self.plan.layout().unwrap(), self.order), session.world())
    }

    /// The result of a job with two matrices on every engine: the bytes of the whole result, which are the
    /// same.
    fn everywhere<T: Element, U: Element>(
        &self,
        [a, b]: [&Matrix<T>; 2],
        job: impl Fn(Operands<'_, T>, &Session<'_>) -> Result<LocalBlocks<U>> + Sync,
    ) -> Vec<u8> {
        let one = |session: &Session<'_>| {
            let own = self.own(session);
            job(Operands::new(&parts(a, &own.a), &parts(b, &own.b)), session)
        };
        let bytes = |blocks: &[LocalBlocks<U>]| {
            let matrix = whole((a.rows(), b.cols()), blocks);
            bytemuck::cast_slice(matrix.as_slice()).to_vec()
        };
        let results = PATHS.map(|path| {
            let with = (&self.platform, &Monitor::new());
            bytes(&on(path, with, N.pow(3) as f64, one).unwrap())
        });
        assert!(results[1] == results[0], "copied by {}, {}", self.order, self.platform.len());
        assert!(results[2] == results[0], "packed by {}, {}", self.order, self.platform.len());
        let [bytes, ..] = results;
        bytes
    }
}

fn orders() -> impl Iterator<Item = ScheduleOptions> {
    let one = |flow| [0, 2].map(|ahead| ScheduleOptions::new(flow, 8).with_look_ahead(ahead));
    Flow::ALL.into_iter().flat_map(one)
}

/// Numbers whose products and sums round.
fn fractions(by: u64) -> Matrix<f64> {
    let element = |i: u64| ((i * by % 1009) as f64 - 500.0) / 7.0;
    Matrix::new(N as usize, N as usize, (0..N * N).map(element).collect())
}

fn setups() -> impl Iterator<Item = Setup> {
    let speeds: [&[f64]; 3] = [&[1.0], &[9.0, 1.0], &[4.0, 2.0, 1.0, 1.0, 0.5]];
    speeds.into_iter().flat_map(|speeds| orders().map(move |order| Setup::new(speeds, order)))
}

/// Few edges, none negative: the paths between most pairs have several edges.
fn edges() -> Matrix<f64> {
    let edge = |i: u64| if i * i % 11 < 9 { f64::INFINITY } else { (i % 13) as f64 / 3.0 };
    Matrix::new(N as usize, N as usize, (0..N * N).map(edge).collect())
}

#[test]
fn products_are_the_same_bytes_on_every_engine() {
    let (a, b) = (fractions(31), fractions(57));
    for setup in setups() {
        for kernel in [Kernel::plus_times(), Kernel::max_plus()] {
            setup.everywhere([&a, &b], |operands, session| {
                Ok(multiply(operands, &setup.job(kernel), session)?.0)
            });
        }
    }
}

#[test]
fn powers_are_the_same_bytes_on_every_engine() {
    let a = fractions(31);
    for setup in setups() {
        let job = setup.job(Kernel::plus_times());
        setup.everywhere([&a, &a], |operands, session| Ok(matrix_power(operands.a, 5, &job, session)?.0));
    }
}

#[test]
fn closures_and_paths_are_the_same_bytes_on_every_engine() {
    let edges = edges();
    for setup in setups() {
        let job = setup.job(Kernel::min_plus());
        let lengths = setup.everywhere([&edges, &edges], |operands, session| {
            Ok(matrix_closure(operands.a, &job, session)?.0)
        });
        let job = setup.job(Kernel::<PathElement<f64>>::paths(Semiring::MinPlus).unwrap());
        let same = setup.everywhere([&edges, &edges], |operands, session| {
            Ok(matrix_paths(operands.a, &job, session)?.lengths)
        });
        assert!(lengths == same, "{}", setup.order);
        setup.everywhere([&edges, &edges], |operands, session| {
            Ok(matrix_paths(operands.a, &job, session)?.predecessors)
        });
    }
}

/// Emulated processors of equal speed, one of which becomes eight times slower: every engine repartitions,
/// not necessarily at the same moment. Small whole numbers: sums are exact in any order.
#[test]
fn adaptive_runs_are_the_same_bytes_on_every_engine() {
    let order = ScheduleOptions::new(Flow::OneToAll, 2).with_look_ahead(1);
    let mut setup = Setup::new(&[1.0, 1.0], order);
    // 0.1 s without the slowdown.
    let speed = N.pow(3) as f64 / 2.0 / 0.1;
    setup.models = vec![Model::constant("p", speed / 8.0).unwrap(); 2];
    for processor in &mut setup.platform.processors {
        processor.emulated = Some(format!("peak {speed}").parse().unwrap());
    }
    setup.platform.processors[1].slowdown_after = Some(SlowdownAfter { work: 0.3, slowdown: 8.0 });
    let small = |by: u64| {
        let element = |i: u64| (i * by % 11) as f64 - 5.0;
        Matrix::new(N as usize, N as usize, (0..N * N).map(element).collect())
    };
    let (a, b) = (small(7), small(5));
    let plain = setup.job(Kernel::plus_times());
    let job = plain.clone().with_adaptive(Some(Adaptive { segments: 12 }));
    let adapted = setup.everywhere([&a, &b], |operands, session| {
        let (c, report) = multiply(operands, &job, session)?;
        let adaptation = report.adaptation.expect("an adaptive run");
        assert!(adaptation.moved_elements() > 0, "it turns slow enough: {adaptation:?}");
        Ok(c)
    });
    let fixed = setup.everywhere([&a, &b], |operands, session| Ok(multiply(operands, &plain, session)?.0));
    assert!(adapted == fixed);
}

/// Six products have one forecast: six times the simulated time of one. A given forecast is used as it is.
#[test]
fn many_products_are_forecast_once() {
    let setup = Setup::new(&[4.0, 2.0, 1.0], ScheduleOptions::new(Flow::Ring, 8));
    let layout = setup.plan.layout().unwrap();
    let rates = select::rates(&setup.models, &setup.plan.shares, 8);
    let costs = CostModel { rates: &rates, network: &setup.platform.network, element: 8 };
    let simulated = select::forecast(layout, setup.order, costs).unwrap();
    let odd = Forecast { seconds: 123.25, compute: vec![1.0, 2.0, 3.0], communicate: vec![0.5; 3] };
    let a = Matrix::new(N as usize, N as usize, (0..N * N).map(|i| f64::from(i % 2 == 0) / 16.0).collect());
    for (given, expected) in [(None, simulated), (Some(odd.clone()), odd)] {
        let job = setup.job(Kernel::plus_times()).with_forecast(given);
        let check = |session: &Session<'_>| -> Result<()> {
            let a = parts(&a, &setup.own(session).a);
            let (_, report) = matrix_power(&a, 40, &job, session)?;
            assert_eq!(report.products, 6);
            let off = report.forecast_seconds - 6.0 * expected.seconds;
            // Only rank 0 has made the forecast and reports it.
            if session.world().rank() == 0 {
                assert!(off.abs() < 1e-12 * expected.seconds, "{}", report.forecast_seconds);
                assert_eq!(report.plan.forecast.as_ref(), Some(&expected));
            }
            Ok(())
        };
        for path in PATHS {
            on(path, (&setup.platform, &Monitor::new()), 1.0, check).unwrap();
        }
    }
}
