//! The network between the hosts of a job where no flag or file says what it costs: remembered, or measured.

use super::{Context, cache};
use crate::error::Result;
use crate::measure::measure_host_network;
use crate::output::write_cache;
use crate::platform::{HostNetwork, Platform};
use crate::product::{RunForecasts, RunReport};
use std::path::Path;
use std::time::Duration;

/// A remembered network counts for so long: by one that is too slow a host stays out, and no run shows that it is.
const REMEMBERED: Duration = Duration::from_secs(24 * 3600);
/// Factor by which messages took longer, or less long, than by the remembered network, from which on it is forgotten.
const OFF: f64 = 1.5;
/// Seconds of a run, and the fraction of it, that speeds do not account for: below, it says nothing of the network.
const TELLING: f64 = 0.1;
const TELLING_PART: f64 = 0.25;

/// Gives a platform the network between its hosts, and says what it costs.
///
/// # Errors
/// Those of [`measure_host_network`].
pub fn measure_unknown_network(
    mut platform: Platform,
    remeasure: bool,
    context: Context<'_>,
) -> Result<Platform> {
    let mut path = None;
    measure_host_network(&mut platform, context.world, |hosts| {
        path = cache::network_path(hosts);
        path.as_deref().filter(|_| !remeasure).filter(|path| is_recent(path)).and_then(cache::text)
    })?;
    let Some(found) = platform.network.hosts().filter(|_| context.world.rank() == 0) else {
        return Ok(platform);
    };
    if let Some(path) = path.filter(|_| !found.remembered) {
        write_cache(&path, format!("{:#}\n", found.to_value()));
    }
    let (what, again) = match found.remembered {
        true => ("remembered", "--remeasure, "),
        false => ("measured", ""),
    };
    context.note(format!(
        "apportion: network between hosts, {what}: {} ({again}apportion measure --network or a platform file \
         say it better)",
        found.describe()
    ));
    Ok(platform)
}

/// True if a file was written within the last day.
fn is_recent(path: &Path) -> bool {
    let age = path.metadata().and_then(|about| about.modified()).map(|time| time.elapsed());
    age.is_ok_and(|age| age.is_ok_and(|age| age < REMEMBERED))
}

/// Forgets the network between the hosts of a run whose messages took another time, and says so: it is measured again
/// before the next run. On rank 0.
pub(super) fn check_network(report: &RunReport, context: Context<'_>) {
    let (Some(network), Some(corrected)) = (&report.network, &report.corrected) else { return };
    let path = cache::network_path(&HostNetwork::key(&network.hosts, &network.of_rank));
    if let Some(how) = path.and_then(|path| forget_if_off(&path, corrected, report.seconds())) {
        context.note(format!(
            "apportion: messages between hosts took {how} by the {} network: it is measured again before the next run",
            if network.remembered { "remembered" } else { "measured" }
        ));
    }
}

/// Removes the file of a network by which messages took much longer or less long than in a run, and says which.
fn forget_if_off(path: &Path, corrected: &RunForecasts, seconds: f64) -> Option<String> {
    let &RunForecasts { links, unexplained, .. } = corrected;
    let tells = unexplained.abs() >= TELLING.max(TELLING_PART * seconds.min(seconds - unexplained));
    if !tells || (1.0 / OFF..=OFF).contains(&links) {
        return None;
    }
    std::fs::remove_file(path).ok()?;
    Some(match links > 1.0 {
        true => format!("{links:.1} times as long as"),
        false => format!("{:.0} % of the time", 100.0 * links),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Baselines;
    use std::fs::File;
    use std::time::SystemTime;

    /// 38 ms by the forecast, and 2.43 s with links that have become 100 times as slow: the network is measured again. A run
    /// that was late for another reason, or is too short to tell, changes nothing.
    #[test]
    fn a_network_that_a_run_contradicts_is_forgotten() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("network.json");
        for (links, seconds, expected, forgotten) in [
            (100.0, 2.43, 0.038, true),
            (0.1, 0.3, 2.0, true),
            (1.0, 2.43, 0.038, false),
            (1.2, 2.43, 2.0, false),
            (100.0, 0.05, 0.001, false),
            (3.0, 10.0, 9.0, false),
        ] {
            std::fs::write(&path, "{}").unwrap();
            let without_plan = Baselines { fastest_alone: None, even_split: None };
            let unexplained = seconds - expected;
            let corrected = RunForecasts { seconds, without_plan, links, unexplained };
            assert_eq!(forget_if_off(&path, &corrected, seconds).is_some(), forgotten, "{links} {seconds}");
            assert_eq!(path.exists(), !forgotten);
        }
    }

    /// A network by which a host stays out is not believed for ever.
    #[test]
    fn a_network_is_remembered_for_a_day() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("network.json");
        assert!(!is_recent(&path));
        std::fs::write(&path, "{}").unwrap();
        assert!(is_recent(&path));
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(SystemTime::now() - 2 * REMEMBERED)
            .unwrap();
        assert!(!is_recent(&path));
    }
}
