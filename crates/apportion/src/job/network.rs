//! The network between the hosts of a job where no flag or file says what it costs: remembered, or measured.

use super::{Context, cache};
use crate::error::Result;
use crate::measure::measure_host_network;
use crate::output::write_cache;
use crate::platform::Platform;

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
        path.as_deref().filter(|_| !remeasure).and_then(cache::text)
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
