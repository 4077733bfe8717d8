//! Factorisations whose processors are devices, on every engine.

use super::*;
use crate::tests::{divisions, factor, matrix, own, whole};
use apportion::kernels::Semiring;
use apportion::plan::{Factors, TileMap};
use apportion::run::{Monitor, Session, World};
use apportion::schedule::{Application, FactorSchedule, FactorTask, Step, Work};
use apportion_testing::{Need, skip};

/// Some processors, of which these are the first device; `None` without one.
fn platform(processors: usize, devices: &[usize], memory: Option<u64>) -> Option<Platform> {
    if apportion::device::devices().is_none_or(|devices| devices.is_empty()) {
        skip(Need::Device, "there is no OpenCL device");
        return None;
    }
    let mut platform = Platform::from_speeds(&vec![1.0; processors]).unwrap();
    for &rank in devices {
        platform.processors[rank].device = Some("opencl:0".into());
        let place = DeviceMemory { resident: true, ..DeviceMemory::behind_unknown_link(memory) };
        platform.network.devices.insert(Rank(rank), place);
    }
    Some(platform)
}

fn on<T: Real>(
    a: &[T],
    schedule: &FactorSchedule,
    platform: &Platform,
    world: &World,
    copies: bool,
) -> Result<crate::FactorOutput<T>> {
    let monitor = Monitor::new();
    let session = Session::new(world, platform, &monitor, 1.0).copying(copies);
    let own = own(a, schedule.blocks(), world.processors_here(platform.len()));
    factor(schedule, Kernel::plus_times(), own, &session)
}

/// What goes up to a device before the run and in it, and what comes down, with the exchanges of LU at their most.
fn crossings(schedule: &FactorSchedule, rank: Rank) -> [u64; 2] {
    let columns = schedule.blocks();
    let width: u64 = columns.own(rank).iter().map(|&column| columns.span(column).len()).sum();
    let mut all = [columns.n() * width, 0];
    for step in schedule.steps(rank) {
        let Step::Compute(work) = step else { continue };
        match (work.fetches(), &work.task) {
            (Some(elements), _) => all[1] += elements,
            (None, FactorTask::Update { panel, columns: range }) if schedule.factors() == Factors::Lu => {
                let own = &columns.own(rank)[columns.places(rank, range.clone())];
                let across: u64 = own.iter().map(|&column| columns.span(column).len()).sum();
                let exchanged = 2 * columns.span(*panel).len() * across;
                all[0] += work.uploads(None, 8).elements - exchanged;
                all[1] += exchanged;
            }
            (None, _) => all[0] += work.uploads(None, 8).elements,
        }
    }
    all
}

/// The factors on threads, with copies, and on ranks are the same bytes, and near those of cores; what goes up and
/// comes down is what the formula says, for LU at most.
fn check<T: Real>(factors: Factors, n: u64, block: u64, tolerance: f64) {
    let a: Vec<T> = matrix(factors, n);
    let monitor = Monitor::new();
    let solo = World::solo(&monitor);
    for columns in divisions(factors, n, block).into_iter().filter(TileMap::are_columns) {
        let schedule = FactorSchedule::new(factors, columns.clone());
        let p = schedule.processors();
        let cores = on(&a, &schedule, &Platform::from_speeds(&vec![1.0; p]).unwrap(), &solo, false).unwrap();
        let wanted = whole(&cores.columns);
        for devices in [&[0][..], &[p - 1], &(0..p).collect::<Vec<_>>()] {
            let Some(platform) = platform(p, devices, None) else { return };
            let name = format!("{factors} of {n} by {columns:?}, devices {devices:?}");
            let mut first = None;
            for copies in [false, true] {
                let output = on(&a, &schedule, &platform, &solo, copies).unwrap();
                assert!(output.residual.scaled < 2.0, "{name}: {:?}", output.residual);
                for (rank, lane) in output.trace.lanes.iter().enumerate() {
                    let bytes = schedule.memory(Rank(rank)) * size_of::<T>() as u64;
                    assert_eq!(lane.peak_bytes, bytes, "{name}: {rank}");
                    let most =
                        crossings(&schedule, Rank(rank)).map(|elements| elements * size_of::<T>() as u64);
                    let moved = lane.device_bytes;
                    match (devices.contains(&rank), factors) {
                        (false, _) => assert_eq!(moved, [0; 2], "{name}: {rank}"),
                        (true, Factors::Lu) => {
                            assert!(
                                moved[0] <= most[0] && moved[1] <= most[1],
                                "{name}: {rank}: {moved:?} {most:?}"
                            );
                            assert!(2 * moved[0] >= most[0] && 2 * moved[1] >= most[1], "{name}: {rank}");
                        }
                        (true, _) => assert_eq!(moved, most, "{name}: {rank}"),
                    }
                }
                let found = whole(&output.columns);
                for (x, y) in found.iter().zip(&wanted) {
                    let (x, y) = (f64::from_bits(*x), f64::from_bits(*y));
                    assert!((x - y).abs() <= tolerance * (n as f64), "{name}: {x} {y}");
                }
                assert_eq!(output.pivots, cores.pivots, "{name}");
                assert!(*first.get_or_insert(found.clone()) == found, "{name}, copies {copies}");
            }
            let ranks = World::threads(p, &monitor, |world| {
                let output = on(&a, &schedule, &platform, world, false)?;
                Ok(output.columns)
            });
            let columns: Vec<LocalColumns<T>> = ranks.unwrap().concat();
            assert!(first == Some(whole(&columns)), "{name} on ranks");
        }
    }
}

#[test]
fn devices_factor_as_cores_do() {
    for factors in Factors::ALL {
        for (n, block) in [(1, 4), (3, 4), (37, 8), (131, 16)] {
            check::<f64>(factors, n, block, 1e-12);
        }
        check::<f32>(factors, 97, 20, 1e-4);
    }
}

/// A matrix that has no factors is found as on cores.
#[test]
fn a_device_finds_the_column_that_cannot_be_factored() {
    let Some(platform) = platform(2, &[1], None) else { return };
    let (n, monitor) = (60_u64, Monitor::new());
    let columns = TileMap::columns(n, 8, 2, (0..8).map(|column| Rank(column % 2)).collect());
    for factors in [Factors::Cholesky, Factors::Lu] {
        let mut a: Vec<f64> = matrix(factors, n);
        for i in 0..n {
            match factors {
                Factors::Lu => a[(i * n + 29) as usize] = 0.0,
                _ if i == 29 => a[(i * n + i) as usize] = -1.0,
                _ => {}
            }
        }
        let schedule = FactorSchedule::new(factors, columns.clone());
        let error = on(&a, &schedule, &platform, &World::solo(&monitor), false).unwrap_err();
        let index = if factors == Factors::Lu { "U(29, 29)" } else { "order 30 " };
        assert!(error.to_string().contains(index) && error.exit_code() == 1, "{error}");
    }
}

/// The columns that a plan gives a device at most are as many as its memory holds, and hardly fewer.
#[test]
fn as_many_columns_fit_a_device_as_a_plan_gives_it() {
    for (rows, block) in [(1_u64, 1_u64), (37, 8), (500, 32), (4001, 128), (60_000, 256)] {
        for bytes in [1_u64 << 10, 1 << 16, 1 << 24, 1 << 33] {
            let memory = DeviceMemory::behind_unknown_link(Some(bytes));
            let needed = [8, 4].map(|element| {
                let of = |columns: u64| match element {
                    8 => DeviceTile::<f64>::bytes(Semiring::PlusTimes, rows, columns, block),
                    _ => DeviceTile::<f32>::bytes(Semiring::PlusTimes, rows, columns, block),
                };
                let most = memory.most_columns(rows, block, element);
                assert!(most == 0 || of(most) <= bytes, "{rows} {block} {bytes}: {most}");
                of(most + 17)
            });
            assert!(needed.iter().all(|needed| *needed > bytes), "{rows} {block} {bytes}: {needed:?}");
        }
    }
}

#[test]
fn columns_that_do_not_fit_a_device_are_refused() {
    let Some(platform) = platform(2, &[0], Some(100_000)) else { return };
    let (n, monitor) = (120, Monitor::new());
    let schedule = FactorSchedule::new(Factors::Lu, divisions(Factors::Lu, n, 16).remove(1));
    let error = on(&matrix::<f64>(Factors::Lu, n), &schedule, &platform, &World::solo(&monitor), false);
    let said = error.unwrap_err().to_string();
    assert!(said.contains("64 columns of 120 rows with a panel of 16 need"), "{said}");
    assert!(said.contains("raise its `memory`"), "{said}");
}
