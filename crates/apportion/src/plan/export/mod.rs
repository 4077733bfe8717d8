//! Shares in the file formats and flags of other tools.

mod graph;
mod launch;
mod layers;
mod owners;
mod table;

pub(crate) use launch::is_host;

use crate::error::{Error, Result};
use crate::plan::Plan;
use std::str::FromStr;

/// A tool's format for unequal shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExportFormat {
    /// `gpmetis -tpwgts=FILE`: target weights of the parts (METIS manual, section 4.1.2).
    Metis,
    /// Scotch target architecture `cmpltw`: a complete graph of weighted processors (Scotch user's guide,
    /// target files).
    Scotch,
    /// Open MPI `--rankfile FILE`: each host gets its share as its number of ranks.
    OpenMpi,
    /// MPICH (Hydra) `-f FILE`: `host:ranks`.
    Mpich,
    /// A host file for Slurm's `srun --distribution=arbitrary` (environment variable `SLURM_HOSTFILE`): one
    /// line per rank.
    Slurm,
    /// Flags of Intel's Distribution for LINPACK: `-f FACTOR -c COLUMNS`, one process row, two kinds of
    /// processors.
    Hpl,
    /// llama.cpp `--tensor-split`: proportions of the devices.
    LlamaCpp,
    /// vLLM's environment variable `VLLM_PP_LAYER_PARTITION`: layers of each pipeline stage.
    Vllm,
    /// Comma-separated values: processor, share, fraction.
    Csv,
    /// One JSON object.
    Json,
    /// Who owns which block of A, B and C, as JSON: splits and owners for COSTA's custom layouts and SLATE's
    /// `tileMb`, `tileNb` and `tileRank`.
    Owners,
    /// The same as a C header, with functions that look tiles and elements up.
    OwnersH,
    /// ScaLAPACK's process grid and array descriptors, as JSON: block-cyclic plans with equal blocks only.
    Scalapack,
    /// The same as a C header, with functions that fill the descriptors.
    ScalapackH,
}

/// The name of each format on the command line.
const NAMES: [(&str, ExportFormat); 14] = [
    ("metis", ExportFormat::Metis),
    ("scotch", ExportFormat::Scotch),
    ("openmpi", ExportFormat::OpenMpi),
    ("mpich", ExportFormat::Mpich),
    ("slurm", ExportFormat::Slurm),
    ("hpl", ExportFormat::Hpl),
    ("llama.cpp", ExportFormat::LlamaCpp),
    ("vllm", ExportFormat::Vllm),
    ("csv", ExportFormat::Csv),
    ("json", ExportFormat::Json),
    ("owners", ExportFormat::Owners),
    ("owners-h", ExportFormat::OwnersH),
    ("scalapack", ExportFormat::Scalapack),
    ("scalapack-h", ExportFormat::ScalapackH),
];

impl FromStr for ExportFormat {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        NAMES.iter().find(|(name, _)| *name == text).map(|(_, format)| *format).ok_or_else(|| {
            let known: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
            Error::input(
                "`export`",
                format!("unknown format \"{text}\""),
                format!("one of {}", known.join(", ")),
            )
        })
    }
}

/// The text for another tool, with warnings for its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// The file or flag, ending in a newline.
    pub text: String,
    /// One line each, about processors that were left out or an order that the user must keep.
    pub warnings: Vec<String>,
}

/// Writes the `shares` of the processors `names`, both by rank, in the format of a tool.
///
/// For tools that do not support empty parts, processors without units are left out with a warning, and later
/// parts move up.
///
/// # Errors
/// No processors, no unit, not one name per share, or names that the format cannot hold (exit code 2); shares
/// that the format cannot express, as more than two kinds of processors for HPL (exit code 1).
///
/// # Example
/// ```
/// use apportion::plan::{ExportFormat, export};
/// let names = ["fast".to_string(), "slow".to_string()];
/// assert_eq!(export(ExportFormat::LlamaCpp, &names, &[9, 1])?.text, "--tensor-split 9,1\n");
/// # Ok::<(), apportion::error::Error>(())
/// ```
pub fn export(format: ExportFormat, names: &[String], shares: &[u64]) -> Result<Exported> {
    if names.len() != shares.len() {
        let what = format!("{} names and {} shares cannot be exported", names.len(), shares.len());
        return Err(Error::input("shares", what, "give one name per share"));
    }
    if shares.iter().all(|&x| x == 0) {
        let what = "there is nothing to export: all shares are 0";
        return Err(Error::input("`export`", what, "divide at least one unit"));
    }
    match format {
        ExportFormat::Metis => Ok(graph::metis(names, shares)),
        ExportFormat::Scotch => Ok(graph::scotch(names, shares)),
        ExportFormat::OpenMpi => launch::open_mpi(names, shares),
        ExportFormat::Mpich => launch::mpich(names, shares),
        ExportFormat::Slurm => launch::slurm(names, shares),
        ExportFormat::Hpl => launch::hpl(names, shares),
        ExportFormat::LlamaCpp => Ok(layers::llama_cpp(shares)),
        ExportFormat::Vllm => Ok(layers::vllm(names, shares)),
        ExportFormat::Csv => Ok(table::csv(names, shares)),
        ExportFormat::Json => Ok(table::json(names, shares)),
        ExportFormat::Owners | ExportFormat::OwnersH | ExportFormat::Scalapack | ExportFormat::ScalapackH => {
            let what = "shares alone do not say who owns which block of a matrix";
            Err(Error::input("`export`", what, "export the plan of a matrix product"))
        }
    }
}

/// Writes a plan in the format of a tool: owners of blocks by its layout, all other formats by its shares.
///
/// # Errors
/// Those of [`export`]; owners of a plan without matrices (exit code 2); a table of more than 2^20 blocks, sizes
/// that C's `int` cannot hold, or descriptors of a plan that is not block-cyclic with equal blocks (exit code 1).
///
/// # Example
/// ```
/// use apportion::plan::{ExportFormat, Plan, Shape, export_plan, shapes};
/// let layout = shapes::rows(Shape::new(4, 4, 4, "example")?, &[3.0, 1.0])?;
/// let plan = Plan::of_layout("rows", vec!["p0".into(), "p1".into()], layout, 1.0);
/// let text = export_plan(ExportFormat::OwnersH, &plan)?.text;
/// assert!(text.contains("#define APPORTION_C_ROWBLOCKS 2"));
/// # Ok::<(), apportion::error::Error>(())
/// ```
pub fn export_plan(format: ExportFormat, plan: &Plan) -> Result<Exported> {
    match format {
        ExportFormat::Owners => owners::json(plan),
        ExportFormat::OwnersH => owners::header(plan),
        ExportFormat::Scalapack => owners::scalapack(plan),
        ExportFormat::ScalapackH => owners::scalapack_header(plan),
        by_shares => export(by_shares, &plan.processors, &plan.shares),
    }
}

/// Parts with their units, and warnings.
type Parts<'a> = (Vec<(&'a str, u64)>, Vec<String>);

/// The processors that have units, and a warning if others are left out for `tool`.
fn without_zeros<'a>(names: &'a [String], shares: &[u64], tool: &str) -> Parts<'a> {
    let all = || names.iter().map(String::as_str).zip(shares.iter().copied());
    let idle: Vec<&str> = all().filter(|(_, share)| *share == 0).map(|(name, _)| name).collect();
    let warnings = match idle.is_empty() {
        true => Vec::new(),
        false => {
            vec![format!(
                "{tool} does not support empty parts: {} left out, later parts move up",
                idle.join(", ")
            )]
        }
    };
    (all().filter(|(_, share)| *share > 0).collect(), warnings)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Vec<String> {
        ["a", "b", "c"].map(String::from).to_vec()
    }

    fn text(format: &str, shares: &[u64]) -> (String, usize) {
        let out = export(format.parse().unwrap(), &names(), shares).unwrap();
        assert!(out.text.ends_with('\n'));
        (out.text, out.warnings.len())
    }

    #[test]
    fn each_tool_is_spoken_to_in_its_words() {
        let shares = [6, 0, 2];
        assert_eq!(text("metis", &shares), ("0 = 0.75\n1 = 0.25\n".into(), 1));
        assert_eq!(text("scotch", &shares), ("cmpltw 2 3 1\n".into(), 1));
        assert_eq!(text("mpich", &shares), ("a:6\nc:2\n".into(), 1));
        assert_eq!(text("slurm", &[1, 0, 2]), ("a\nc\nc\n".into(), 1));
        assert_eq!(
            text("openmpi", &[1, 0, 2]),
            ("rank 0=a slot=0\nrank 1=c slot=0\nrank 2=c slot=1\n".into(), 1)
        );
        assert_eq!(text("hpl", &[5, 2, 2]), ("-f 2.5 -c 1\n".into(), 0));
        assert_eq!(text("hpl", &[2, 5, 5]), ("-f 2.5 -c 2\n".into(), 1), "the faster have to come first");
        assert_eq!(text("hpl", &[4, 4, 4]), ("-f 1 -c 0\n".into(), 0));
        assert_eq!(text("llama.cpp", &shares), ("--tensor-split 6,0,2\n".into(), 0));
        assert_eq!(text("vllm", &shares), ("VLLM_PP_LAYER_PARTITION=6,2\n".into(), 1));
        assert_eq!(text("csv", &shares), ("processor,share,fraction\na,6,0.75\nb,0,0\nc,2,0.25\n".into(), 0));
        let json: serde_json::Value = serde_json::from_str(&text("json", &shares).0).unwrap();
        assert_eq!(json["shares"][2]["processor"], "c");
        assert_eq!(json["shares"][2]["share"], 2);
        assert_eq!(json["total"], 8);
    }

    #[test]
    fn what_cannot_be_said_is_refused() {
        assert!("excel".parse::<ExportFormat>().unwrap_err().to_string().contains("metis"));
        assert_eq!(export(ExportFormat::Csv, &names(), &[1, 2]).unwrap_err().exit_code(), 2);
        assert_eq!(export(ExportFormat::Csv, &names(), &[0; 3]).unwrap_err().exit_code(), 2);
        assert_eq!(export(ExportFormat::Hpl, &names(), &[9, 5, 1]).unwrap_err().exit_code(), 1);
        assert_eq!(export(ExportFormat::Mpich, &names(), &[2_000_000, 1, 1]).unwrap_err().exit_code(), 2);
        let spaced = ["a b".to_string()];
        assert_eq!(export(ExportFormat::OpenMpi, &spaced, &[1]).unwrap_err().exit_code(), 2);
        let awkward = ["x,\"y\"".to_string()];
        let csv = export(ExportFormat::Csv, &awkward, &[1]).unwrap().text;
        assert!(csv.ends_with("\"x,\"\"y\"\"\",1,1\n"), "{csv}");
    }

    #[test]
    fn large_weights_fit_into_scotchs_integers_and_metis_sums_to_one() {
        let shares = [(1 << 50) + 1, 1 << 49, 7];
        let scotch = text("scotch", &shares).0;
        let weights: Vec<i64> = scotch.split_whitespace().skip(2).map(|w| w.parse().unwrap()).collect();
        assert!(
            weights.iter().sum::<i64>() <= i64::from(i32::MAX) && weights.iter().all(|w| *w > 0),
            "{scotch}"
        );
        let ratio = weights[0] as f64 / weights[1] as f64;
        assert!((ratio - 2.0).abs() < 1e-6);
        let metis = text("metis", &[1, 1, 1]).0;
        let sum: f64 = metis.lines().map(|l| l.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum();
        assert!((sum - 1.0).abs() < 1e-12);
    }
}
