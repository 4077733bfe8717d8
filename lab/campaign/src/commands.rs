//! Commands that are disturbed, and what must hold afterwards: the right outputs, or one line and the outputs
//! as they were; nothing is left over.

use crate::fuzz::no_leftovers;
use crate::tool::{Ended, Tool, all_end_in, ended};
use std::ffi::OsString;
use std::fs;

/// A command under attack, and the files that it writes.
pub struct Case {
    pub line: &'static str,
    outputs: &'static [&'static str],
    /// True if the outputs have the same bytes in every run.
    same: bool,
}

pub const fn case(line: &'static str, outputs: &'static [&'static str], same: bool) -> Case {
    Case { line, outputs, same }
}

pub const CASES: [Case; 9] = [
    case("random 30 20 -o new.npy --seed 7", &["new.npy"], true),
    case("partition --shape 60x60 --platform two.toml -o p.json --svg p.svg", &["p.json", "p.svg"], true),
    case("arrange --plan plan.json --platform two.toml -o a.json", &["a.json"], true),
    case("simulate --plan plan.json --platform two.toml --trace t.json", &["t.json"], true),
    case("matmul a.npy a.npy -o c.npy --platform two.toml", &["c.npy"], true),
    case("matmul a.npy a.npy -o c.npy --platform two.toml --report r.json", &["c.npy", "r.json"], false),
    case("matmul a.npy a.npy -o c.npy --platform two.toml --panels 3 --checkpoint k", &["c.npy"], true),
    case("closure a.npy -o c.npy --platform two.toml --predecessors q.npy", &["c.npy", "q.npy"], true),
    case(
        "advect --field a.npy --courant 0.2,0.1 --steps 3 -o out.npy --platform two.toml",
        &["out.npy"],
        true,
    ),
];

const PLATFORM: &str = "[[processor]]\nname = \"f\"\nspeed = \"9 Gflop/s\"\n\
    [[processor]]\nname = \"s\"\nspeed = \"1 Gflop/s\"\n[network]\nbandwidth = \"1 GB/s\"\n";

/// Processors of two threads each.
const WIDE: &str = "[[processor]]\nname = \"w\"\nspeed = \"1 Gflop/s\"\ncores = [0, 1]\n\
    [[processor]]\nname = \"v\"\nspeed = \"1 Gflop/s\"\ncores = [0, 1]\n[network]\nbandwidth = \"1 GB/s\"\n";

/// Three processors, for commands of three ranks.
pub const THREE: &str = "[[processor]]\nname = \"x\"\nspeed = \"5 Gflop/s\"\n\
    [[processor]]\nname = \"y\"\nspeed = \"3 Gflop/s\"\n[[processor]]\nname = \"z\"\nspeed = \"2 Gflop/s\"\n\
    [network]\nbandwidth = \"1 GB/s\"\n";

/// The content of outputs before a command.
pub const EARLIER: &[u8] = b"an earlier result";

/// Variables for one run of a command.
pub type Environment = Vec<(&'static str, OsString)>;

/// A case with its inputs, its right outputs, and the program.
pub struct Attack<'a> {
    pub case: &'a Case,
    tool: &'a Tool,
    inputs: Vec<(&'static str, Vec<u8>)>,
    right: Vec<Vec<u8>>,
}

/// Checks what a command of several ranks leaves: each of them may tell of an error in a line of its own.
pub fn sound_of_ranks(ended: &Ended, found: &[u8], right: &[u8]) -> Result<(), String> {
    let told = ended.said.lines().any(|line| line.starts_with("apportion: "));
    let sound = match ended.code {
        Some(0) => found == right,
        _ => told && (found == EARLIER || found == right) && !ended.said.contains("internal error"),
    };
    let before = found == EARLIER;
    if sound { Ok(()) } else { Err(format!("{:?}, output as before: {before}: {}", ended.code, ended.said)) }
}

impl<'a> Attack<'a> {
    /// Runs the case undisturbed, in this environment.
    pub fn new(case: &'a Case, tool: &'a Tool, environment: Environment) -> Result<Self, String> {
        let bench = tempfile::tempdir().map_err(|e| e.to_string())?;
        let at = bench.path();
        fs::write(at.join("two.toml"), PLATFORM).map_err(|e| e.to_string())?;
        fs::write(at.join("wide.toml"), WIDE).map_err(|e| e.to_string())?;
        tool.must(at, &["random", "40", "40", "-o", "a.npy"])?;
        for (what, plan) in [(["--shape", "40x40"], "plan.json"), (["--units", "30"], "units.json")] {
            tool.must(at, &["partition", what[0], what[1], "--platform", "two.toml", "-o", plan])?;
        }
        let read =
            |name: &'static str| fs::read(at.join(name)).map_err(|e| format!("{}: {name}: {e}", case.line));
        let inputs = ["two.toml", "wide.toml", "a.npy", "plan.json", "units.json"];
        let inputs = inputs.into_iter().map(|name| Ok((name, read(name)?)));
        let inputs = inputs.collect::<Result<_, String>>()?;
        let mut attack = Self { case, tool, inputs, right: Vec::new() };
        let ended = attack.start(at, environment)?;
        ended.is_orderly()?;
        if ended.code != Some(0) {
            return Err(format!("{}: fails undisturbed: {}", case.line, ended.said));
        }
        attack.right = case.outputs.iter().map(|name| read(name)).collect::<Result<_, _>>()?;
        Ok(attack)
    }

    fn start(&self, at: &std::path::Path, environment: Environment) -> Result<Ended, String> {
        let words: Vec<&str> = self.case.line.split(' ').collect();
        let mut command = self.tool.command(at, &words);
        command.envs(environment);
        ended(command, &words)
    }

    /// Runs the command where earlier outputs are, and checks what it leaves. `about` says how it is
    /// disturbed.
    pub fn disturbed(&self, about: &str, environment: Environment) -> Result<Ended, String> {
        let about = format!("apportion {}: {about}", self.case.line);
        let bench = tempfile::tempdir().map_err(|e| e.to_string())?;
        let earlier = self.case.outputs.iter().map(|name| (*name, EARLIER));
        for (name, bytes) in self.inputs.iter().map(|(name, bytes)| (*name, &bytes[..])).chain(earlier) {
            fs::write(bench.path().join(name), bytes).map_err(|e| e.to_string())?;
        }
        let ended = self.start(bench.path(), environment).map_err(|defect| format!("{about}: {defect}"))?;
        ended.is_orderly().map_err(|defect| format!("{about}: {defect}"))?;
        no_leftovers(bench.path()).map_err(|defect| format!("{about}: {defect}: {}", ended.said))?;
        if !all_end_in(bench.path()) {
            return Err(format!("{about}: programs still run: {}", ended.said));
        }
        let read = |output: &&str| fs::read(bench.path().join(output)).unwrap_or_default();
        let found: Vec<Vec<u8>> = self.case.outputs.iter().map(read).collect();
        let whole = |(found, right): (&Vec<u8>, &Vec<u8>)| match self.case.same {
            true => found == right,
            false => found.len() > EARLIER.len(),
        };
        let new = found.iter().zip(&self.right).all(whole);
        // After an error, all of them are as before, or all are there.
        if new || (ended.code != Some(0) && found.iter().all(|found| found == EARLIER)) {
            Ok(ended)
        } else {
            Err(format!("{about}: {:?} are not sound: {}", self.case.outputs, ended.said))
        }
    }
}
