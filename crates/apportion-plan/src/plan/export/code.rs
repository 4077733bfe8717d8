//! Shares and offsets as source code: C arrays, PETSc's ownership ranges, and a shell file for Slurm's tasks.

use super::Export;
use std::ops::Range;

/// Arrays of C: names, shares, and the first unit of each with the total at their end.
pub(super) fn c(names: &[String], shares: &[u64], ranges: &[Range<u64>]) -> Export {
    let begins = ranges.iter().map(|range| range.start);
    let offsets: Vec<u64> = begins.chain([shares.iter().sum()]).collect();
    let quoted: Vec<String> = names.iter().map(|name| c_text(name)).collect();
    let text = format!(
        "#include <stdint.h>\n\nenum {{ PROCESSORS = {p} }};\n\
         static const char *const names[{p}] = {{{}}};\n\
         static const int64_t shares[{p}] = {{{}}};\n\
         static const int64_t offsets[{}] = {{{}}};\n",
        quoted.join(", "),
        list(shares, ", "),
        shares.len() + 1,
        list(&offsets, ", "),
        p = shares.len(),
    );
    Export { text, warnings: Vec::new() }
}

/// Local sizes for `VecSetSizes`, `MatSetSizes` and the `lx` of `DMDACreate1d`.
pub(super) fn petsc(shares: &[u64]) -> Export {
    let mut warnings = Vec::new();
    if shares.iter().any(|&x| x > i32::MAX as u64) {
        warnings.push("a share does not fit into 32 bits: configure PETSc with 64-bit indices".into());
    }
    let p = shares.len();
    let text = format!("static const PetscInt local_sizes[{p}] = {{{}}};\n", list(shares, ", "));
    Export { text, warnings }
}

/// A file that a task's shell script reads with `.`, in any shell of POSIX: it sets `from` and `to`, the
/// task's units, by `SLURM_PROCID`. A task beyond the shares gets none; a script that Slurm did not start
/// ends.
pub(super) fn slurm_units(ranges: &[Range<u64>]) -> Export {
    let mut text = String::from(
        "# . this file in the script that srun starts: task i has the units from <= unit < to.\n\
         # A task without a share has from = to.\n\
         case \"${SLURM_PROCID:-}\" in\n",
    );
    for (task, units) in ranges.iter().enumerate() {
        text += &format!("  {task}) from={} to={} ;;\n", units.start, units.end);
    }
    let total = ranges.iter().map(|units| units.end).max().unwrap_or(0);
    text += &format!(
        "  '' | *[!0-9]*) echo 'SLURM_PROCID is not set: start this script with srun' >&2; exit 1 ;;\n  \
         *) from={total} to={total} ;;\n\
         esac\n"
    );
    Export { text, warnings: Vec::new() }
}

fn list(numbers: &[u64], between: &str) -> String {
    numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(between)
}

/// A text literal of C, in ASCII, without trigraphs.
pub(in crate::plan::export) fn c_text(name: &str) -> String {
    let escaped = |byte: u8| match byte {
        b'"' | b'\\' | b'?' => format!("\\{}", byte as char),
        b' '..=b'~' => (byte as char).to_string(),
        // Octal escapes end after three digits, unlike hexadecimal ones.
        other => format!("\\{other:03o}"),
    };
    format!("\"{}\"", name.bytes().map(escaped).collect::<String>())
}
