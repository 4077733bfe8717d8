//! Slabs give the bytes of the factorisation in memory, hold what the formula says, and go on from what is kept.

use super::*;
use crate::local_columns::digest_of_file;
use crate::tests::{matrix, on, platform, whole};
use apportion::error::{Error, Result};
use apportion::kernels::{Kernel, Real};
use apportion::matrix::{NpyFile, npy_header};
use apportion::output::OutputFile;
use apportion::run::{Monitor, Session, World};
use apportion::schedule::Application;
use std::path::Path;

/// The divisions of n columns that are tried.
fn divisions(n: u64, block: u64) -> Vec<TileMap> {
    crate::tests::divisions(Factors::Lu, n, block).into_iter().filter(TileMap::are_columns).collect()
}

/// What a run by slabs has found: the factors as bits, and the pivots.
type Found = (Vec<u64>, Vec<i64>);

/// A directory with a matrix, whose elements are `order`ed as in C or in Fortran.
fn saved<T: Real>(a: &[T], n: usize, fortran: bool) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let mut bytes = npy_header::<T>(&[n, n], false);
    if fortran {
        let header = String::from_utf8_lossy(&bytes[10..]).replace("False", "True ");
        bytes.truncate(10);
        bytes.extend(header.bytes());
    }
    let at = |i: usize| if fortran { a[i % n * n + i / n] } else { a[i] };
    bytes.extend((0..n * n).flat_map(|i| bytemuck::bytes_of(&at(i)).to_vec()));
    std::fs::write(directory.path().join("a.npy"), bytes).unwrap();
    directory
}

/// A run by slabs, of which some block columns may come from records of another run.
struct Trial<'a, T> {
    directory: &'a Path,
    schedule: &'a FactorSchedule,
    width: usize,
    copies: bool,
    known: &'a [Vec<T>],
}

impl<T: Real> Trial<'_, T> {
    /// The factors and the records of the block columns that were factored.
    fn run(&self) -> Result<(Found, Vec<Vec<T>>)> {
        let Self { directory, schedule, width, copies, known } = *self;
        let (monitor, p) = (Monitor::new(), schedule.processors());
        let (world, platform) = (World::solo(&monitor), platform(p));
        let session = Session::new(&world, &platform, &monitor, 1.0).copying(copies);
        let slabs = Slabs { schedule: schedule.clone(), width };
        let layout = RecordLayout::new(slabs.factors(), slabs.columns().clone());
        let temporary = OutputFile::create(directory.join("panels"))?;
        let store = PanelStore::create(temporary, layout)?;
        let mut run = SlabRun::<T>::new(&slabs, Kernel::plus_times(), store, 1, &session);
        let mut file = NpyFile::open(&directory.join("a.npy"), false)?;
        run.look(&mut file, None, &|_| Ok(()))?;
        known.iter().try_for_each(|record| run.resume(record))?;
        let mut records = Vec::new();
        run.factor(&mut file, &mut |column, record| {
            assert_eq!(column, known.len() + records.len());
            records.push(record);
            Ok(())
        })?;
        let pivots = run.all_pivots();
        let residual = run.verify(&pivots)?;
        assert!(residual.scaled < 1.0, "{residual:?}");
        let element = size_of::<T>() as u64;
        for (rank, lane) in run.trace.lanes.iter().enumerate() {
            if known.is_empty() {
                let received = |range| slabs.schedule(range).received()[rank];
                assert_eq!(lane.received.iter().sum::<u64>(), slabs.from(0).map(received).sum::<u64>());
                assert_eq!(lane.peak_bytes, slabs.processor_bytes(element)[rank], "{schedule:?} {width}");
            }
        }
        let mut bits = Vec::new();
        run.each_band(&mut |band| {
            bits.extend(band.iter().map(|x| x.to_f64().to_bits()));
            Ok(())
        })?;
        Ok(((bits, pivots), records))
    }
}

fn check<T: Real>(factors: Factors, n: u64, block: u64) {
    let a: Vec<T> = matrix(factors, n);
    let (monitor, kernel) = (Monitor::new(), Kernel::plus_times());
    let directory = [false, true].map(|fortran| saved(&a, n as usize, fortran));
    for (number, columns) in divisions(n, block).into_iter().enumerate() {
        let schedule = FactorSchedule::new(factors, columns);
        let output = on(&a, &schedule, kernel, &World::solo(&monitor), false).unwrap();
        let wanted = (whole(&output.columns), output.pivots);
        for width in [1, 2, 3, schedule.blocks().count()] {
            let (directory, copies) = (directory[width % 2].path(), (number + width) % 2 == 0);
            let trial = Trial::<T> { directory, schedule: &schedule, width, copies, known: &[] };
            let (found, _) = trial.run().unwrap();
            assert!(found == wanted, "{factors} {n} in slabs of {width}, {copies}: {schedule:?}");
        }
    }
}

#[test]
fn slabs_give_the_bytes_of_the_factorisation_in_memory() {
    for factors in Factors::ALL {
        for (n, block) in [(1, 4), (16, 4), (37, 8), (150, 32), (211, 48)] {
            check::<f64>(factors, n, block);
        }
        check::<f32>(factors, 97, 16);
    }
}

/// Whatever was kept, and whoever goes on, in whatever slabs.
#[test]
fn records_of_another_run_give_the_same_bytes() {
    let n = 137;
    for factors in Factors::ALL {
        let a: Vec<f64> = matrix(factors, n);
        let saved = saved(&a, n as usize, false);
        let all = divisions(n, 16);
        let schedules = [1, 2].map(|which| FactorSchedule::new(factors, all[which].clone()));
        let directory = saved.path();
        let trial = |which: usize, width, known: &[Vec<f64>]| {
            Trial { directory, schedule: &schedules[which], width, copies: false, known }.run().unwrap()
        };
        let (wanted, records) = trial(0, 2, &[]);
        assert_eq!(records.len(), 9);
        for (count, width) in [(1, 3), (4, 1), (7, 9), (9, 2)] {
            let (found, others) = trial(1, width, &records[..count]);
            assert!(found == wanted && others == records[count..], "{factors}: {count} are known");
        }
    }
}

/// In the middle of a slab: the index, and an end for all that wait for panels.
#[test]
fn what_cannot_be_factored_is_found_in_its_slab() {
    for (factors, words) in
        [(Factors::Cholesky, "order 61"), (Factors::Lu, "U(60, 60)"), (Factors::Ldlt, "D(60, 60)")]
    {
        let n = 100_usize;
        let mut a = vec![0.0; n * n];
        (0..n).filter(|i| *i != 60).for_each(|i| a[i * n + i] = 2.0);
        let directory = saved(&a, n, false);
        let schedule = FactorSchedule::new(factors, divisions(n as u64, 8).remove(2));
        let trial = Trial::<f64> {
            directory: directory.path(),
            schedule: &schedule,
            width: 3,
            copies: false,
            known: &[],
        };
        let error = trial.run().unwrap_err();
        assert!(error.to_string().contains(words) && error.exit_code() == 1, "{error}");
    }
}

/// What is factored is what was looked at, whatever the times of the file say.
#[test]
fn a_matrix_that_changes_after_the_first_look_is_refused() {
    let n = 64;
    for (factors, at) in
        Factors::ALL.into_iter().flat_map(|factors| [(factors, 50 * n + 3), (factors, 63 * n + 63)])
    {
        let a: Vec<f64> = matrix(factors, n as u64);
        let (monitor, platform) = (Monitor::new(), platform(2));
        let world = World::solo(&monitor);
        let session = Session::new(&world, &platform, &monitor, 1.0);
        let schedule = FactorSchedule::new(factors, divisions(n as u64, 16).remove(1));
        let slabs = Slabs { schedule, width: 1 };
        let directory = saved(&a, n, false);
        let begin = |name: &str| {
            let temporary = OutputFile::create(directory.path().join(name)).unwrap();
            let layout = RecordLayout::new(factors, slabs.columns().clone());
            let store = PanelStore::create(temporary, layout).unwrap();
            SlabRun::<f64>::new(&slabs, Kernel::plus_times(), store, 1, &session)
        };
        let mut run = begin("panels");
        let open =
            |directory: &tempfile::TempDir| NpyFile::open(&directory.path().join("a.npy"), false).unwrap();
        let known = digest_of_file::<f64>(&mut open(&directory), factors.is_symmetric()).unwrap();
        run.look(&mut open(&directory), Some(known), &|_| Ok(())).unwrap();
        let mut other = a.clone();
        other[at] += 1e-9;
        let other = saved(&other, n, false);
        let mut kept = 0;
        let mut save = |_, _| {
            kept += 1;
            Ok(())
        };
        let error = run.factor(&mut open(&other), &mut save).unwrap_err();
        assert!(
            error.exit_code() == 1 && error.to_string().contains("a.npy changed during the run"),
            "{error}"
        );
        assert_eq!(kept, at % n / 16, "{factors}: block columns left of it are right");
        assert!(begin("again").look(&mut open(&other), Some(known), &|_| Ok(())).is_err());
    }
}

/// A panel that is not the one that was kept makes factors that are found to be wrong.
#[test]
fn wrong_records_are_found() {
    for factors in Factors::ALL {
        let n = 150;
        let a: Vec<f64> = matrix(factors, n);
        let saved = saved(&a, n as usize, false);
        let schedule = FactorSchedule::new(factors, divisions(n, 16).remove(1));
        let trial = |known: &[Vec<f64>]| {
            let directory = saved.path();
            Trial { directory, schedule: &schedule, width: 2, copies: false, known }.run()
        };
        let (_, mut records) = trial(&[]).unwrap();
        let last = records[1].len() - 1;
        records[1][last] += 1e-3;
        let error = trial(&records[..3]).unwrap_err();
        assert!(matches!(error, Error::WrongResult { .. }), "{factors}: {error}");
    }
}

/// Another slab needs more memory, or less, but never less than its own columns.
#[test]
fn wider_slabs_need_more_memory() {
    let columns = divisions(4000, 64).remove(1);
    let schedule = FactorSchedule::new(Factors::Lu, columns);
    let computers = Computers { threads: 2, copies: false, element: 8 };
    let bytes = |width| Slabs { schedule: schedule.clone(), width }.process_bytes(computers);
    for width in 1..62 {
        assert!(bytes(width + 1) >= bytes(width) && bytes(width) > 8 * 4000 * 64 * width as u64, "{width}");
    }
    let fitting = Slabs::widest(&schedule, |slabs| slabs.process_bytes(computers) <= 100 << 20).unwrap();
    assert!(fitting.process_bytes(computers) <= 100 << 20 && fitting.count() > 1);
    let one_less = fitting.count() - 1;
    assert!(bytes(63_usize.div_ceil(one_less)) > 100 << 20, "fewer would not fit");
    assert!(Slabs::widest(&schedule, |_| false).is_none());
}
