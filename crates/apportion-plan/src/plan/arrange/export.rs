//! The order of an arrangement in the words of process launchers.
//!
//! MPI numbers processes along the arrangement (down the first column, then the next), so that process i of
//! the launcher is `order[i]` of the plan. Each processor gets one process, on its host ([`Processor::host`]).
//!
//! [`Processor::host`]: crate::platform::Processor::host

use crate::error::Result;
use crate::geometry::Rank;
use crate::plan::export::{self, Export, LOCALHOST, Placed, host_for};
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

/// Open MPI: a rankfile, one line `rank I=HOST slot=CPUS` each; processors of a host that are not pinned get its
/// slots in turn.
///
/// # Errors
/// A processor without a name of its host: exit code 2. So for the other launchers.
pub fn rankfile(order: &[Rank], platform: &Platform) -> Result<Export> {
    Ok(export::rankfile(&placed(order, platform, "an Open MPI rankfile", Some(LOCALHOST))?))
}

/// MPICH: a machinefile, one line `HOST:COUNT` for each run of processes on the same host.
pub fn machinefile(order: &[Rank], platform: &Platform) -> Result<Export> {
    let text = export::machinefile(&placed(order, platform, "an MPICH machinefile", Some(LOCALHOST))?);
    Ok(Export { text, warnings: Vec::new() })
}

/// Slurm: the text of a `SLURM_HOSTFILE`, one host per line, for `srun --distribution=arbitrary`.
pub fn slurm_hostfile(order: &[Rank], platform: &Platform) -> Result<Export> {
    let placed = placed(order, platform, "a Slurm host file", None)?;
    let text = placed.iter().map(|one| format!("{}\n", one.host)).collect();
    Ok(Export { text, warnings: Vec::new() })
}

/// The processors in this order, with their hosts, for one process each.
fn placed<'a>(
    order: &[Rank],
    platform: &'a Platform,
    tool: &str,
    local: Option<&'static str>,
) -> Result<Vec<Placed<'a>>> {
    let place = |rank: &Rank| {
        let processor = &platform.processors[rank.0];
        Ok(Placed { host: host_for(processor, tool, local)?, cores: &processor.cores, ranks: 1 })
    };
    order.iter().map(place).collect()
}

/// Cray MPICH: the text of a file `MPICH_RANK_ORDER`, for `MPICH_RANK_REORDER_METHOD=3`: the rank of each
/// slot of the job. The slots are the platform's processors, in its order: the job's nodes must be allocated
/// in that order, with as many slots each.
pub fn rank_order(order: &[Rank]) -> Export {
    let mut ranks = vec![0; order.len()];
    for (rank, slot) in order.iter().enumerate() {
        ranks[slot.0] = rank;
    }
    let lines = ranks.chunks(16).map(|line| line.iter().map(usize::to_string).collect::<Vec<_>>().join(","));
    // The list may be continued on further lines.
    Export { text: lines.collect::<Vec<_>>().join("\n") + "\n", warnings: Vec::new() }
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
        let ranks = rankfile(&order, &platform).unwrap();
        let lines: Vec<&str> = ranks.text.lines().collect();
        // A pinned processor has the system's numbers of CPUs, which Open MPI has to be told.
        assert!(lines[0].starts_with("# ") && lines[0].contains("rmaps_rank_file_physical 1"), "{lines:?}");
        assert_eq!(lines[1..], ["rank 0=n1 slot=0", "rank 1=n1 slot=1", "rank 2=n2 slot=4,5"]);
        assert_eq!(ranks.warnings.len(), 1);
        let unpinned = rankfile(&order[..2], &platform).unwrap();
        assert_eq!(
            (&unpinned.text[..], unpinned.warnings.len()),
            ("rank 0=n1 slot=0\nrank 1=n1 slot=1\n", 0)
        );
        assert_eq!(machinefile(&order, &platform).unwrap().text, "n1:2\nn2:1\n");
        assert_eq!(slurm_hostfile(&order, &platform).unwrap().text, "n1\nn1\nn2\n");
        // Slot 1 (n2) runs rank 2, slot 2 (n1:1) rank 1.
        assert_eq!(rank_order(&order).text, "0,2,1\n");
        assert_eq!(rank_order(&[Rank(1), Rank(2), Rank(0)]).text, "2,0,1\n");
    }

    /// A machine that `detect` describes alone has no name: Slurm has no word for it.
    #[test]
    fn hosts_are_those_of_the_platform() {
        let text = "[[processor]]\nname = \"performance\"\ncluster = \"machine\"\ncores = [0]\n\
                    [[processor]]\nname = \"efficient\"\ncluster = \"machine\"\ncores = [1]\n";
        let platform = parse_platform(text, "p.toml").unwrap();
        let order = [Rank(1), Rank(0)];
        assert_eq!(machinefile(&order, &platform).unwrap().text, "localhost:2\n");
        let ranks = rankfile(&order, &platform).unwrap().text;
        assert!(ranks.ends_with("rank 0=localhost slot=1\nrank 1=localhost slot=0\n"), "{ranks}");
        assert_eq!(slurm_hostfile(&order, &platform).unwrap_err().exit_code(), 2);
    }

    #[test]
    fn names_that_are_no_hosts_are_refused() {
        let named =
            |name: &str| parse_platform(&format!("[[processor]]\nname = \"{name}\"\n"), "p.toml").unwrap();
        assert_eq!(machinefile(&[Rank(0)], &named("n1.site:0")).unwrap().text, "n1.site:1\n");
        for name in ["a b", ":0", "a=b"] {
            for refused in [rankfile, machinefile, slurm_hostfile] {
                assert_eq!(refused(&[Rank(0)], &named(name)).unwrap_err().exit_code(), 2, "{name}");
            }
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
