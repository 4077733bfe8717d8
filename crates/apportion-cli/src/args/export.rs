//! `--export`: a plan's shares for another tool.

use apportion::plan::ExportFormat;
use clap::Args;
use std::path::PathBuf;

/// Shares for other tools.
#[derive(Debug, Args)]
#[command(next_help_heading = "Export")]
pub struct ExportArgs {
    /// Print the shares for another tool instead of the plan: metis, scotch, openmpi, hostfile, mpich, mpirun,
    /// taskset, numactl, slurm, slurm-het, slurm-units, hpl, lammps, gromacs, openfoam, llama.cpp,
    /// llama.cpp-tensor, vllm, sglang, megatron, c, petsc, 2dist (a layout), csv or json; or who owns which
    /// block of the matrices: owners (JSON for COSTA and SLATE), owners-h (C header), scalapack (descriptors,
    /// JSON) or scalapack-h (C header).
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    pub export: Option<Format>,
    /// Write the export to this file; the plan is then printed as usual.
    #[arg(long, value_name = "FILE", requires = "export")]
    pub export_to: Option<PathBuf>,
}

/// A format, with the name that was typed.
#[derive(Debug, Clone)]
pub struct Format {
    pub name: String,
    pub format: ExportFormat,
}

fn format(name: &str) -> Result<Format, String> {
    match name.parse() {
        Ok(format) => Ok(Format { name: name.into(), format }),
        Err(apportion::error::Error::Input { what, remedy, .. }) => Err(format!("{what}: {remedy}")),
        Err(other) => Err(other.to_string()),
    }
}
