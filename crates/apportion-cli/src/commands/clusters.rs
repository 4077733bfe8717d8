//! `apportion partition --units --hierarchical`: shares by the platform's clusters.

use crate::output::units::Cluster;
use crate::prepare::processors::Processors;
use apportion::error::Result;
use apportion::model::Model;
use apportion::plan::shares;
use apportion::select::relative_times;

/// Shares by the platform's clusters, level by level, and each cluster's units beside those of the flat
/// division.
pub fn by_clusters(processors: &Processors, n: u64) -> Result<(Vec<u64>, Vec<Cluster>)> {
    let models = &processors.machine.models;
    let paths: Vec<Vec<&str>> =
        processors.machine.platform.processors.iter().map(|p| p.cluster.split('/').collect()).collect();
    let flat = shares::fpm(models, n)?;
    let mut found = vec![0; models.len()];
    let mut clusters = Vec::new();
    // Clusters still to be divided: their ranks, units and depth; the last is next.
    let mut places = vec![((0..models.len()).collect::<Vec<usize>>(), n, 0)];
    while let Some((ranks, units, depth)) = places.pop() {
        let groups = groups(&paths, &ranks, depth);
        let members: Vec<Model> = ranks.iter().map(|&r| models[r].clone()).collect();
        let local: Vec<Vec<usize>> = groups
            .iter()
            .map(|g| {
                g.iter().map(|r| ranks.iter().position(|x| x == r).expect("a group's own rank")).collect()
            })
            .collect();
        for (&rank, share) in ranks.iter().zip(shares::hierarchical(&local, &members, units)?) {
            found[rank] = share;
        }
        for group in groups.into_iter().rev() {
            if paths[group[0]].len() > depth && group.len() < models.len() {
                let units = group.iter().map(|&r| found[r]).sum();
                places.push((group, units, depth + 1));
            }
        }
    }
    let times = match relative_times(models, &found)? {
        Some(times) => times,
        None => models.iter().zip(&found).map(|(m, &x)| m.seconds(x as f64)).collect(),
    };
    let mut seen: Vec<Vec<&str>> = Vec::new();
    for path in &paths {
        for depth in 1..=path.len() {
            let place = path[..depth].to_vec();
            if seen.contains(&place) {
                continue;
            }
            let inside: Vec<usize> = (0..paths.len()).filter(|&r| paths[r].starts_with(&place)).collect();
            clusters.push(Cluster {
                path: place.join("/"),
                processors: inside.len(),
                units: inside.iter().map(|&r| found[r]).sum(),
                flat_units: inside.iter().map(|&r| flat[r]).sum(),
                longest: inside.iter().map(|&r| times[r]).fold(0.0, f64::max),
            });
            seen.push(place);
        }
    }
    Ok((found, clusters))
}

/// Ranks that are in the same cluster at this depth, in the order of first appearance.
fn groups(paths: &[Vec<&str>], ranks: &[usize], depth: usize) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for &rank in ranks {
        match groups.iter_mut().find(|g| paths[g[0]].get(depth) == paths[rank].get(depth)) {
            Some(group) => group.push(rank),
            None => groups.push(vec![rank]),
        }
    }
    groups
}
