//! Launchers of parallel programs: Open MPI, MPICH, Slurm, and the flags of a heterogeneous LINPACK.

use super::{Export, Parts, without_zeros};
use crate::error::{Error, Result};
use std::fmt::Write;

/// One line per rank: `rank I=HOST slot=J`.
pub(super) fn open_mpi(names: &[String], shares: &[u64]) -> Result<Export> {
    let (hosts, warnings) = hosts(names, shares, "an Open MPI rankfile")?;
    let mut text = String::new();
    let ranks = hosts.iter().flat_map(|(host, ranks)| (0..*ranks).map(move |slot| (host, slot)));
    for (rank, (host, slot)) in ranks.enumerate() {
        writeln!(text, "rank {rank}={host} slot={slot}").expect("a string takes any text");
    }
    Ok(Export { text, warnings })
}

/// One line per host: `HOST:RANKS`.
pub(super) fn mpich(names: &[String], shares: &[u64]) -> Result<Export> {
    let (hosts, warnings) = hosts(names, shares, "an MPICH machinefile")?;
    let text = hosts.iter().map(|(host, ranks)| format!("{host}:{ranks}\n")).collect();
    Ok(Export { text, warnings })
}

/// One line per rank: its host.
pub(super) fn slurm(names: &[String], shares: &[u64]) -> Result<Export> {
    let (hosts, warnings) = hosts(names, shares, "a Slurm host file")?;
    let text = hosts.iter().map(|(host, ranks)| format!("{host}\n").repeat(*ranks as usize)).collect();
    Ok(Export { text, warnings })
}

/// One line per host, `HOST slots=RANKS`: Open MPI's `--hostfile`, which DeepSpeed reads too.
pub(super) fn hostfile(names: &[String], shares: &[u64]) -> Result<Export> {
    let (hosts, warnings) = hosts(names, shares, "a host file")?;
    let text = hosts.iter().map(|(host, ranks)| format!("{host} slots={ranks}\n")).collect();
    Ok(Export { text, warnings })
}

/// The components of a heterogeneous job, as options of a batch script: one per host.
pub(super) fn slurm_het(names: &[String], shares: &[u64]) -> Result<Export> {
    let (hosts, warnings) = hosts(names, shares, "a Slurm job")?;
    let components: Vec<String> = hosts
        .iter()
        .map(|(host, ranks)| format!("#SBATCH --nodelist={host} --nodes=1 --ntasks={ranks}\n"))
        .collect();
    let all = if hosts.len() > 1 { format!("0-{}", hosts.len() - 1) } else { "0".into() };
    let text = format!("{}# srun --het-group={all} ./program\n", components.join("#SBATCH hetjob\n"));
    Ok(Export { text, warnings })
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
pub(crate) fn is_host(name: &str) -> bool {
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

/// Hosts with their numbers of ranks.
fn hosts<'a>(names: &'a [String], shares: &[u64], tool: &str) -> Result<Parts<'a>> {
    if let Some(name) = names.iter().find(|name| !is_host(name)) {
        return Err(Error::input(
            "processor",
            format!("\"{name}\" is no host name for {tool}"),
            "call processors by their hosts in the platform file",
        ));
    }
    ranks(names, shares, tool)
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
