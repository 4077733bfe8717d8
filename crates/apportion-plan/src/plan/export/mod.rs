//! Shares in the file formats and flags of other tools.

mod graph;
mod launch;
mod owners;
mod pools;
mod rectangles;
mod template;

pub(crate) use template::Template;

pub(crate) use launch::{LOCALHOST, Placed, host_for, machinefile, rankfile};

use super::shares::offsets;
use super::{Division, Plan};
use crate::error::{Error, Result};
use crate::platform::{Platform, Processor};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::str::FromStr;
use template::Shares;

/// A tool's format for unequal shares.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExportFormat {
    /// `gpmetis -tpwgts=FILE`: target weights of the parts (METIS manual, section 4.1.2).
    Metis,
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
    /// Open MPI's `--hostfile`, also of DeepSpeed: `host slots=ranks`.
    Hostfile,
    /// `#SBATCH` lines of a heterogeneous Slurm job with one component per host.
    SlurmHet,
    /// FuPerMod's `.2dist` file of a column-based layout of a square matrix.
    FuPerMod,
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
    /// A shell script that starts a program on the cores of each processor, by `taskset`.
    Taskset,
    /// The same by `numactl`, with memory of the NUMA nodes of these cores.
    Numactl,
    /// One `mpirun` line of Open MPI and MPICH with a part for each processor: its share is its number of ranks,
    /// which run on its cores.
    Mpirun,
    /// A template: one of the names above that is no variant, or a user's file (`FILE.jinja`).
    Template(Template),
}

/// A format of the folder `templates`, with its name.
macro_rules! template {
    ($name:literal) => {{
        let text = Cow::Borrowed(include_str!(concat!("templates/", $name, ".jinja")));
        ($name, ExportFormat::Template(Template { name: Cow::Borrowed($name), text }))
    }};
}

/// The name of each format on the command line.
static NAMES: [(&str, ExportFormat); 29] = [
    ("metis", ExportFormat::Metis),
    template!("scotch"),
    ("openmpi", ExportFormat::OpenMpi),
    ("mpich", ExportFormat::Mpich),
    ("slurm", ExportFormat::Slurm),
    ("hpl", ExportFormat::Hpl),
    template!("llama.cpp"),
    template!("vllm"),
    template!("llama.cpp-tensor"),
    template!("sglang"),
    template!("megatron"),
    template!("lammps"),
    template!("gromacs"),
    template!("openfoam"),
    ("hostfile", ExportFormat::Hostfile),
    ("slurm-het", ExportFormat::SlurmHet),
    template!("slurm-units"),
    template!("c"),
    template!("petsc"),
    ("2dist", ExportFormat::FuPerMod),
    template!("csv"),
    ("json", ExportFormat::Json),
    ("owners", ExportFormat::Owners),
    ("owners-h", ExportFormat::OwnersH),
    ("scalapack", ExportFormat::Scalapack),
    ("scalapack-h", ExportFormat::ScalapackH),
    ("taskset", ExportFormat::Taskset),
    ("numactl", ExportFormat::Numactl),
    ("mpirun", ExportFormat::Mpirun),
];

impl ExportFormat {
    /// True if the format is written by the cores of a platform.
    pub fn needs_cores(&self) -> bool {
        matches!(self, Self::Taskset | Self::Numactl | Self::Mpirun)
    }
}

impl FromStr for ExportFormat {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if let Some(template) = Template::read(text) {
            return template.map(Self::Template);
        }
        NAMES.iter().find(|(name, _)| *name == text).map(|(_, format)| format.clone()).ok_or_else(|| {
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
pub struct Export {
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
/// No processors, no unit, not one name per share, names that the format cannot hold, or more ranks or layers
/// than any machine or model has (exit code 2); shares that the format cannot express, as more than two kinds
/// of processors for HPL (exit code 1).
///
/// # Example
/// ```
/// use apportion_plan::plan::export;
/// let names = ["fast".to_string(), "slow".to_string()];
/// assert_eq!(export("vllm".parse()?, &names, &[9, 1])?.text, "VLLM_PP_LAYER_PARTITION=9,1\n");
/// # Ok::<(), apportion_plan::error::Error>(())
/// ```
pub fn export(format: ExportFormat, names: &[String], shares: &[u64]) -> Result<Export> {
    if names.len() != shares.len() {
        let what = format!("{} names and {} shares cannot be exported", names.len(), shares.len());
        return Err(Error::input("shares", what, "give one name per share"));
    }
    export_processors(format, &names.iter().map(Processor::named).collect::<Vec<_>>(), shares)
}

/// Writes the shares of these processors.
fn export_processors(format: ExportFormat, processors: &[Processor], shares: &[u64]) -> Result<Export> {
    let names = &processors.iter().map(|processor| processor.name.clone()).collect::<Vec<_>>();
    refuse_nothing(shares)?;
    match format {
        ExportFormat::Metis => Ok(graph::metis(names, shares)),
        ExportFormat::Hpl => launch::hpl(names, shares),
        ExportFormat::FuPerMod => Err(Error::input(
            "`export = 2dist`",
            "describes the layout of a matrix, which a plan of units does not have",
            "make a plan with `shape = NxN`, or use another format",
        )),
        ExportFormat::Json => Ok(json(names, shares)),
        ExportFormat::Owners | ExportFormat::OwnersH | ExportFormat::Scalapack | ExportFormat::ScalapackH => {
            let what = "shares alone do not say who owns which block of a matrix";
            Err(Error::input("`export`", what, "export the plan of a matrix product"))
        }
        ExportFormat::OpenMpi => launch::open_mpi(processors, shares),
        ExportFormat::Mpich => launch::mpich(processors, shares),
        ExportFormat::Slurm => launch::slurm(processors, shares),
        ExportFormat::Hostfile => launch::hostfile(processors, shares),
        ExportFormat::SlurmHet => launch::slurm_het(processors, shares),
        ExportFormat::Template(template) => template.render(&Shares {
            names,
            shares,
            ranges: &in_rank_order(shares),
            order: &(0..shares.len()).collect::<Vec<_>>(),
        }),
        ExportFormat::Taskset | ExportFormat::Numactl | ExportFormat::Mpirun => {
            let what = "names and shares alone do not say which cores processors have";
            Err(Error::input("`export`", what, "export a plan with its platform"))
        }
    }
}

/// Writes a plan in the format of a tool: owners of blocks and FuPerMod's file by its layout, commands that
/// start programs by the cores of the `platform` (without one: [`Platform::from_names`]), all other formats by
/// its shares.
///
/// # Errors
/// Those of [`export`]; a processor that the platform does not have, or without the cores that the format
/// needs; owners of a plan without matrices (exit code 2); a table of more than 2^20 blocks,
/// sizes that C's `int` cannot hold, or descriptors of a plan that is not block-cyclic with equal blocks
/// (exit code 1).
///
/// # Example
/// ```
/// use apportion_plan::plan::shapes::{LayoutMethod, Rows};
/// use apportion_plan::plan::{ExportFormat, Plan, Shape, export_plan};
/// use apportion_plan::platform::Platform;
/// let layout = Rows::default().layout(Shape::new(4, 4, 4, "example")?, &[3.0, 1.0])?;
/// let plan = Plan::of_layout("rows", vec!["p0".into(), "p1".into()], layout, 1.0);
/// let platform = Platform::from_names(&plan.processors);
/// let text = export_plan(ExportFormat::OwnersH, &plan, &platform)?.text;
/// assert!(text.contains("#define APPORTION_C_ROWBLOCKS 2"));
/// # Ok::<(), apportion_plan::error::Error>(())
/// ```
pub fn export_plan(format: ExportFormat, plan: &Plan, platform: &Platform) -> Result<Export> {
    let shares = target_weights(&format, plan).unwrap_or_else(|| plan.shares.clone());
    match format {
        ExportFormat::Owners => owners::json(plan),
        ExportFormat::OwnersH => owners::header(plan),
        ExportFormat::Scalapack => owners::scalapack(plan),
        ExportFormat::ScalapackH => owners::scalapack_header(plan),
        ExportFormat::Taskset => pools::taskset(plan, platform),
        ExportFormat::Numactl => pools::numactl(plan, platform),
        ExportFormat::Mpirun => pools::mpirun(plan, platform),
        ExportFormat::FuPerMod => match plan.rectangles() {
            Some(layout) => rectangles::fupermod(&plan.processors, layout),
            None => export(format, &plan.processors, &shares),
        },
        ExportFormat::Template(template) => {
            refuse_nothing(&shares)?;
            template.render(&Shares {
                names: &plan.processors,
                shares: &shares,
                ranges: &plan.ranges(),
                order: &plan.ranks_in_order(),
            })
        }
        by_shares => {
            let known: BTreeMap<&str, &Processor> =
                platform.processors.iter().map(|processor| (&processor.name[..], processor)).collect();
            // Of a plan without its platform, only the names are known.
            let of_plan =
                |name: &String| known.get(&name[..]).map_or_else(|| Processor::named(name), |p| (*p).clone());
            let processors: Vec<Processor> = plan.processors.iter().map(of_plan).collect();
            export_processors(by_shares, &processors, &shares)
        }
    }
}

/// What a graph partitioner divides by: of a graph the weights of the parts, where vertices differ.
fn target_weights(format: &ExportFormat, plan: &Plan) -> Option<Vec<u64>> {
    let divides_graphs = match format {
        ExportFormat::Metis => true,
        ExportFormat::Template(template) => ["scotch", "openfoam"].contains(&&*template.name),
        _ => false,
    };
    let Division::Graph { .. } = plan.division else { return None };
    plan.costs
        .as_ref()
        .filter(|_| divides_graphs)
        .map(|costs| costs.iter().map(|cost| *cost as u64).collect())
}

/// Contiguous ranges of these shares, by rank.
fn in_rank_order(shares: &[u64]) -> Vec<Range<u64>> {
    offsets(shares).windows(2).map(|ends| ends[0]..ends[1]).collect()
}

/// Parts with their units, and warnings.
type Parts<'a> = (Vec<(&'a str, u64)>, Vec<String>);

/// The processors that have units, and a warning if others are left out for `tool`.
fn without_zeros<'a>(names: &'a [String], shares: &[u64], tool: &str) -> Parts<'a> {
    let all = || names.iter().map(String::as_str).zip(shares.iter().copied());
    let idle: Vec<&str> = all().filter(|(_, share)| *share == 0).map(|(name, _)| name).collect();
    let warnings = left_out(&idle, tool).into_iter().collect();
    (all().filter(|(_, share)| *share > 0).collect(), warnings)
}

/// A warning that these processors are left out for `tool`, if there are any.
fn left_out<S: AsRef<str>>(idle: &[S], tool: &str) -> Option<String> {
    let names: Vec<&str> = idle.iter().map(AsRef::as_ref).collect();
    let names = names.join(", ");
    (!idle.is_empty())
        .then(|| format!("{tool} does not support empty parts: {names} left out, later parts move up"))
}

/// Rejects shares of nothing.
fn refuse_nothing(shares: &[u64]) -> Result<()> {
    if shares.iter().any(|&share| share > 0) {
        return Ok(());
    }
    let what = "there is nothing to export: all shares are 0";
    Err(Error::input("`export`", what, "divide at least one unit"))
}

/// One JSON object of all shares.
fn json(names: &[String], shares: &[u64]) -> Export {
    let total: u64 = shares.iter().sum();
    let rows: Vec<serde_json::Value> = names
        .iter()
        .zip(shares)
        .map(|(name, &share)| {
            serde_json::json!({"processor": name, "share": share, "fraction": share as f64 / total as f64})
        })
        .collect();
    let whole = serde_json::json!({"total": total, "shares": rows});
    Export { text: format!("{whole:#}\n"), warnings: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::shapes::{LayoutMethod, SquareCorner};

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
        assert_eq!(text("llama.cpp", &shares), ("--tensor-split 6,0,3\n".into(), 0));
        assert_eq!(text("vllm", &shares), ("VLLM_PP_LAYER_PARTITION=6,2\n".into(), 1));
        assert_eq!(text("csv", &shares), ("processor,share,fraction\na,6,0.75\nb,0,0\nc,2,0.25\n".into(), 0));
        let json: serde_json::Value = serde_json::from_str(&text("json", &shares).0).unwrap();
        assert_eq!(json["shares"][2]["processor"], "c");
        assert_eq!(json["shares"][2]["share"], 2);
        assert_eq!(json["total"], 8);
    }

    #[test]
    fn simulation_codes_servers_and_languages() {
        let shares = [6, 0, 2];
        assert_eq!(text("lammps", &shares), ("processors 2 1 1\nbalance 0.9 x 0.75\n".into(), 1));
        assert_eq!(text("lammps", &[0, 5, 0]), ("processors 1 1 1\n".into(), 1));
        assert_eq!(text("lammps", &[1, 1, 2]), ("processors 3 1 1\nbalance 0.9 x 0.25 0.5\n".into(), 0));
        assert_eq!(text("gromacs", &shares), ("-dd 2 1 1 -dlb no -ddcsx \"0.75 0.25\"\n".into(), 1));
        let foam = text("openfoam", &shares).0;
        assert!(foam.contains("numberOfSubdomains 2;") && foam.contains("processorWeights (3 1);"));
        assert_eq!(text("sglang", &shares), ("SGLANG_PP_LAYER_PARTITION=6,2\n".into(), 1));
        let megatron = |layout: &str| {
            (format!("--pipeline-model-parallel-size 3 --pipeline-model-parallel-layout \"{layout}\"\n"), 0)
        };
        assert_eq!(text("megatron", &shares), megatron("E,t*6||t*2,L"));
        assert_eq!(text("megatron", &[0, 5, 0]), megatron("E|t*5|L"));
        let tensor = "--split-mode tensor --tensor-split 6,0,2\n";
        assert_eq!(text("llama.cpp-tensor", &shares), (tensor.into(), 0));
        assert_eq!(text("hostfile", &shares), ("a slots=6\nc slots=2\n".into(), 1));
        let het = "#SBATCH --nodelist=a --nodes=1 --ntasks=6\n#SBATCH hetjob\n\
                   #SBATCH --nodelist=c --nodes=1 --ntasks=2\n# srun --het-group=0-1 ./program\n";
        assert_eq!(text("slurm-het", &shares), (het.into(), 1));
        let units = text("slurm-units", &shares).0;
        assert!(units.contains("  0) from=0 to=6 ;;\n  1) from=6 to=6 ;;\n  2) from=6 to=8 ;;\n"), "{units}");
        let petsc = "static const PetscInt local_sizes[3] = {6, 0, 2};\n";
        assert_eq!(text("petsc", &shares), (petsc.into(), 0));
        assert_eq!(text("petsc", &[1 << 40, 1, 1]).1, 1);
        let c = text("c", &shares).0;
        assert!(c.contains("shares[3] = {6, 0, 2};") && c.contains("offsets[4] = {0, 6, 6, 8};"), "{c}");
        assert!(c.contains("names[3] = {\"a\", \"b\", \"c\"};"), "{c}");
        let odd = export("c".parse().unwrap(), &["a\"\\ü".to_string()], &[1]).unwrap().text;
        assert!(odd.contains(r#"{"a\"\\\303\274"}"#), "{odd}");
    }

    /// Processors as `detect` names them, HOST-KIND in the cluster HOST/KIND: launchers get the hosts, and the ranks
    /// of a processor its cores.
    #[test]
    fn launchers_get_hosts_and_not_processors() {
        let names = ["alpha-performance", "alpha-efficient", "beta", "alpha-spare"].map(String::from);
        let mut platform = Platform::from_names(&names);
        let places: [(&str, &[usize]); 4] = [
            ("alpha/performance", &[0, 2, 4, 6]),
            ("alpha/efficient", &[8]),
            ("beta", &[]),
            ("alpha/spare", &[9]),
        ];
        for (processor, (cluster, cores)) in platform.processors.iter_mut().zip(places) {
            (processor.cluster, processor.cores) = (cluster.into(), cores.to_vec());
        }
        let exported = |format: &str, shares: [u64; 4]| {
            let plan = Plan::of_units("proportional", names.to_vec(), shares.to_vec(), 1.0);
            export_plan(format.parse().unwrap(), &plan, &platform).unwrap()
        };
        let ranks = exported("openmpi", [2, 2, 2, 0]);
        assert_eq!(ranks.warnings.len(), 2, "the processor left out, and whose numbers the slots are");
        let lines: Vec<&str> = ranks.text.lines().skip(1).collect();
        // Two ranks divide four cores, and share one; unpinned ones get the slots of their host in turn.
        assert_eq!(
            lines,
            [
                "rank 0=alpha slot=0,2",
                "rank 1=alpha slot=4,6",
                "rank 2=alpha slot=8",
                "rank 3=alpha slot=8",
                "rank 4=beta slot=0",
                "rank 5=beta slot=1"
            ]
        );
        assert_eq!(exported("slurm", [1, 1, 1, 1]).text, "alpha\nalpha\nbeta\nalpha\n");
        assert_eq!(exported("mpich", [2, 1, 2, 1]).text, "alpha:3\nbeta:2\nalpha:1\n");
        let hostfile = exported("hostfile", [2, 1, 2, 1]);
        assert_eq!(hostfile.text, "alpha slots=4\nbeta slots=2\n");
        assert!(hostfile.warnings[0].starts_with("all ranks of alpha come together"), "{hostfile:?}");
        let het = exported("slurm-het", [2, 1, 2, 0]);
        assert!(het.text.contains("--nodelist=alpha --nodes=1 --ntasks=3\n#SBATCH hetjob"), "{het:?}");
        // Of a plan without its platform only names are known; HOST:NUMBER has its host.
        let plan = Plan::of_units("even", ["n1:0", "n1:1", "n2"].map(String::from).to_vec(), vec![1; 3], 1.0);
        let text = export_plan(ExportFormat::OpenMpi, &plan, &platform).unwrap().text;
        assert_eq!(text, "rank 0=n1 slot=0\nrank 1=n1 slot=1\nrank 2=n2 slot=0\n");
    }

    /// One machine that `detect` described without a name: launchers that know `localhost` get it.
    #[test]
    fn a_machine_without_a_name_is_localhost() {
        let names = ["performance", "efficient"].map(String::from);
        let mut platform = Platform::from_names(&names);
        for (core, processor) in platform.processors.iter_mut().enumerate() {
            (processor.cluster, processor.cores) = ("machine".into(), vec![core]);
        }
        let plan = Plan::of_units("proportional", names.to_vec(), vec![2, 1], 1.0);
        let exported = |format: ExportFormat| export_plan(format, &plan, &platform).map(|export| export.text);
        assert!(exported(ExportFormat::OpenMpi).unwrap().ends_with("rank 2=localhost slot=1\n"));
        assert_eq!(exported(ExportFormat::Mpich).unwrap(), "localhost:3\n");
        for format in [ExportFormat::Slurm, ExportFormat::SlurmHet] {
            let refused = exported(format).unwrap_err();
            assert!(refused.exit_code() == 2 && refused.to_string().contains("no host name"), "{refused}");
        }
    }

    #[test]
    fn a_column_based_layout_becomes_a_2dist_file() {
        use crate::geometry::{Rank, Rect, Span};
        use crate::plan::{Layout, Part, Shape};
        let part = |owner, rows: (u64, u64), cols: (u64, u64)| {
            Part::new(Rank(owner), Rect::new(Span::new(rows.0, rows.1), Span::new(cols.0, cols.1)))
        };
        let shape = Shape::new(8, 8, 8, "test").unwrap();
        let parts = [part(2, (0, 8), (0, 2)), part(1, (0, 3), (2, 8)), part(0, (3, 8), (2, 8))];
        let layout = Layout::new(shape, 3, parts).unwrap();
        let names = ["n1:0", "n2", "n1:1"].map(String::from).to_vec();
        let plan = Plan::of_layout("columns", names.clone(), layout, 1.0);
        let platform = Platform::from_names(&names);
        let text = export_plan("2dist".parse().unwrap(), &plan, &platform).unwrap().text;
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..3], ["#size 3", "#N 8", "#b 1"]);
        assert_eq!(lines[3].split('\t').count(), 11);
        assert_eq!(lines[4], "n1\t0\t1\t1\t2\t3\t6\t5\t30\t0.46875\t0");
        assert_eq!(lines[5], "n2\t0\t0\t1\t2\t0\t6\t3\t18\t0.28125\t1");
        assert_eq!(lines[6], "n1\t1\t0\t0\t0\t0\t2\t8\t16\t0.25\t2");
        // Other formats take the shares.
        assert!(export_plan("csv".parse().unwrap(), &plan, &platform).unwrap().text.contains("n2,18,"));
        let units = Plan::of_units("fpm", names.clone(), vec![1, 2, 3], 1.0);
        assert_eq!(export_plan(ExportFormat::FuPerMod, &units, &platform).unwrap_err().exit_code(), 2);
        let corner = SquareCorner.layout(shape, &[8.0, 1.0, 1.0]).unwrap();
        let plan = Plan::of_layout("square-corner", names, corner, 1.0);
        assert_eq!(export_plan(ExportFormat::FuPerMod, &plan, &platform).unwrap_err().exit_code(), 1);
    }

    #[test]
    fn what_cannot_be_said_is_refused() {
        assert!("excel".parse::<ExportFormat>().unwrap_err().to_string().contains("metis"));
        assert_eq!(export("csv".parse().unwrap(), &names(), &[1, 2]).unwrap_err().exit_code(), 2);
        assert_eq!(export("csv".parse().unwrap(), &names(), &[0; 3]).unwrap_err().exit_code(), 2);
        assert_eq!(export(ExportFormat::Hpl, &names(), &[9, 5, 1]).unwrap_err().exit_code(), 1);
        assert_eq!(export(ExportFormat::Mpich, &names(), &[2_000_000, 1, 1]).unwrap_err().exit_code(), 2);
        let spaced = ["a b".to_string()];
        assert_eq!(export(ExportFormat::OpenMpi, &spaced, &[1]).unwrap_err().exit_code(), 2);
        let awkward = ["x,\"y\"".to_string()];
        let csv = export("csv".parse().unwrap(), &awkward, &[1]).unwrap().text;
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

    /// What gpmetis reads (its `ReadTPwgts`): each weight in single precision is above 0 and below 1. It then
    /// scales them to a sum of 1.
    #[test]
    fn metis_accepts_every_weight() {
        for (shares, warnings) in [
            ([1_000_000, 1, 0], 2),
            ([1_000_000_000_000, 1, 1], 1),
            ([u64::MAX / 4, 1, u64::MAX / 4], 1),
            ([99, 1, 0], 2),
            ([5, 3, 1], 0),
        ] {
            let (text, count) = text("metis", &shares);
            let weights: Vec<f32> =
                text.lines().map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect();
            assert_eq!(weights.len(), shares.iter().filter(|share| **share > 0).count());
            assert!(weights.iter().all(|weight| *weight > 0.0 && *weight < 1.0), "{text}");
            assert!((weights.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{text}");
            assert_eq!(count, warnings, "{shares:?}");
        }
        let (alone, warnings) = text("metis", &[0, 7, 0]);
        assert_eq!((alone.as_str(), warnings), ("0 = 0.9999999403953552\n", 2), "left out, and alone");
    }

    /// llama.cpp's own rule (`load_tensors` in src/llama-model.cpp): the numbers are summed up and divided by
    /// their sum in single precision; position i of n layers and the output goes to the first device whose
    /// result exceeds i / (n + 1), as `std::upper_bound` finds it.
    fn layers_by_llama_cpp(split: &[f32], layers: usize) -> Vec<u64> {
        let mut sum = 0.0f32;
        let cumulated: Vec<f32> = split
            .iter()
            .map(|number| {
                sum += number;
                sum
            })
            .collect();
        let ends: Vec<f32> = cumulated.iter().map(|end| end / sum).collect();
        let device = |i: usize| ends.partition_point(|end| *end <= i as f32 / (layers + 1) as f32);
        let mut placed = vec![0; split.len()];
        (0..layers).for_each(|i| placed[device(i)] += 1);
        placed
    }

    #[test]
    fn llama_cpp_places_exactly_the_shares() {
        let mut dice = crate::random::Random::new(35);
        for case in 0..400 {
            let devices = 1 + dice.below(if case % 4 == 0 { 40 } else { 5 });
            let most = 1 + dice.below(if case % 10 == 0 { 20_000 } else { 90 });
            let mut shares: Vec<u64> = (0..devices)
                .map(|_| match dice.below(3) {
                    0 => 0,
                    _ => dice.below(most + 1) as u64,
                })
                .collect();
            if shares.iter().all(|share| *share == 0) {
                shares[case % devices] = 1;
            }
            let names: Vec<String> = (0..devices).map(|i| format!("d{i}")).collect();
            let text = export("llama.cpp".parse().unwrap(), &names, &shares).unwrap().text;
            let numbers = text.trim().strip_prefix("--tensor-split ").unwrap();
            let split: Vec<f32> = numbers.split(',').map(|number| number.parse().unwrap()).collect();
            let layers: u64 = shares.iter().sum();
            assert_eq!(layers_by_llama_cpp(&split, layers as usize), shares, "{text}");
        }
        assert_eq!(
            export("llama.cpp".parse().unwrap(), &["a".into()], &[1 << 21]).unwrap_err().exit_code(),
            2
        );
    }
}
