//! Domain decompositions of simulation codes: LAMMPS, GROMACS, OpenFOAM.
//!
//! All cut the box into slabs along x, in the order of the processors: the load is assumed to be even in
//! space.

use super::graph::weights;
use super::{Export, without_zeros};

/// `processors P 1 1` and `balance 0.9 x …`: the ends of all slabs but the last, as fractions of the box
/// (LAMMPS manual, command `balance`). The threshold of 0.9 is always exceeded.
pub(super) fn lammps(names: &[String], shares: &[u64]) -> Export {
    let (parts, warnings) = without_zeros(names, shares, "LAMMPS");
    let total: f64 = parts.iter().map(|(_, share)| *share as f64).sum();
    let mut text = format!("processors {} 1 1\n", parts.len());
    if parts.len() > 1 {
        let mut before = 0.0;
        let ends = parts[..parts.len() - 1].iter().map(|(_, share)| {
            before += *share as f64;
            format!(" {}", before / total)
        });
        text += &format!("balance 0.9 x{}\n", ends.collect::<String>());
    }
    Export { text, warnings }
}

/// `-dd P 1 1 -dlb no -ddcsx "…"`: sizes of the cells along x, without dynamic load balancing, which would
/// change them (GROMACS, `gmx mdrun -h -hidden`).
pub(super) fn gromacs(names: &[String], shares: &[u64]) -> Export {
    let (parts, warnings) = without_zeros(names, shares, "GROMACS");
    let total: f64 = parts.iter().map(|(_, share)| *share as f64).sum();
    let sizes: Vec<String> = parts.iter().map(|(_, share)| (*share as f64 / total).to_string()).collect();
    let text = format!("-dd {} 1 1 -dlb no -ddcsx \"{}\"\n", parts.len(), sizes.join(" "));
    Export { text, warnings }
}

/// Entries of `system/decomposeParDict`: the weights of the processors for Scotch, a list of whole numbers
/// (`labelList processorWeights` in scotchDecomp.C).
pub(super) fn openfoam(names: &[String], shares: &[u64]) -> Export {
    let (parts, warnings) = without_zeros(names, shares, "OpenFOAM");
    let text = format!(
        "numberOfSubdomains {};\nmethod scotch;\nscotchCoeffs\n{{\n    processorWeights ({});\n}}\n",
        parts.len(),
        weights(&parts).join(" ")
    );
    Export { text, warnings }
}
