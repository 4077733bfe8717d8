use super::{cell, example, run};
use crate::{EventMatrices, EventOptions, EventRun, SharedLogic, Workcell, simulate_workcell};
use apportion::kernels::Kernel;
use apportion::model::Model;
use apportion::plan::shapes::{Method, MethodOptions};
use apportion::plan::{Plan, Shape};
use apportion::platform::Platform;
use apportion::product::MatmulJob;
use apportion::run::{Monitor, Session, World};
use apportion::schedule::{Flow, ScheduleOptions};

/// The runs on processors of these speeds, in one world.
fn on_processors(
    workcell: &Workcell,
    options: &EventOptions,
    (method, speeds): (Method, &[f64]),
    world: &World,
) -> apportion::Result<Vec<EventRun>> {
    let columns = (1 + workcell.scenarios.len()) as u64 * options.replications;
    let shape = Shape::new(workcell.rules.len() as u64, workcell.places() as u64, columns, "cell")?;
    let platform = Platform::from_speeds(speeds)?;
    let layout = method.layout(shape, speeds, &MethodOptions::default())?;
    let plan = Plan::of_layout("test", platform.names(), layout, 1.0);
    let models: Vec<Model> = speeds
        .iter()
        .zip(platform.names())
        .map(|(s, name)| Model::constant(&name, s * 1e9))
        .collect::<Result<_, _>>()?;
    let job = MatmulJob::new(Kernel::or_and(), &plan, ScheduleOptions::new(Flow::Ring, 4), &models, 1);
    let monitor = Monitor::new();
    let session = Session::new(world, &platform, &monitor, job.work());
    let matrices = EventMatrices::of(workcell);
    let mut logic = SharedLogic::new(&matrices, &job, &session)?;
    let runs = simulate_workcell(workcell, options, &mut logic, &monitor)?;
    assert!(logic.report().products > 10);
    Ok(runs)
}

/// Any partition, on threads that share memory and on ranks that do not: the events of one core.
#[test]
fn unequal_processors_find_the_same_events() {
    let options = EventOptions { replications: 5, ..EventOptions::default() };
    for text in [example!("tacconi-lewis"), example!("deadlock")] {
        let text = text.replace("duration = \"60 s\"", "duration = { uniform = [20, 90] }");
        let workcell = cell(&text);
        let alone = run(&workcell, &options).unwrap();
        let ways: [(Method, &[f64]); 4] = [
            (Method::SquareCorner, &[9.0, 1.0]),
            (Method::StraightLine, &[3.0, 1.0]),
            (Method::Columns, &[3.0, 2.0, 1.0]),
            (Method::Rows, &[1.0]),
        ];
        for way in ways {
            let monitor = Monitor::new();
            let solo = on_processors(&workcell, &options, way, &World::solo(&monitor)).unwrap();
            assert!(solo == alone, "{:?}", way.0);
            let ranks =
                World::threads(way.1.len(), &monitor, |world| on_processors(&workcell, &options, way, world));
            assert!(ranks.unwrap().iter().all(|runs| *runs == alone), "{:?}", way.0);
        }
    }
}

#[test]
fn a_stop_ends_the_simulation() {
    let workcell = cell(example!("flow-line"));
    let matrices = EventMatrices::of(&workcell);
    let monitor = Monitor::new();
    monitor.stop();
    let mut logic = crate::LocalLogic::new(&matrices);
    let error = simulate_workcell(&workcell, &EventOptions::default(), &mut logic, &monitor).unwrap_err();
    assert!(matches!(error, apportion::Error::Interrupted));
}
