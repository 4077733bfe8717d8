//! Slabs tile a grid, and any of them give the bytes of the run in memory.

use super::*;
use crate::tests::write;
use crate::{AdvectJob, Courant, advect};
use crate::{AdvectOrder, AdvectProblem, AdvectSchedule, Plane};
use apportion::geometry::{Rank, Rect};
use apportion::kernels::mpdata::{Advectable, Boundary, Place, Scheme};
use apportion::matrix::{LocalBlocks, NpyFile};
use apportion::plan::Plan;
use apportion::plan::shapes::{Method, MethodOptions};
use apportion::platform::Platform;
use apportion::run::{Monitor, Session, World};
use proptest::prelude::*;
use std::path::PathBuf;

fn noise(seed: u64, at: u64) -> f64 {
    let x = (seed ^ at.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((x ^ x >> 29).wrapping_mul(0x94d0_49bb_1331_11eb) >> 11) as f64 / (1u64 << 53) as f64
}

fn ends() -> impl Strategy<Value = Boundary> {
    prop_oneof![Just(Boundary::Periodic), Just(Boundary::Zero), Just(Boundary::Extrapolated)]
}

fn scheme() -> impl Strategy<Value = Scheme> {
    (1usize..=4, any::<bool>(), any::<bool>(), any::<bool>()).prop_filter_map(
        "a scheme",
        |(passes, nonoscillatory, infinite_gauge, third_order)| {
            Scheme { passes, nonoscillatory, infinite_gauge, third_order }.checked().ok()
        },
    )
}

/// The elements of a matrix, row by row.
fn row_by_row<T: Advectable>(blocks: &LocalBlocks<T>, cols: u64) -> Vec<u64> {
    let mut bits = vec![0; blocks.iter().map(|(_, elements)| elements.len()).sum()];
    for (rect, elements) in blocks {
        for (i, row) in (rect.rows.start..).zip(elements.chunks_exact(rect.cols.len() as usize)) {
            for (j, x) in (rect.cols.start..).zip(row) {
                bits[(i * cols + j) as usize] = x.to_f64().to_bits();
            }
        }
    }
    bits
}

fn plan(problem: &AdvectProblem, method: Method, weights: &[f64]) -> Option<Plan> {
    let shape = Plane::of(&problem.sizes).shape().unwrap();
    let layout = method.layout(shape, weights, &MethodOptions::default()).ok()?;
    let names = (0..weights.len()).map(|i| format!("p{i}")).collect();
    Some(Plan::of_grid(method.to_string(), names, layout, 1.0))
}

/// A grid, its field and its Courant numbers, in memory and in files.
struct Case<T> {
    problem: AdvectProblem,
    directory: tempfile::TempDir,
    field: LocalBlocks<T>,
    faces: Vec<Option<LocalBlocks<T>>>,
    signed: bool,
}

impl<T: Advectable> Case<T> {
    /// The Courant numbers are constants along the axes that `constant` names.
    fn new(problem: AdvectProblem, (seed, signed): (u64, bool), constant: &[bool]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let sizes = problem.sizes.clone();
        let domain = problem.domain();
        let array = |name: &str, place: Place, value: &dyn Fn(u64) -> f64| {
            let (rows, cols) = Plane::of(&sizes).matrix(place);
            let elements: Vec<T> = (0..rows * cols).map(|i| T::from_f64(value(i))).collect();
            let mut sizes = sizes.clone();
            if let Place::Face(axis) = place {
                sizes[domain.axes().iter().position(|a| *a == axis).unwrap()] += 1;
            }
            write(&directory.path().join(name), &sizes, &elements);
            vec![(Rect::new(Span::new(0, rows), Span::new(0, cols)), elements)]
        };
        let shift = if signed { 0.5 } else { 0.0 };
        let field = array("field.npy", Place::Centre, &|i| noise(seed, i) - shift);
        let faces = domain.axes().iter().zip(constant).enumerate();
        let faces = faces.map(|(number, (axis, constant))| {
            let value = |i| 0.6 * (noise(seed + 1 + number as u64, i) - 0.5);
            (!constant).then(|| array(&format!("c{number}.npy"), Place::Face(*axis), &value))
        });
        let faces = faces.collect();
        Self { problem, directory, field, faces, signed }
    }

    const CONSTANT: f64 = -0.21;

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// In memory, on one processor.
    fn in_memory(&self, steps: u64) -> Vec<u64> {
        let plan = plan(&self.problem, Method::Rows, &[1.0]).unwrap();
        let (monitor, platform) = (Monitor::new(), Platform::from_speeds(&[1.0]).unwrap());
        let world = World::solo(&monitor);
        let session = Session::new(&world, &platform, &monitor, 0.0);
        let courant: Vec<Courant<'_, T>> = self
            .faces
            .iter()
            .map(|faces| {
                faces.as_ref().map_or(Courant::Constant(T::from_f64(Self::CONSTANT)), Courant::Faces)
            })
            .collect();
        let order = AdvectOrder::ALL[0];
        let job = AdvectJob { problem: &self.problem, plan: &plan, order, signed: self.signed };
        let (blocks, _) = advect(&job, &self.field, &courant, steps, &session).unwrap();
        row_by_row(&blocks, Plane::of(&self.problem.sizes).matrix(Place::Centre).1)
    }

    /// In slabs of a height, each sweep of some steps, from file to file.
    fn in_slabs(&self, height: u64, sweeps: &[u64], of: (Method, &[f64], AdvectOrder)) -> Option<Vec<u64>> {
        let slabs = Slabs::new(&self.problem, height);
        let slab = slabs.problem(&self.problem);
        let plan = plan(&slab, of.0, of.1)?;
        let schedule = AdvectSchedule::new(&slab, plan.rectangles().unwrap(), of.2, 1).unwrap();
        let (monitor, platform) = (Monitor::new(), Platform::from_speeds(of.1).unwrap());
        let world = World::solo(&monitor);
        let session = Session::new(&world, &platform, &monitor, 0.0);
        let file = |number: usize| NpyFile::open_array(&self.path(&format!("c{number}.npy"))).unwrap();
        let courant = self.faces.iter().enumerate().map(|(number, faces)| match faces {
            None => CourantFile::Constant(Self::CONSTANT),
            Some(_) => CourantFile::Faces(file(number)),
        });
        let courant = courant.collect();
        let mut run = SlabRun::<T>::new(&self.problem, slabs, &schedule, courant, self.signed, &session);
        let (mut from, mut all) = ("field.npy".to_owned(), Vec::new());
        for (number, steps) in sweeps.iter().enumerate() {
            let mut source = NpyFile::open_array(&self.path(&from)).unwrap();
            let mut found: Vec<T> = Vec::new();
            let width = self.problem.cells() / self.problem.sizes[0] as u64;
            let trace = run
                .sweep(&mut source, *steps, &mut |first, elements| {
                    assert_eq!(first * width, found.len() as u64, "planes come in order");
                    found.extend_from_slice(elements);
                    Ok(())
                })
                .unwrap();
            assert!(trace.lanes.iter().zip(0..).all(|(lane, rank)| {
                lane.peak_bytes == schedule.memory(Rank(rank), size_of::<T>() as u64)
            }));
            from = format!("state{number}.npy");
            write(&self.path(&from), &self.problem.sizes, &found);
            all = found.iter().map(|x| x.to_f64().to_bits()).collect();
        }
        assert!(run.disk.read > 0);
        Some(all)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]
    #[test]
    fn slabs_give_the_bytes_of_the_run_in_memory(
        sizes in prop::collection::vec(1usize..7, 0..=2),
        planes in 1usize..40,
        boundary in (ends(), ends(), ends()),
        scheme in scheme(),
        height in 0u64..40,
        steps in prop::collection::vec(1u64..5, 1..4),
        weights in prop::collection::vec(1.0f64..9.0, 1..4),
        (method, order) in (0usize..4, 0usize..4),
        constant in prop::collection::vec(any::<bool>(), 3),
        (seed, signed, single) in (any::<u32>(), any::<bool>(), any::<bool>()),
    ) {
        let sizes = [vec![planes], sizes].concat();
        let boundary = vec![boundary.0, boundary.1, boundary.2][..sizes.len()].to_vec();
        let problem = AdvectProblem { sizes, boundary, scheme };
        // The lowest slab keeps one plane after one step.
        let height = Slabs::least(&problem) + height;
        let most = Slabs::new(&problem, height).most_steps();
        let sweeps: Vec<u64> = steps.iter().map(|steps| (*steps).min(most)).collect();
        let method = [Method::Rows, Method::Columns, Method::Grid, Method::Cartesian][method];
        let of = (method, &weights[..], AdvectOrder::ALL[order]);
        let about = (u64::from(seed), signed);
        let all = sweeps.iter().sum();
        let [wanted, found] = if single {
            let case = Case::<f32>::new(problem, about, &constant);
            [Some(case.in_memory(all)), case.in_slabs(height, &sweeps, of)]
        } else {
            let case = Case::<f64>::new(problem, about, &constant);
            [Some(case.in_memory(all)), case.in_slabs(height, &sweeps, of)]
        };
        prop_assert!(found.is_none() || found == wanted, "{} {:?}", height, sweeps);
    }

    #[test]
    fn slabs_tile_the_grid_and_keep_what_no_cut_has_reached(
        planes in 1usize..60, height in 1u64..60, scheme in scheme(), ends in ends(), steps in 1u64..6,
    ) {
        let problem = AdvectProblem { sizes: vec![planes, 3], boundary: vec![ends; 2], scheme };
        let slabs = Slabs::new(&problem, height.max(Slabs::least(&problem)));
        let steps = steps.min(slabs.most_steps());
        let (n, h, margin) = (planes as i64, slabs.height() as i64, (steps * scheme.halo() as u64) as i64);
        let mut next = 0;
        for Window { first, keep } in slabs.windows(steps) {
            prop_assert!(keep.start == next && !keep.is_empty());
            next = keep.end;
            let (start, end) = (keep.start as i64, keep.end as i64);
            prop_assert!(first <= start && end <= first + h);
            let real = ends != Boundary::Periodic;
            prop_assert!(!real || (first >= 0 && first + h <= n));
            if !slabs.is_whole() {
                prop_assert!(start - first >= margin || (real && first == 0));
                prop_assert!(first + h - end >= margin || (real && first + h == n));
            }
        }
        prop_assert_eq!(next, planes as u64);
        let count = |slabs: &Slabs| slabs.windows(steps).count() as u64;
        prop_assert_eq!(count(&slabs), slabs.count(steps));
        // By trying all heights.
        let lowered = slabs.lowered(steps);
        prop_assert_eq!(count(&lowered), count(&slabs));
        if !slabs.is_whole() {
            let all = 2 * steps * scheme.halo() as u64 + 1..=slabs.height();
            let mut as_few = all.filter(|h| count(&Slabs::new(&problem, *h)) <= count(&slabs));
            prop_assert_eq!(as_few.next(), Some(lowered.height()));
        }
    }

    #[test]
    fn no_other_number_of_steps_a_sweep_is_faster(
        planes in 1usize..300, height in 1u64..200, ends in ends(), most in 1u64..40, cell in 0.0f64..1.0, byte in 0.0f64..1.0,
    ) {
        let scheme = Scheme::new(2).unwrap();
        let problem = AdvectProblem { sizes: vec![planes, 3], boundary: vec![ends; 2], scheme };
        let slabs = Slabs::new(&problem, height.max(5));
        let costs = SlabCosts { cell, byte, read: 24.0, written: 8.0 };
        let best = slabs.best_steps(most, 3.0, costs);
        let seconds = |steps: u64| {
            let read = slabs.windows(steps).count() as f64 * slabs.height() as f64 * 3.0;
            read * cell + (read * 24.0 + planes as f64 * 24.0) * byte / steps as f64
        };
        let others = (1..=most.min(slabs.most_steps())).map(seconds).fold(f64::INFINITY, f64::min);
        prop_assert!(best <= most && seconds(best) <= others * (1.0 + 1e-12));
    }

    #[test]
    fn the_highest_slab_fits_and_uses_the_memory(
        planes in 1usize..2000, memory in 1u64..3_000_000, each in 1u64..2000, base in 0u64..100_000,
    ) {
        let problem = AdvectProblem {
            sizes: vec![planes], boundary: vec![Boundary::Zero], scheme: Scheme::new(2).unwrap(),
        };
        let mut tries = 0;
        // Nearly a line.
        let need = |height: u64| base + each * height + height % 7;
        let found = tallest_slab(&problem, memory, &mut |slabs| {
            tries += 1;
            Ok((need(slabs.height()), slabs.height()))
        });
        prop_assert!(tries < 40, "{}", tries);
        match found {
            Err(error) => {
                prop_assert!(need(Slabs::least(&problem)) > memory);
                let line = error.to_string();
                prop_assert!(line.contains(&need(Slabs::least(&problem)).to_string()) && error.exit_code() == 1);
            }
            Ok((slabs, made)) => {
                prop_assert_eq!(made, slabs.height());
                prop_assert!(need(made) <= memory);
                prop_assert!(
                    slabs.is_whole() || need(made + 1) > memory || memory - need(made) < memory / 64
                );
            }
        }
    }
}

/// What `check_flow` finds and refuses, read from files.
#[test]
fn flow_in_files_is_checked_as_in_memory() {
    let monitor = Monitor::new();
    for ends in [Boundary::Periodic, Boundary::Zero] {
        let scheme = Scheme::new(2).unwrap();
        let problem = AdvectProblem { sizes: vec![11, 4, 3], boundary: vec![ends; 3], scheme };
        let mut case = Case::<f64>::new(problem.clone(), (7, false), &[false, true, false]);
        let faces = |case: &Case<f64>| -> Vec<CourantFile> {
            let file =
                |n: usize| CourantFile::Faces(NpyFile::open_array(&case.path(&format!("c{n}.npy"))).unwrap());
            vec![file(0), CourantFile::Constant(Case::<f64>::CONSTANT), file(2)]
        };
        let (world, mut disk) = (World::solo(&monitor), DiskUse::default());
        let plan = plan(&problem, Method::Rows, &[1.0]).unwrap();
        let schedule =
            AdvectSchedule::new(&problem, plan.rectangles().unwrap(), AdvectOrder::ALL[0], 1).unwrap();
        let check = |case: &Case<f64>| {
            let courant: Vec<Courant<'_, f64>> = case
                .faces
                .iter()
                .map(|faces| faces.as_ref().map_or(Courant::Constant(Case::<f64>::CONSTANT), Courant::Faces))
                .collect();
            crate::check_flow(&schedule, &courant, &world)
        };
        let found = check_flow_in_file::<f64>(&problem, &mut faces(&case), &mut disk, &monitor).unwrap();
        assert_eq!(found, check(&case).unwrap());
        for bad in [-0.95, f64::NAN, f64::INFINITY] {
            let elements = &mut case.faces[0].as_mut().unwrap()[0].1;
            elements[5 * 12 + 7] = bad;
            write(&case.path("c0.npy"), &[12, 4, 3], &case.faces[0].as_ref().unwrap()[0].1);
            let said = check_flow_in_file::<f64>(&problem, &mut faces(&case), &mut disk, &monitor);
            assert_eq!(said.unwrap_err().to_string(), check(&case).unwrap_err().to_string(), "{bad}");
        }
        let stopped = Monitor::new();
        stopped.stop();
        let said = check_flow_in_file::<f64>(&problem, &mut faces(&case), &mut disk, &stopped);
        assert!(matches!(said, Err(apportion::error::Error::Interrupted)));
    }
}
