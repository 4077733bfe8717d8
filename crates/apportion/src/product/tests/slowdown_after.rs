//! A processor that slows down does so once in a job, after its own fraction of it, on every engine.

use super::*;
use crate::matrix::{NpyFile, npy_header};
use std::path::Path;

/// Seconds of one product on each processor, before the slowdown.
const SECONDS: f64 = 0.04;
/// Slowdown of the processor.
const SLOWER: f64 = 6.0;

/// Emulated processors that compute for [`SECONDS`] per product; this one slows down half-way through the
/// job.
fn turning(weights: &[f64], turns: usize) -> Setup {
    let mut setup = Setup::new(weights, ScheduleOptions::new(Flow::OneToAll, 8));
    let speeds = setup.plan.shares.iter().map(|&share| (share * N) as f64 / SECONDS);
    for (processor, speed) in setup.platform.processors.iter_mut().zip(speeds) {
        processor.emulated = Some(format!("peak {speed}").parse().unwrap());
    }
    setup.platform.processors[turns].slowdown_after = Some(SlowdownAfter { work: 0.5, slowdown: SLOWER });
    setup
}

/// Current slowdown of a processor, if this process runs it.
fn slowdown(session: &Session<'_>, processor: usize) -> Option<f64> {
    let here = session.world().processors_here(session.platform().len());
    here.contains(&processor).then(|| session.throttle(processor).slowdown())
}

/// The fraction counts the processor's own work, not that of all processors or of this process.
#[test]
fn a_small_share_turns_half_way_as_well() {
    let setup = turning(&[3.0, 1.0], 1);
    let a = fractions(31);
    for path in PATHS {
        let job = setup.job(Kernel::plus_times());
        let done = on(path, (&setup.platform, &Monitor::new()), job.work(), |session| {
            let own = setup.own(session);
            let (_, report) = multiply(Operands::new(&parts(&a, &own.a), &parts(&a, &own.b)), &job, session)?;
            assert_eq!(slowdown(session, 1).unwrap_or(SLOWER), SLOWER, "{path:?}");
            Ok(report)
        });
        // Half at its first speed and half six times slower. Without the slowdown it would be 1, with an
        // immediate one 6.
        let slower = done.unwrap()[0].trace.compute()[1] / SECONDS;
        assert!((2.0..5.5).contains(&slower), "{path:?}: {slower}");
    }
}

/// Eight products, the first four of which are a power: the slowdown is between the fourth and the fifth.
#[test]
fn a_power_does_not_begin_the_job_anew() {
    let setup = turning(&[1.0, 1.0], 0);
    let a = fractions(31);
    for path in PATHS {
        let job = setup.job(Kernel::plus_times());
        let took = on(path, (&setup.platform, &Monitor::new()), 8.0 * job.work(), |session| {
            let own = setup.own(session);
            let (a, b) = (parts(&a, &own.a), parts(&a, &own.b));
            let (_, power) = matrix_power(&a, 16, &job, session)?;
            assert_eq!(power.products, 4);
            assert_eq!(slowdown(session, 0).unwrap_or(1.0), 1.0, "{path:?}: half is not done yet");
            let (_, fifth) = multiply(Operands::new(&a, &b), &job, session)?;
            assert_eq!(slowdown(session, 0).unwrap_or(SLOWER), SLOWER, "{path:?}");
            Ok([power.trace.compute()[0] / 4.0, fifth.trace.compute()[0]])
        });
        let [before, after] = took.unwrap()[0];
        assert!(after > 2.0 * before, "{path:?}: {after} after {before}");
    }
}

/// Four panels of two segments each: the slowdown is between the second panel and the third.
#[test]
fn panels_do_not_begin_the_job_anew() {
    let rows = N.div_ceil(4);
    let mut setup = turning(&[1.0, 1.0], 0);
    let shape = Shape::new(rows, N, N, "test").unwrap();
    let layout = shapes::Columns::default().layout(shape, &[1.0, 1.0]).unwrap();
    setup.plan = Plan::of_layout("columns", setup.platform.names(), layout, 1.0);
    let whole = Shape { m: 4 * rows, ..shape };
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, m: u64| {
        let elements: Vec<f64> = (0..m * N).map(|i| (i % 7) as f64).collect();
        let bytes =
            [npy_header::<f64>(&[m as usize, N as usize], false), bytemuck::cast_slice(&elements).to_vec()];
        std::fs::write(directory.path().join(name), bytes.concat()).unwrap();
        directory.path().join(name)
    };
    let (a, b) = (file("a.npy", whole.m), file("b.npy", N));
    let open = |path: &Path| NpyFile::open(path, false).map(Watched::new);
    for path in PATHS {
        let work = (whole.m * N * N) as f64;
        on(path, (&setup.platform, &Monitor::new()), work, |session| {
            let panels = Panels { rows, segment: 24 };
            let files = Files { a: open(&a)?, b: open(&b)?, initial: None };
            let mut run =
                PanelRun::new(files, setup.job(Kernel::<f64>::plus_times()), session, whole, panels);
            for (number, rows) in panels.of(whole).into_iter().enumerate() {
                run.panel(rows)?;
                let expected = if number < 2 { 1.0 } else { SLOWER };
                assert_eq!(slowdown(session, 0).unwrap_or(expected), expected, "{path:?}, panel {number}");
            }
            Ok(())
        })
        .unwrap();
    }
}
