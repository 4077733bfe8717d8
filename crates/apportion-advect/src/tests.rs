//! Any decomposition, order and engine gives the bytes of one processor, and the three counts agree.

use super::*;
use crate::{AdvectOrder, AdvectProblem, AdvectSchedule, Plane};
use apportion::geometry::{Rank, Span};
use apportion::job::{Context, Sources};
use apportion::kernels::mpdata::{Advectable, Boundary, Exchange, Place, Scheme};
use apportion::matrix::{LocalBlocks, npy_header};
use apportion::model::{Machine, WorkUnit};
use apportion::plan::shapes::{Method, MethodOptions};
use apportion::plan::{Layout, Plan};
use apportion::platform::{Network, Platform};
use apportion::run::{Monitor, Session, World};
use apportion::schedule::Application;
use apportion::trace::Trace;
use proptest::prelude::*;
use std::path::Path;

/// Numbers from 0 to 1 that look random.
fn noise(seed: u64, at: u64) -> f64 {
    let x = (seed ^ at.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((x ^ x >> 29).wrapping_mul(0x94d0_49bb_1331_11eb) >> 11) as f64 / (1u64 << 53) as f64
}

/// A whole array as one block.
fn whole(problem: &AdvectProblem, place: Place, value: impl Fn(u64) -> f64) -> LocalBlocks<f64> {
    let (rows, cols) = Plane::of(&problem.sizes).matrix(place);
    let rect = apportion::geometry::Rect::new(Span::new(0, rows), Span::new(0, cols));
    vec![(rect, (0..rows * cols).map(value).collect())]
}

/// The part of a block in some rectangles.
fn parts(from: &LocalBlocks<f64>, rects: &[apportion::geometry::Rect]) -> LocalBlocks<f64> {
    let (all, elements) = &from[0];
    let row = |rect: &apportion::geometry::Rect, i: u64| {
        let first = i * all.cols.len() + rect.cols.start;
        elements[first as usize..(first + rect.cols.len()) as usize].to_vec()
    };
    rects.iter().map(|r| (*r, (r.rows.start..r.rows.end).flat_map(|i| row(r, i)).collect())).collect()
}

pub(crate) fn write<T: Advectable>(path: &Path, sizes: &[usize], elements: &[T]) {
    std::fs::write(path, [npy_header::<T>(sizes, false), bytemuck::cast_slice(elements).to_vec()].concat())
        .unwrap();
}

struct Flow {
    problem: AdvectProblem,
    field: LocalBlocks<f64>,
    faces: Vec<LocalBlocks<f64>>,
}

impl Flow {
    fn new(sizes: &[usize], boundary: &[Boundary], scheme: Scheme, seed: u64) -> Self {
        let problem = AdvectProblem { sizes: sizes.to_vec(), boundary: boundary.to_vec(), scheme };
        let axes = problem.domain().axes();
        let faces = axes.iter().enumerate().map(|(number, axis)| {
            whole(&problem, Place::Face(*axis), |i| 0.6 * (noise(seed + number as u64, i) - 0.5))
        });
        let faces = faces.collect();
        Self { field: whole(&problem, Place::Centre, |i| noise(seed + 9, i)), faces, problem }
    }

    fn run(&self, plan: &Plan, order: AdvectOrder, session: &Session<'_>) -> (LocalBlocks<f64>, Trace) {
        let world = session.world();
        let schedule = AdvectSchedule::new(&self.problem, plan.rectangles().unwrap(), order, 2).unwrap();
        let (field, faces) = if world.is_solo() {
            (self.field.clone(), self.faces.clone())
        } else {
            let faces = self.faces.iter().enumerate();
            let own = parts(&self.field, &own_cells(&schedule, world));
            (own, faces.map(|(n, all)| parts(all, &needed_faces(&schedule, n, world))).collect())
        };
        let courant: Vec<Courant<'_, f64>> = faces.iter().map(Courant::Faces).collect();
        let job = AdvectJob { problem: &self.problem, plan, order, signed: false };
        advect(&job, &field, &courant, 2, session).unwrap()
    }

    /// The bits of a result, in the order of the grid.
    fn bits(&self, blocks: impl IntoIterator<Item = (apportion::geometry::Rect, Vec<f64>)>) -> Vec<u64> {
        let (_, cols) = Plane::of(&self.problem.sizes).matrix(Place::Centre);
        let mut bits = vec![0; self.problem.cells() as usize];
        for (rect, elements) in blocks {
            for (i, row) in (rect.rows.start..).zip(elements.chunks_exact(rect.cols.len() as usize)) {
                for (j, x) in (rect.cols.start..).zip(row) {
                    bits[(i * cols + j) as usize] = x.to_bits();
                }
            }
        }
        bits
    }
}

fn plan(problem: &AdvectProblem, method: Method, weights: &[f64]) -> Option<Plan> {
    let shape = Plane::of(&problem.sizes).shape().unwrap();
    let layout: Layout = method.layout(shape, weights, &MethodOptions::default()).ok()?;
    let names = (0..weights.len()).map(|i| format!("p{i}")).collect();
    Some(Plan::of_grid(method.to_string(), names, layout, 1.0))
}

fn ends() -> impl Strategy<Value = Boundary> {
    prop_oneof![Just(Boundary::Periodic), Just(Boundary::Zero), Just(Boundary::Extrapolated)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn every_decomposition_order_and_engine_gives_the_same_bytes(
        sizes in prop::collection::vec(3usize..12, 1..=3),
        boundary in (ends(), ends(), ends()),
        (passes, nonoscillatory, third_order) in (1usize..=3, any::<bool>(), any::<bool>()),
        weights in prop::collection::vec(1.0f64..9.0, 2..5),
        (method, order) in (0usize..6, 0usize..4),
        seed in any::<u32>(),
    ) {
        let options = passes > 1;
        let scheme = Scheme {
            passes,
            nonoscillatory: nonoscillatory && options,
            infinite_gauge: false,
            third_order: third_order && options,
        };
        let boundary = [boundary.0, boundary.1, boundary.2];
        let flow = Flow::new(&sizes, &boundary[..sizes.len()], scheme, u64::from(seed));
        let method = [
            Method::Grid, Method::Columns, Method::Cartesian, Method::Rows, Method::Recursive,
            Method::SquareCorner,
        ][method];
        let Some(plan) = plan(&flow.problem, method, &weights) else { return Ok(()) };
        let order = AdvectOrder::ALL[order];
        let monitor = Monitor::new();
        let alone = {
            let one = self::plan(&flow.problem, Method::Rows, &[1.0]).unwrap();
            let (world, platform) = (World::solo(&monitor), Platform::from_speeds(&[1.0]).unwrap());
            flow.bits(flow.run(&one, AdvectOrder::ALL[0], &Session::new(&world, &platform, &monitor, 0.0)).0)
        };
        let platform = Platform::from_speeds(&weights).unwrap();
        let world = World::solo(&monitor);
        let (blocks, trace) = flow.run(&plan, order, &Session::new(&world, &platform, &monitor, 0.0));
        prop_assert_eq!(&flow.bits(blocks), &alone, "threads, {}, {}, {}", method, order, scheme);
        let schedule =
            AdvectSchedule::new(&flow.problem, plan.rectangles().unwrap(), order, 2).unwrap();
        for rank in (0..weights.len()).map(Rank) {
            let lane = &trace.lanes[rank.0];
            prop_assert_eq!(lane.received.iter().sum::<u64>(), schedule.volume(rank));
            prop_assert_eq!(lane.peak_bytes, schedule.memory(rank, 8));
        }
        let ranks = World::threads(weights.len(), &monitor, |world| {
            Ok(flow.run(&plan, order, &Session::new(world, &platform, &monitor, 0.0)).0)
        }).unwrap();
        prop_assert_eq!(&flow.bits(ranks.into_iter().flatten()), &alone, "ranks, {}, {}", method, order);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    /// Constant Courant numbers take other loops than equal ones on faces.
    #[test]
    fn constant_numbers_give_the_bytes_of_faces(
        sizes in prop::collection::vec(3usize..20, 1..=3),
        boundary in (ends(), ends(), ends()),
        numbers in prop::collection::vec(-0.3f64..0.3, 3),
        (passes, nonoscillatory, third_order, infinite_gauge) in
            (1usize..=4, any::<bool>(), any::<bool>(), any::<bool>()),
        (order, signed) in (0usize..4, any::<bool>()),
        weights in prop::collection::vec(1.0f64..9.0, 1..3),
        seed in any::<u32>(),
    ) {
        let options = passes > 1;
        let scheme = Scheme {
            passes,
            nonoscillatory: nonoscillatory && options,
            infinite_gauge: infinite_gauge && options,
            third_order: third_order && options,
        };
        let boundary = [boundary.0, boundary.1, boundary.2];
        let mut flow = Flow::new(&sizes, &boundary[..sizes.len()], scheme, u64::from(seed));
        let numbers = &numbers[..sizes.len()];
        for (faces, number) in flow.faces.iter_mut().zip(numbers) {
            faces[0].1.fill(*number);
        }
        let Some(plan) = plan(&flow.problem, Method::Rows, &weights) else { return Ok(()) };
        let (monitor, platform) = (Monitor::new(), Platform::from_speeds(&weights).unwrap());
        let world = World::solo(&monitor);
        let session = Session::new(&world, &platform, &monitor, 0.0);
        let job = AdvectJob { problem: &flow.problem, plan: &plan, order: AdvectOrder::ALL[order], signed };
        let run = |courant: &[Courant<'_, f64>]| flow.bits(advect(&job, &flow.field, courant, 3, &session).unwrap().0);
        let constant: Vec<_> = numbers.iter().map(|number| Courant::Constant(*number)).collect();
        let faces: Vec<_> = flow.faces.iter().map(Courant::Faces).collect();
        prop_assert_eq!(run(&constant), run(&faces));
    }
}

#[test]
fn unstable_flow_is_refused_with_the_place_and_divergence_is_found() {
    let monitor = Monitor::new();
    let world = World::solo(&monitor);
    let mut flow = Flow::new(&[4, 5], &[Boundary::Zero; 2], Scheme::new(2).unwrap(), 3);
    let plan = plan(&flow.problem, Method::Rows, &[1.0]).unwrap();
    let schedule =
        AdvectSchedule::new(&flow.problem, plan.rectangles().unwrap(), AdvectOrder::ALL[0], 1).unwrap();
    let constant = [Courant::Constant(0.5), Courant::Constant(-0.25)];
    let found = check_flow::<f64>(&schedule, &constant, &world).unwrap();
    assert_eq!((found.largest, found.divergence), (0.75, 0.0));
    flow.faces[1][0].1[2 * 6 + 3] = -0.9;
    let faces: Vec<Courant<'_, f64>> = flow.faces.iter().map(Courant::Faces).collect();
    let error = check_flow(&schedule, &faces, &world).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    assert!(error.to_string().contains("cell (2, 2)"), "{error}");
}

/// A forecast of what a slow network and slow processors do, and what they did.
#[test]
fn the_forecast_is_near_the_run_on_an_emulated_network() {
    let scheme = Scheme::new(2).unwrap();
    let flow = Flow::new(&[24, 24, 4], &[Boundary::Periodic; 3], scheme, 5);
    let mut platform = Platform::from_speeds(&[1.0, 1.0, 1.0]).unwrap();
    // Speeds are given, so that the load of this machine does not matter.
    for processor in &mut platform.processors {
        processor.emulated = Some("peak 20000".parse().unwrap());
    }
    platform.network = Network::uniform(2e-3, 1e6);
    platform.network.emulate = true;
    let machine = Machine::from_platform(platform, WorkUnit::Unit).unwrap();
    let best = plan_advection(
        &flow.problem,
        &machine,
        &AdvectOptions { method: None, orders: &AdvectOrder::ALL, plan: None, steps: 2, element: 8 },
    );
    let best = best.unwrap();
    // Narrow exchanges count more than their forecasts.
    let wide: Vec<_> = best.iter().filter(|choice| choice.order.exchange == Exchange::Wide).collect();
    assert!(wide.windows(2).all(|two| two[0].step_seconds <= two[1].step_seconds));
    let first = wide[0].step_seconds;
    let mut before = best.iter().take_while(|choice| choice.order.exchange == Exchange::Narrow);
    assert!(before.all(|choice| choice.step_seconds <= first));
    let (monitor, choice) = (Monitor::new(), &best[0]);
    let world = World::solo(&monitor);
    let (_, trace) =
        flow.run(&choice.plan, choice.order, &Session::new(&world, &machine.platform, &monitor, 0.0));
    let forecast = choice.plan.forecast.as_ref().unwrap().seconds;
    // Never earlier: the emulation's clock cannot be beaten.
    assert!(trace.seconds() > 0.95 * forecast, "{} against {forecast}", trace.seconds());
    let schedule =
        AdvectSchedule::new(&flow.problem, choice.plan.rectangles().unwrap(), choice.order, 2).unwrap();
    assert!((0..3).map(|rank| schedule.work(Rank(rank))).sum::<f64>() >= 2.0 * 24.0 * 24.0 * 4.0);
    let moments = moments(&flow.field, &world).unwrap();
    assert!(moments.mass > 0.0 && moments.least >= 0.0 && moments.most <= f64::LIMIT);
}

/// An advection of arrays, from one to three dimensions, is that of the same arrays in files.
#[test]
fn arrays_are_advected_as_files_are() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let (monitor, scheme) = (Monitor::new(), Scheme::new(2).unwrap());
    let world = World::solo(&monitor);
    let context = Context::silent(&world, &monitor);
    let sources =
        Sources { platform: Some(Platform::from_speeds(&[3.0, 1.0]).unwrap()), ..Sources::default() };
    for sizes in [vec![17], vec![7, 11], vec![5, 4, 6]] {
        let flow = Flow::new(&sizes, &vec![Boundary::Zero; sizes.len()], scheme, 5);
        let mut courant = vec![CourantSource::Constant(0.125)];
        let mut in_files = courant.clone();
        for (axis, faces) in flow.faces.iter().enumerate().skip(1) {
            let (mut on_faces, elements) = (sizes.clone(), &faces[0].1);
            on_faces[axis] += 1;
            let file = path(&format!("c{axis}.npy"));
            write(&file, &on_faces, elements);
            courant.push(CourantSource::Faces(ArraySource::array("c", &on_faces, elements)));
            in_files.push(CourantSource::Faces(ArraySource::File(file)));
        }
        let elements = &flow.field[0].1;
        write(&path("field.npy"), &sizes, elements);
        let task = |field, courant| AdvectTask {
            boundary: vec![Boundary::Zero],
            sources: sources.clone(),
            ..AdvectTask::new(field, courant, 3)
        };
        let of_arrays = task(ArraySource::array("psi", &sizes, elements), courant);
        let run = |task: &AdvectTask<'_>| advect_field(task, context);
        let whole = |task: &AdvectTask<'_>| run(task)?.into_whole::<f64>(&world);
        let found = whole(&of_arrays).unwrap().unwrap();
        let of_files = task(ArraySource::File(path("field.npy")), in_files);
        assert_eq!(found, whole(&of_files).unwrap().unwrap());
        assert_eq!(run(&of_files).unwrap().into_whole::<f32>(&world).unwrap(), None);
        assert_ne!(found, *elements);
        // What is kept between slabs is in files.
        let kept = AdvectTask { checkpoint: Some(path("kept")), ..of_arrays.clone() };
        assert!(run(&kept).unwrap_err().to_string().contains("psi: is in memory"));
        let unfit = CourantSource::Faces(ArraySource::array("c", &sizes, elements));
        let courant = [&[unfit], &of_arrays.courant[1..]].concat();
        let error = run(&AdvectTask { courant, ..of_arrays.clone() }).unwrap_err().to_string();
        assert!(error.contains("c: is ") && error.contains("along axis 0"), "{error}");
    }
    let four = ArraySource::array("psi", &[1, 1, 1, 1], &[1.0]);
    let error = advect_field(&AdvectTask::new(four, Vec::new(), 1), context).unwrap_err();
    assert_eq!(error.to_string(), "psi: is 1 x 1 x 1 x 1 (give one to three dimensions with elements)");
    let singles = ArraySource::array("psi", &[4], &[1.0_f32; 4]);
    let doubles = CourantSource::Faces(ArraySource::array("c", &[5], &[0.0; 5]));
    let error = advect_field(&AdvectTask::new(singles, vec![doubles], 1), context).unwrap_err();
    assert!(error.to_string().starts_with("c: holds f64, but psi holds f32"), "{error}");
}
