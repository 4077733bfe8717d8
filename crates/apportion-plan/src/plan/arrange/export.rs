//! The order of an arrangement in the words of process launchers.
//!
//! MPI numbers processes along the arrangement (down the first column, then the next), so that process i of
//! the launcher is `order[i]` of the plan. Each processor gets one process. The host of a processor is its
//! name, up to the first colon if there is one.

use crate::error::{Error, Result};
use crate::geometry::Rank;
use crate::plan::export::is_host;
use crate::plan::{Layout, Part};
use crate::platform::Platform;

/// Processors in the order of their first rectangles, column by column; those without one come last.
pub fn places_in_order(layout: &Layout) -> Vec<Rank> {
    let mut parts: Vec<&Part> = layout.parts().iter().collect();
    parts.sort_by_key(|p| (p.cols.start, p.rows.start));
    let mut seen = vec![false; layout.processors()];
    let placed = parts.into_iter().map(|p| p.owner);
    let rest = (0..layout.processors()).map(Rank);
    placed.chain(rest).filter(|r| !std::mem::replace(&mut seen[r.0], true)).collect()
}

/// Open MPI: a rankfile, one line `rank I=HOST slot=CORES` each; unpinned processors of a host get its slots
/// in turn.
pub fn rankfile(order: &[Rank], platform: &Platform) -> String {
    let mut used: std::collections::BTreeMap<&str, usize> = std::collections::BTreeMap::new();
    let mut text = String::new();
    for (i, &rank) in order.iter().enumerate() {
        let processor = &platform.processors[rank.0];
        let host = host(&processor.name);
        let next = used.entry(host).or_insert(0);
        let slot = if processor.cores.is_empty() {
            next.to_string()
        } else {
            processor.cores.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
        };
        *next += 1;
        text += &format!("rank {i}={host} slot={slot}\n");
    }
    text
}

/// MPICH: a machinefile, one line `HOST:COUNT` for each run of processes on the same host.
pub fn machinefile(order: &[Rank], platform: &Platform) -> String {
    let mut runs: Vec<(&str, usize)> = Vec::new();
    for host in hosts(order, platform) {
        match runs.last_mut() {
            Some((last, count)) if *last == host => *count += 1,
            _ => runs.push((host, 1)),
        }
    }
    runs.iter().map(|(host, count)| format!("{host}:{count}\n")).collect()
}

/// Slurm: the text of a `SLURM_HOSTFILE`, one host per line, for `srun --distribution=arbitrary`.
pub fn slurm_hostfile(order: &[Rank], platform: &Platform) -> String {
    hosts(order, platform).map(|host| format!("{host}\n")).collect()
}

/// Cray MPICH: the text of a file `MPICH_RANK_ORDER`, for `MPICH_RANK_REORDER_METHOD=3`: the rank of each
/// slot of the job. The slots are the platform's processors, in its order: the job's nodes must be allocated
/// in that order, with as many slots each.
pub fn rank_order(order: &[Rank]) -> String {
    let mut ranks = vec![0; order.len()];
    for (rank, slot) in order.iter().enumerate() {
        ranks[slot.0] = rank;
    }
    let lines = ranks.chunks(16).map(|line| line.iter().map(usize::to_string).collect::<Vec<_>>().join(","));
    // The list may be continued on further lines.
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

/// Refuses processors whose names are no hosts, which launchers would misread.
///
/// # Errors
/// The first such name: exit code 2.
pub fn check_hosts(platform: &Platform) -> Result<()> {
    match platform.processors.iter().find(|processor| !is_host(host(&processor.name))) {
        None => Ok(()),
        Some(processor) => Err(Error::input(
            format!("platform: processor \"{}\"", processor.name.escape_debug()),
            "is no host name for a launcher",
            "call processors by their hosts, HOST or HOST:NUMBER, in the platform file",
        )),
    }
}

fn hosts<'a>(order: &'a [Rank], platform: &'a Platform) -> impl Iterator<Item = &'a str> {
    order.iter().map(|r| host(&platform.processors[r.0].name))
}

fn host(name: &str) -> &str {
    name.split_once(':').map_or(name, |(host, _)| host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Shape;
    use crate::plan::shapes::{Columns, LayoutMethod};
    use crate::platform::parse_platform;

    #[test]
    fn the_texts() {
        let text = "[[processor]]\nname = \"n1:0\"\n[[processor]]\nname = \"n2\"\ncores = [4, 5]\n\
                    [[processor]]\nname = \"n1:1\"\n";
        let platform = parse_platform(text, "p.toml").unwrap();
        let order = [Rank(0), Rank(2), Rank(1)];
        assert_eq!(rankfile(&order, &platform), "rank 0=n1 slot=0\nrank 1=n1 slot=1\nrank 2=n2 slot=4,5\n");
        assert_eq!(machinefile(&order, &platform), "n1:2\nn2:1\n");
        assert_eq!(slurm_hostfile(&order, &platform), "n1\nn1\nn2\n");
        // Slot 1 (n2) runs rank 2, slot 2 (n1:1) rank 1.
        assert_eq!(rank_order(&order), "0,2,1\n");
        assert_eq!(rank_order(&[Rank(1), Rank(2), Rank(0)]), "2,0,1\n");
    }

    #[test]
    fn names_that_are_no_hosts_are_refused() {
        let named =
            |name: &str| parse_platform(&format!("[[processor]]\nname = \"{name}\"\n"), "p.toml").unwrap();
        check_hosts(&named("n1.site:0")).unwrap();
        for name in ["a b", ":0", "a=b"] {
            assert_eq!(check_hosts(&named(name)).unwrap_err().exit_code(), 2, "{name}");
        }
    }

    #[test]
    fn the_order_goes_down_the_columns_with_every_processor() {
        let layout =
            Columns::default().layout(Shape::new(8, 8, 8, "t").unwrap(), &[1.0, 0.0, 1.0, 1.0, 1.0]).unwrap();
        let order: Vec<usize> = places_in_order(&layout).iter().map(|r| r.0).collect();
        assert_eq!(order, [0, 2, 3, 4, 1]);
    }
}
