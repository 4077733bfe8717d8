//! The parsers, each with what its result is used for: a value that was accepted must also be usable.

use super::{Grammar, Target};
use apportion::error::Error;
use apportion::matrix::{DistributedFile, read_matrix, read_npy_array};
use apportion::model::{Models, Surfaces};
use apportion::plan::Plan;
use apportion::plan::shares::{Balancer, fpm, least_time, makespan, robust};
use apportion::platform::{Network, parse_platform};
use apportion::product::Manifest;
use apportion::run::Monitor;
use apportion::simulate::{Deployment, Fluid, Host, parse_traces, simulate_actions};
use apportion::units::{self, Dimension};
use apportion_events::{
    EventGraph, EventMatrices, EventOptions, LocalLogic, parse_workcell, shared_places, simulate_workcell,
};
use apportion_report::plan_svg;
use std::path::PathBuf;
use std::sync::OnceLock;

/// All targets but the command line.
pub fn targets() -> Vec<Target> {
    let target = |name, grammar, read| Target { name, grammar, read };
    vec![
        target("platform", Grammar::Toml, platform),
        target("models", Grammar::Json, models),
        target("surfaces", Grammar::Json, surfaces),
        target("plan", Grammar::Json, plan),
        target("manifest", Grammar::Json, manifest),
        target("workcell", Grammar::Toml, workcell),
        target("traces", Grammar::Bytes, traces),
        target("balancer", Grammar::Json, balancer),
        target("blocks", Grammar::Json, blocks),
        target("npy", Grammar::Bytes, npy),
        target("mtx", Grammar::Bytes, mtx),
        target("units", Grammar::Bytes, quantities),
    ]
}

/// Files are read as UTF-8.
fn text(input: &[u8]) -> Result<&str, Error> {
    std::str::from_utf8(input).map_err(|_| Error::input("input", "is not UTF-8", "use UTF-8"))
}

/// What was accepted must be accepted again after writing.
fn platform(input: &[u8]) -> Result<(), Error> {
    let platform = parse_platform(text(input)?, "platform.toml")?;
    let again = parse_platform(&platform.to_toml(), "again.toml").expect("what is written is read");
    assert_eq!(again.names(), platform.names());
    let speeds = platform.speeds().unwrap_or_default();
    assert!(speeds.iter().all(|speed| speed.value() > 0.0 && speed.value().is_finite()));
    Ok(())
}

/// Units that are divided by accepted models.
const UNITS: u64 = 1000;

fn models(input: &[u8]) -> Result<(), Error> {
    let models = Models::parse(text(input)?, "models.json")?;
    let again = Models::parse(&models.to_json(), "again.json").expect("what is written is read");
    assert_eq!(again.models, models.models);
    for model in &models.models {
        for size in [1e-9, 1.0, 1e3, 1e9, 1e18] {
            assert!(model.seconds(size) >= 0.0 && model.speed(size) >= 0.0);
        }
    }
    let limits = vec![Default::default(); models.models.len()];
    for shares in [
        fpm(&models.models, UNITS),
        least_time(&models.models, UNITS, &limits).map(|divided| divided.shares),
        robust(&models.models, UNITS, &limits).map(|robust| robust.shares),
    ]
    .into_iter()
    .flatten()
    {
        assert_eq!(shares.iter().sum::<u64>(), UNITS);
        assert!(makespan(&models.models, &shares) >= 0.0);
    }
    Ok(())
}

fn surfaces(input: &[u8]) -> Result<(), Error> {
    let surfaces = Surfaces::parse(text(input)?, "surfaces.json")?;
    Surfaces::parse(&surfaces.to_json(), "again.json").expect("what is written is read");
    let mut fixed: Vec<Option<f64>> = surfaces.axes.iter().map(|_| Some(100.0)).collect();
    fixed[0] = None;
    let cut = surfaces.section(&fixed)?;
    assert!(cut.iter().all(|model| model.seconds(100.0) >= 0.0));
    Ok(())
}

fn plan(input: &[u8]) -> Result<(), Error> {
    let plan = Plan::parse(text(input)?, "plan.json")?;
    let again = Plan::parse(&plan.to_json(), "again.json").expect("what is written is read");
    assert_eq!(again.shares, plan.shares);
    let picture = plan_svg(&plan, &plan.processors);
    assert!(picture.starts_with("<svg") && !picture.contains('\u{1b}'));
    Ok(())
}

fn manifest(input: &[u8]) -> Result<(), Error> {
    let manifest = Manifest::parse(text(input)?, "checkpoint.json")?;
    Manifest::parse(&manifest.to_value().to_string(), "again.json").expect("what is written is read");
    Ok(())
}

/// Firings of an accepted workcell that are simulated.
const FIRINGS: u64 = 200;

fn workcell(input: &[u8]) -> Result<(), Error> {
    let workcell = parse_workcell(text(input)?, "workcell.toml")?;
    let _ = shared_places(&workcell);
    if let Ok(graph) = EventGraph::of(&workcell) {
        let _ = graph.cycle();
        graph.firing_times(None, FIRINGS)?;
    }
    let matrices = EventMatrices::of(&workcell);
    let options = EventOptions { firings: FIRINGS, ..EventOptions::default() };
    simulate_workcell(&workcell, &options, &mut LocalLogic::new(&matrices), &Monitor::new())?;
    Ok(())
}

fn traces(input: &[u8]) -> Result<(), Error> {
    let mut scripts = parse_traces(&[("traces.txt".into(), text(input)?.into())])?;
    // A thousand ranks and their names are enough for a simulation of each input.
    let ranks = scripts.len();
    if ranks > 1000 {
        return Ok(());
    }
    let names: Vec<String> = (0..ranks).map(|rank| format!("rank{rank}")).collect();
    let hosts = vec![Host { speed: 1e9, cores: 1 }; ranks];
    let (network, placement) = (Network::free(), (0..ranks).collect::<Vec<_>>());
    let on = Deployment { hosts: &hosts, names: &names, network: &network, placement: &placement };
    let mut scripts: Vec<_> = scripts.drain(..).map(Vec::into_iter).collect();
    let outcome = simulate_actions(&mut scripts, on, &Fluid::fair(), false)?;
    let seconds = outcome.trace.seconds();
    assert!(seconds >= 0.0 && seconds.is_finite());
    Ok(())
}

/// A file of this process for inputs that are read from disk.
fn on_disk(input: &[u8], name: &str) -> PathBuf {
    static DIRECTORY: OnceLock<tempfile::TempDir> = OnceLock::new();
    let directory = DIRECTORY.get_or_init(|| tempfile::tempdir().expect("a temporary directory"));
    let path = directory.path().join(name);
    std::fs::write(&path, input).expect("a temporary file");
    path
}

/// A state that was accepted takes rounds, and its text leads to the same.
fn balancer(input: &[u8]) -> Result<(), Error> {
    let mut balancer = Balancer::from_json(text(input)?)?;
    let mut again = Balancer::from_json(&balancer.to_json()).expect("what is written is read");
    for round in 0..4 {
        let seconds: Vec<f64> = (0..balancer.processors()).map(|i| 1.0 + 0.1 * (i * round) as f64).collect();
        let decided = balancer.observe(&seconds).map(|decision| decision.shares);
        assert_eq!(
            decided.as_ref().ok(),
            again.observe(&seconds).map(|decision| decision.shares).as_ref().ok()
        );
        assert_eq!(balancer.shares().iter().sum::<u64>(), balancer.units());
    }
    Ok(())
}

/// A layout file beside the files that the corpus names: an accepted one is a matrix that can be read.
fn blocks(input: &[u8]) -> Result<(), Error> {
    static FILES: OnceLock<()> = OnceLock::new();
    FILES.get_or_init(|| {
        for (name, sizes) in [("a-0.npy", (6, 3)), ("a-1.npy", (6, 6))] {
            let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {sizes:?}, }}");
            let header = format!("{header:<117}\n");
            let mut file = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
            file.extend(header.as_bytes());
            file.extend(vec![0; 8 * sizes.0 * sizes.1]);
            on_disk(&file, name);
        }
    });
    let path = on_disk(input, "a.json");
    let file = DistributedFile::open(&path, false)?;
    assert!(file.rows() > 0 && file.cols() > 0 && file.files().count() > 0);
    let turned = DistributedFile::open(&path, true)?;
    assert_eq!((turned.rows(), turned.cols()), (file.cols(), file.rows()));
    Ok(())
}

fn npy(input: &[u8]) -> Result<(), Error> {
    let path = on_disk(input, "a.npy");
    let matrix = read_matrix(&path);
    let array = read_npy_array(&path);
    // An array of two dimensions is a matrix.
    if let (Ok(array), Err(error)) = (&array, &matrix) {
        assert!(array.sizes.len() != 2, "{error}");
    }
    matrix.map(|_| ()).or(array.map(|_| ()))
}

fn mtx(input: &[u8]) -> Result<(), Error> {
    read_matrix(&on_disk(input, "a.mtx")).map(|_| ())
}

fn quantities(input: &[u8]) -> Result<(), Error> {
    let text = text(input)?;
    let of = |dimension| units::parse(text, dimension);
    let found = [
        of(Dimension::Bandwidth),
        of(Dimension::Bytes),
        of(Dimension::Rate),
        of(Dimension::Speed),
        of(Dimension::Time),
        units::number(text),
        units::whole(text).map(|n| n as f64),
    ];
    assert!(found.iter().flatten().all(|x| !x.is_nan()), "{text}");
    let error = || Error::input("input", "is no quantity", "add a unit");
    found.into_iter().any(|found| found.is_ok()).then_some(()).ok_or_else(error)
}
