//! Launchers of parallel programs: Open MPI, MPICH, Slurm, and the flags of a heterogeneous LINPACK.

use super::{Export, Parts, without_zeros};
use crate::error::{Error, Result};
use crate::platform::{Processor, THIS_MACHINE};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A processor as launchers know it.
pub(crate) struct Placed<'a> {
    pub host: &'a str,
    /// The CPUs that its processes run on; none if it is not pinned.
    pub cores: &'a [usize],
    pub ranks: u64,
}

/// One line per rank: `rank I=HOST slot=J`.
pub(super) fn open_mpi(processors: &[Processor], shares: &[u64]) -> Result<Export> {
    let (placed, warnings) = placed(processors, shares, "an Open MPI rankfile", Some(LOCALHOST))?;
    let Export { text, warnings: more } = rankfile(&placed);
    Ok(Export { text, warnings: [warnings, more].concat() })
}

/// Open MPI's file of ranks. Those of a processor with cores divide these, or share them if there are more ranks than
/// cores; others get the slots of their host in turn.
///
/// Open MPI 4 takes slots for the logical numbers of cores, in the order of hwloc. A platform has the system's numbers
/// of CPUs, which are something else where a core has several hardware threads, so that it has to be told.
pub(crate) fn rankfile(placed: &[Placed<'_>]) -> Export {
    let is_pinned = placed.iter().any(|one| !one.cores.is_empty());
    let mut text = String::new();
    let mut warnings = Vec::new();
    if is_pinned {
        let flag = "--mca rmaps_rank_file_physical 1";
        writeln!(text, "# mpirun {flag} --rankfile THIS_FILE: slots are the system's numbers of CPUs")
            .expect(WRITABLE);
        warnings.push(format!("the slots are the system's numbers of CPUs: start it by mpirun {flag}"));
    }
    let mut used: BTreeMap<&str, usize> = BTreeMap::new();
    let mut rank = 0;
    for Placed { host, cores, ranks } in placed {
        let (count, ranks) = (cores.len(), *ranks as usize);
        for own in 0..ranks {
            let next = used.entry(host).or_default();
            let slot = match (own * count / ranks, (own + 1) * count / ranks) {
                _ if count == 0 => next.to_string(),
                (from, to) => {
                    let own: Vec<String> =
                        cores[from..to.max(from + 1)].iter().map(usize::to_string).collect();
                    own.join(",")
                }
            };
            *next += 1;
            writeln!(text, "rank {rank}={host} slot={slot}").expect(WRITABLE);
            rank += 1;
        }
    }
    Export { text, warnings }
}

const WRITABLE: &str = "a string takes any text";

/// This machine, for launchers that know it by this name.
pub(crate) const LOCALHOST: &str = "localhost";

/// `HOST:RANKS` for each run of ranks on the same host.
pub(super) fn mpich(processors: &[Processor], shares: &[u64]) -> Result<Export> {
    let (placed, warnings) = placed(processors, shares, "an MPICH machinefile", Some(LOCALHOST))?;
    Ok(Export { text: machinefile(&placed), warnings })
}

/// MPICH's file of hosts, which fills the lines one after the other.
pub(crate) fn machinefile(placed: &[Placed<'_>]) -> String {
    let runs = placed.chunk_by(|a, b| a.host == b.host);
    let line = |run: &[Placed<'_>]| format!("{}:{}\n", run[0].host, run.iter().map(|p| p.ranks).sum::<u64>());
    runs.map(line).collect()
}

/// One line per rank: its host.
pub(super) fn slurm(processors: &[Processor], shares: &[u64]) -> Result<Export> {
    let (placed, warnings) = placed(processors, shares, "a Slurm host file", None)?;
    let text = placed.iter().map(|one| format!("{}\n", one.host).repeat(one.ranks as usize)).collect();
    Ok(Export { text, warnings })
}

/// One line per host, `HOST slots=RANKS`: Open MPI's `--hostfile`, which DeepSpeed reads too.
pub(super) fn hostfile(processors: &[Processor], shares: &[u64]) -> Result<Export> {
    let (placed, mut warnings) = placed(processors, shares, "a host file", Some(LOCALHOST))?;
    let hosts = by_host(&placed, &mut warnings);
    let text = hosts.iter().map(|(host, ranks)| format!("{host} slots={ranks}\n")).collect();
    Ok(Export { text, warnings })
}

/// The components of a heterogeneous job, as options of a batch script: one per host.
pub(super) fn slurm_het(processors: &[Processor], shares: &[u64]) -> Result<Export> {
    let (placed, mut warnings) = placed(processors, shares, "a Slurm job", None)?;
    let hosts = by_host(&placed, &mut warnings);
    let components: Vec<String> = hosts
        .iter()
        .map(|(host, ranks)| format!("#SBATCH --nodelist={host} --nodes=1 --ntasks={ranks}\n"))
        .collect();
    let all = if hosts.len() > 1 { format!("0-{}", hosts.len() - 1) } else { "0".into() };
    let text = format!("{}# srun --het-group={all} ./program\n", components.join("#SBATCH hetjob\n"));
    Ok(Export { text, warnings })
}

/// The hosts in the order of their first processors, with the ranks of all of these.
fn by_host<'a>(placed: &[Placed<'a>], warnings: &mut Vec<String>) -> Vec<(&'a str, u64)> {
    let mut hosts: Vec<(&str, u64)> = Vec::new();
    for (i, Placed { host, ranks, .. }) in placed.iter().enumerate() {
        match hosts.iter_mut().find(|(known, _)| known == host) {
            Some((_, sum)) => {
                *sum += ranks;
                if placed[i - 1].host != *host {
                    warnings.push(format!("all ranks of {host} come together, before those of later hosts"));
                }
            }
            None => hosts.push((host, *ranks)),
        }
    }
    hosts
}

/// `-f FACTOR -c COLUMNS` for one process row: the faster processors are the first COLUMNS columns and get
/// FACTOR times the work of the others.
pub(super) fn hpl(names: &[String], shares: &[u64]) -> Result<Export> {
    let (parts, mut warnings) = without_zeros(names, shares, "HPL");
    let least = parts.iter().map(|p| p.1).min().unwrap_or(1) as f64;
    let most = parts.iter().map(|p| p.1).max().unwrap_or(1) as f64;
    let middle = (least * most).sqrt();
    let (fast, slow): (Vec<_>, Vec<_>) = parts.iter().partition(|p| p.1 as f64 > middle);
    if fast.is_empty() || most <= 1.02 * least {
        return Ok(Export { text: "-f 1 -c 0\n".into(), warnings });
    }
    let mean = |of: &[&(&str, u64)]| of.iter().map(|p| p.1 as f64).sum::<f64>() / of.len() as f64;
    let even = |of: &[&(&str, u64)]| of.iter().all(|p| (p.1 as f64 / mean(of) - 1.0).abs() <= 0.05);
    if !(even(&fast) && even(&slow)) {
        return Err(Error::infeasible(
            "HPL's -f and -c know two kinds of processors, and these shares have more",
            "round the shares to two values, or export another format",
        ));
    }
    let first: Vec<&str> = fast.iter().map(|p| p.0).collect();
    if parts.iter().take(first.len()).any(|p| !first.contains(&p.0)) {
        warnings.push(format!("start the faster processes first: {}", first.join(", ")));
    }
    let factor = (1e4 * mean(&fast) / mean(&slow)).round() / 1e4;
    Ok(Export { text: format!("-f {factor} -c {}\n", fast.len()), warnings })
}

/// True if launchers can read the name as that of a host.
fn is_host(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "-._".contains(c))
}

/// Ranks on each core above which shares are taken for units of work.
const MOST_PER_CORE: u64 = 4;
/// A host of fewer ranks than this draws no warning.
const FEW_RANKS: u64 = 16;

/// A warning if a host gets more ranks than machines such as this one can run: then shares are units of work.
fn too_many_ranks(hosts: &[(&str, u64)], cores: u64) -> Option<String> {
    let (host, ranks) = hosts.iter().max_by_key(|(_, ranks)| *ranks)?;
    (*ranks > (MOST_PER_CORE * cores).max(FEW_RANKS)).then(|| {
        format!(
            "{host} would start {ranks} ranks, more than {MOST_PER_CORE} for each of the {cores} cores here; if the \
             shares are units of work, start a rank for each processor and give it its range: --export slurm-units, \
             csv, json or c"
        )
    })
}

/// The processors that have ranks, with their hosts, and warnings. `local` is what the tool calls this machine, if it
/// has a word for it.
fn placed<'a>(
    processors: &'a [Processor],
    shares: &[u64],
    tool: &str,
    local: Option<&'static str>,
) -> Result<(Vec<Placed<'a>>, Vec<String>)> {
    let names: Vec<String> = processors.iter().map(|processor| processor.name.clone()).collect();
    let warnings = ranks(&names, shares, tool)?.1;
    let working = processors.iter().zip(shares).filter(|(_, ranks)| **ranks > 0);
    let place = |(processor, ranks): (&'a Processor, &u64)| {
        Ok(Placed { host: host_for(processor, tool, local)?, cores: &processor.cores, ranks: *ranks })
    };
    Ok((working.map(place).collect::<Result<_>>()?, warnings))
}

/// The host of a processor in the words of a tool.
///
/// # Errors
/// The tool would misread it, or it is this machine, for which the tool has no word.
pub(crate) fn host_for<'a>(
    processor: &'a Processor,
    tool: &str,
    local: Option<&'static str>,
) -> Result<&'a str> {
    let host = processor.host().or(local).unwrap_or(THIS_MACHINE);
    if is_host(host) && (processor.host().is_some() || local.is_some()) {
        return Ok(host);
    }
    Err(Error::input(
        format!("platform: processor \"{}\"", processor.name.escape_debug()),
        format!("\"{}\" is no host name for {tool}", host.escape_debug()),
        "call processors by their hosts, HOST or HOST:NUMBER; those with cores may begin their `cluster` with the host",
    ))
}

/// Processors with their numbers of ranks.
pub(super) fn ranks<'a>(names: &'a [String], shares: &[u64], tool: &str) -> Result<Parts<'a>> {
    let total: u128 = shares.iter().map(|&x| u128::from(x)).sum();
    if total > 1_000_000 {
        return Err(Error::input(
            "shares",
            format!("{total} units would be as many ranks"),
            "divide the number of ranks to start (`units = RANKS`), or export units of work as slurm-units, csv, \
             json or c",
        ));
    }
    let (hosts, mut warnings) = without_zeros(names, shares, tool);
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    warnings.extend(too_many_ranks(&hosts, cores));
    Ok((hosts, warnings))
}

#[cfg(test)]
mod tests {
    use super::too_many_ranks;

    #[test]
    fn units_are_not_taken_for_ranks_in_silence() {
        let warning = too_many_ranks(&[("a", 5), ("b", 257)], 64).unwrap();
        assert!(warning.contains("b would start 257 ranks") && warning.contains("slurm-units"), "{warning}");
        assert_eq!(too_many_ranks(&[("a", 256), ("b", 1)], 64), None);
        assert_eq!(too_many_ranks(&[("a", 16)], 1), None);
        assert!(too_many_ranks(&[("a", 17)], 1).is_some());
    }
}
