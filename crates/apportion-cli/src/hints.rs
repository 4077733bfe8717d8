//! What to type instead of a word that apportion does not know: one table of commands, one of flags.

use crate::args::headings;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Words that people try as a command, and what they want.
const COMMANDS: [(&[&str], &str); 21] = [
    (
        &["split", "divide", "share", "shares", "distribute", "balance-units", "decompose", "allocate"],
        "apportion partition --units 1000 --speeds 9,1 divides units, --shape 1000x1000 a matrix product",
    ),
    (
        &["plan", "layout", "schedule", "partitions", "partitioning"],
        "apportion partition makes a plan: --units 1000 or --shape 1000x1000, and --speeds 9,1",
    ),
    (
        &["multiply", "mul", "mult", "mm", "gemm", "dgemm", "sgemm", "matmult", "dot", "matrix"],
        "apportion matmul A.npy B.npy -o C.npy multiplies",
    ),
    (
        &["benchmark", "bench", "calibrate", "profile", "speed", "speeds", "model", "models", "time"],
        "apportion measure -o models.json measures speeds, apportion measure --network the network",
    ),
    (
        &[
            "info", "show", "list", "machine", "hardware", "cpu", "cpus", "cores", "topology", "discover",
            "devices",
        ],
        "apportion detect describes this machine",
    ),
    (
        &["forecast", "predict", "estimate", "sim", "simulation", "replay", "sweep"],
        "apportion simulate --plan plan.json --platform platform.toml forecasts a run",
    ),
    (
        &["execute", "exec", "launch", "start", "work"],
        "apportion run --units 1000 --command './work {from} {to}' runs your program, divided while it runs",
    ),
    (
        &["tune", "autotune", "rebalance", "optimize", "optimise", "balancing", "dfpa"],
        "apportion balance --units 1000 --command './work {share}' divides by running your program",
    ),
    (
        &["paths", "shortest-paths", "shortest-path", "apsp", "floyd", "floyd-warshall", "reachability"],
        "apportion closure A.npy -o lengths.npy finds the paths of a graph",
    ),
    (&["pow", "exponent", "exponentiate"], "apportion power A.npy -k 8 -o C.npy raises a matrix to a power"),
    (
        &["draw", "chart", "curves", "graph"],
        "apportion plot --models models.json --svg speeds.svg draws speeds",
    ),
    (&["export", "convert", "render"], "apportion partition --plan plan.json --export FORMAT or --svg FILE"),
    (&["generate", "gen", "rand", "create"], "apportion random 1000 1000 -o A.npy writes a sample matrix"),
    (
        &["map", "mapping", "place", "rearrange", "reorder", "remap"],
        "apportion arrange --plan plan.json --platform platform.toml places parts on a network",
    ),
    (&["linsolve", "linear", "gesv", "posv", "hpl"], "apportion solve --help"),
    (&["cholesky", "lu", "ldlt", "factorise", "factorize", "lapack"], "apportion factor --help"),
    (&["graph", "mesh", "metis", "scotch", "kahip"], "apportion partition --graph FILE"),
    (&["sparse", "spmm", "csr", "cg", "jacobi"], "apportion spmv --help"),
    (&["stencil", "mpdata", "advection", "transport"], "apportion advect --help"),
    (
        &["combine", "join", "concat"],
        "apportion merge FILE FILE -o models.json joins models of several hosts",
    ),
    (
        &["example", "examples", "tour", "tutorial", "try", "test", "quickstart"],
        "apportion demo shows an example",
    ),
];

/// A word that people try as a flag, and what they want: the first hint whose flag the command has.
struct FlagHint {
    words: &'static [&'static str],
    /// Pairs of a flag and a hint; the flag `""` stands for any command.
    hints: &'static [(&'static str, &'static str)],
}

const FLAGS: [FlagHint; 16] = [
    FlagHint {
        words: &[
            "weights",
            "weight",
            "ratios",
            "ratio",
            "capacities",
            "capacity",
            "speed",
            "proportions",
            "w",
        ],
        hints: &[
            ("speeds", "--speeds 9,1 gives relative speeds"),
            ("platform", "give speeds by --platform FILE"),
        ],
    },
    FlagHint {
        words: &[
            "processors",
            "processor",
            "procs",
            "np",
            "nproc",
            "ranks",
            "threads",
            "num-threads",
            "cores",
            "workers",
            "jobs",
            "parts",
            "nparts",
            "partitions",
            "devices",
            "nodes",
            "p",
            "j",
            "t",
        ],
        hints: &[
            ("processors", "--processors 4 gives their number"),
            ("speeds", "give one speed for each processor: --speeds 1,1,1,1, or --platform FILE"),
            ("platform", "list the processors in a file: --platform FILE"),
        ],
    },
    FlagHint {
        words: &["dry-run", "dryrun", "no-run", "simulate", "estimate", "plan-only"],
        hints: &[(
            "",
            "apportion partition makes a plan and runs nothing; apportion simulate forecasts its run",
        )],
    },
    FlagHint {
        words: &[
            "n",
            "N",
            "size",
            "count",
            "total",
            "items",
            "elements",
            "tasks",
            "num-units",
            "rows",
            "work",
        ],
        hints: &[
            ("units", "--units 1000 divides units, --shape 1000x1000 a matrix product"),
            ("exponent", "--exponent 8 is the power"),
            ("sizes", "--sizes 1000,2000 are the sizes"),
            ("shape", "--shape 1000x1000 gives the sizes"),
        ],
    },
    FlagHint {
        words: &["dims", "dimensions", "grid-size", "matrix", "m", "k"],
        hints: &[("shape", "--shape MxN or MxKxN gives the sizes")],
    },
    FlagHint {
        words: &["format", "to-format", "output-format", "f"],
        hints: &[("export", "--export FORMAT writes for other programs; --json prints JSON")],
    },
    FlagHint {
        words: &["out", "outfile", "output-file", "save", "write", "file"],
        hints: &[("output", "-o FILE names the output")],
    },
    FlagHint {
        words: &["hostfile", "hosts", "host", "machinefile", "mpi", "nodelist"],
        hints: &[("engine", "start it under mpirun -n 4 --hostfile FILE")],
    },
    FlagHint {
        words: &["algorithm", "strategy", "scheme", "layout", "partitioner"],
        hints: &[("method", "--method NAME, see --help"), ("flow", "--flow NAME, see --help")],
    },
    FlagHint {
        words: &["memory", "checkpoint", "resume"],
        hints: &[("mixed", "a system is solved in memory; apportion factor has --memory and --checkpoint")],
    },
    FlagHint {
        words: &["mem", "max-memory", "memory-limit", "ram"],
        hints: &[("memory", "--memory 64MiB limits the memory")],
    },
    FlagHint {
        words: &["debug", "log", "log-level", "trace-level", "info"],
        hints: &[("", "-v prints more")],
    },
    FlagHint {
        words: &["silent", "no-progress", "s"],
        hints: &[("", "--quiet prints no progress and no notes")],
    },
    FlagHint {
        words: &["program", "cmd", "exec", "executable", "run", "script"],
        hints: &[("command", "--command './work {share}' names your program, or the last words after --")],
    },
    FlagHint {
        words: &["draw", "plot", "picture", "image", "png", "pdf"],
        hints: &[("svg", "--svg FILE draws a picture")],
    },
    FlagHint {
        words: &["minimum", "lower", "at-least", "maximum", "upper", "at-most", "limits", "cap", "caps"],
        hints: &[("max", "--min and --max limit shares, with one number or one for each processor")],
    },
];

/// What to do about bad usage, where a word tells; `words` are those of the command line, the program's name
/// first.
pub fn remedy(error: &clap::Error, words: &[String]) -> Option<String> {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            if words.get(1).is_some_and(|first| first == "help") {
                return Some("apportion --help lists the commands".into());
            }
            of_command(context(ContextKind::InvalidSubcommand)?).map(Into::into)
        }
        ErrorKind::UnknownArgument => {
            let typed = context(ContextKind::InvalidArg)?;
            let grammar = headings::command();
            let command = words.iter().skip(1).find_map(|word| grammar.find_subcommand(word));
            let has = |flag: &str| {
                let mut arguments = command.into_iter().flat_map(clap::Command::get_arguments);
                arguments.any(|argument| argument.get_long() == Some(flag))
            };
            match typed.starts_with('-') {
                true => of_flag(typed, has).map(Into::into),
                false => of_word(typed, has),
            }
        }
        _ => None,
    }
}

fn of_command(word: &str) -> Option<&'static str> {
    let word = word.trim_start_matches('-').to_lowercase().replace('_', "-");
    COMMANDS.iter().find(|(words, _)| words.contains(&word.as_str())).map(|(_, hint)| *hint)
}

fn of_flag(typed: &str, has: impl Fn(&str) -> bool) -> Option<&'static str> {
    let word = typed.trim_start_matches('-').split('=').next()?.replace('_', "-");
    let entry = FLAGS.iter().find(|entry| entry.words.contains(&word.as_str()))?;
    entry.hints.iter().find(|(flag, _)| flag.is_empty() || has(flag)).map(|(_, hint)| *hint)
}

/// A word without a flag in front of it.
fn of_word(word: &str, has: impl Fn(&str) -> bool) -> Option<String> {
    let is_number = |text: &str| apportion::units::number(text).is_ok();
    let sides: Vec<&str> = word.split(['x', 'X']).collect();
    if sides.len() > 1 && sides.iter().all(|side| is_number(side)) && has("shape") {
        return Some(format!("write --shape {word}"));
    }
    if is_number(word) && has("units") {
        let shape = if has("shape") { format!(", or --shape {word}x{word}") } else { String::new() };
        return Some(format!("write --units {word}{shape}"));
    }
    if word.split([',', ':']).all(is_number) && has("speeds") {
        return Some(format!("write --speeds {word}"));
    }
    // A user's program is often written without the words that announce it.
    if has("command") {
        let remedy = "name your program by --command './work {share}', or as the last words after --";
        return Some(remedy.to_owned());
    }
    let flag = match word.rsplit('.').next()? {
        "npy" | "mtx" if has("output") => "-o",
        "toml" if has("platform") => "--platform",
        "json" if has("plan") => "--plan",
        _ => return None,
    };
    Some(format!("write {flag} {word}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test says what went wrong by failing.
mod tests {
    use super::*;

    fn hint(line: &str) -> String {
        let words: Vec<String> = ["apportion"].into_iter().chain(line.split(' ')).map(Into::into).collect();
        let error = headings::command().try_get_matches_from(&words).unwrap_err();
        remedy(&error, &words).unwrap_or_default()
    }

    #[test]
    fn natural_words_are_answered() {
        for (line, needed) in [
            ("split 1000", "apportion partition"),
            ("plan", "apportion partition"),
            ("multiply a b", "apportion matmul"),
            ("GEMM", "apportion matmul"),
            ("benchmark", "apportion measure"),
            ("help me", "apportion --help"),
            ("partition --units 9 --weights 1,2", "--speeds"),
            ("partition --units 9 --weights=1,2", "--speeds"),
            ("partition --units 9 --threads 2", "--speeds"),
            ("matmul a.npy b.npy --processors 2", "--speeds"),
            ("balance --units 9 --threads 2", "--processors"),
            ("matmul a.npy b.npy --dry-run", "apportion simulate"),
            ("partition -n 1000", "--units"),
            ("balance -n 1000", "--units"),
            ("partition 1000", "--units 1000"),
            ("partition 1e6 --speeds 1,2", "--units 1e6"),
            ("partition 1000x500", "--shape 1000x500"),
            ("partition --units 9 9:1", "--speeds 9:1"),
            ("matmul a.npy b.npy c.npy", "-o c.npy"),
            ("measure ./work", "--command"),
        ] {
            let hint = hint(line);
            assert!(hint.contains(needed), "{line}: {hint}");
        }
        assert_eq!(hint("partition --units 9 --speeds 1,1 --wibble"), "");
        assert_eq!(hint("wibble"), "");
    }

    /// A hint names commands and flags that exist, and no entry hides a command or a flag that does.
    #[test]
    fn hints_are_true() {
        let grammar = headings::command();
        for (words, hint) in COMMANDS {
            let name = hint.split(' ').nth(1).unwrap();
            let command = grammar.find_subcommand(name).unwrap_or_else(|| panic!("{hint}"));
            for flag in
                hint.split(|c: char| !(c.is_alphanumeric() || c == '-')).filter_map(|w| w.strip_prefix("--"))
            {
                assert!(command.get_arguments().any(|a| a.get_long() == Some(flag)), "{hint}: --{flag}");
            }
            assert!(words.iter().all(|word| grammar.find_subcommand(word).is_none()), "{words:?}");
        }
        let known = |flag: &str| {
            let has = |c: &clap::Command| c.get_arguments().any(|a| a.get_long() == Some(flag));
            grammar.get_subcommands().any(has)
        };
        for (flag, hint) in FLAGS.iter().flat_map(|entry| entry.hints) {
            assert!(flag.is_empty() || known(flag), "{hint}");
        }
    }
}
