//! A user program as a workload: its command line, and its time on a processor.

use crate::error::{Error, Result};
use crate::geometry::Rank;
use crate::measure::process::{self, End, Exit, Listeners, last_line, one_line};
use crate::measure::remote::{self, RemoteProgram};
use crate::measure::repetition::{Timing, Trial};
use crate::measure::sweep::{Sizes, Subject};
use crate::measure::workload::{Workload, check_sizes};
use crate::platform::{Platform, Processor};
use crate::run::clock;
use crate::run::mailboxes::StopSignal;
use crate::units;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::Range;
use std::process::Command;
use std::str::FromStr;
use std::time::Duration;

/// Source of a program's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SecondsFrom {
    /// Wall-clock time of the whole run, from its start to its end.
    #[default]
    Wall,
    /// The last line of its output that is not empty; it must be a number of seconds and nothing else.
    Stdout,
}

/// A command line with placeholders for the task.
///
/// The text is split into words as in a POSIX shell (blanks, quotes, backslashes), but no shell runs, and
/// redirections, pipes and the like are refused: [`UserCommand::of_shell`] has a shell run the text. Then `{size}`
/// (or its synonym `{share}`), `{from}` and `{to}` (the half-open range of units), `{piece}` (its number),
/// `{processor}` and `{rank}` are replaced in each word, so that a name with a blank stays one word. Other names in
/// braces are refused, except after a `$`. The program also finds the values in the environment, as
/// `APPORTION_SIZE`, `APPORTION_FROM`, `APPORTION_TO`, `APPORTION_PIECE`, `APPORTION_PROCESSOR` and
/// `APPORTION_RANK`. For a shell, that is the safe way to get a processor's name. `OMP_NUM_THREADS` is the
/// number of the processor's `cores`, if it has any.
///
/// The program of a processor with a `start` runs on another machine, in the directory of the same name; its time
/// is that between its begin and its end there.
///
/// # Example
/// ```
/// use apportion::measure::{SecondsFrom, UserCommand};
/// let command = UserCommand::parse("./solver --n {size} 'two words'", SecondsFrom::Wall)?;
/// let refused = UserCommand::parse("./solver {from} {to} > out-{piece}", SecondsFrom::Wall);
/// assert!(refused.unwrap_err().to_string().contains("shell"));
/// let command = UserCommand::of_shell("./solver {from} {to} > out-{piece}", SecondsFrom::Wall)?;
/// # Ok::<(), apportion::error::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct UserCommand {
    text: String,
    words: Vec<String>,
    seconds_from: SecondsFrom,
    timeout: Option<f64>,
}

/// One run of a command: which units, and where.
#[derive(Debug, Clone)]
pub(super) struct CommandRun<'a> {
    pub(crate) processor: &'a Processor,
    pub(crate) rank: usize,
    pub(crate) piece: u64,
    pub(crate) units: Range<f64>,
}

/// A run that gave no time.
pub(super) struct Failure {
    pub(crate) error: Error,
    /// The reason, if the program itself ended with a failure, as it does when memory is full.
    pub reason: Option<String>,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { error, reason: None }
    }
}

impl UserCommand {
    /// Parses a command line.
    ///
    /// # Errors
    /// No word, an unclosed quote, an unknown placeholder, no placeholder for the size, or syntax that only a shell
    /// follows.
    pub fn parse(text: &str, seconds_from: SecondsFrom) -> Result<Self> {
        if let Some(syntax) = shell_syntax(text) {
            let what = format!("\"{syntax}\" is for a shell, and no shell reads the command");
            return Err(Error::input(
                "`command`",
                what,
                "add `shell`, or quote it if the program is to get it",
            ));
        }
        match shlex::split(text) {
            Some(words) => Self::new(text.to_owned(), words, seconds_from),
            None => Err(Error::input(
                "`command`",
                "a quote is not closed, or a backslash ends it",
                "close the quote",
            )),
        }
    }

    /// A command line that `sh -c` runs.
    ///
    /// # Errors
    /// Nothing to run, an unknown placeholder, no placeholder for the size, or that for the processor's name, in which
    /// a shell would find syntax of its own.
    pub fn of_shell(text: &str, seconds_from: SecondsFrom) -> Result<Self> {
        if text.contains("{processor}") {
            let what = "{processor} may hold what a shell would run";
            return Err(Error::input("`command`", what, "write \"$APPORTION_PROCESSOR\" with the quotes"));
        }
        if text.trim().is_empty() {
            return Self::new(String::new(), Vec::new(), seconds_from);
        }
        Self::new(text.to_owned(), ["sh", "-c", text].map(String::from).to_vec(), seconds_from)
    }

    /// A command from its words.
    ///
    /// # Errors
    /// No word, an unknown placeholder, or no placeholder for the size.
    pub fn of_words(words: &[String], seconds_from: SecondsFrom) -> Result<Self> {
        // A word with a NUL cannot be quoted, and no program takes it.
        let text = shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "));
        Self::new(text, words.to_vec(), seconds_from)
    }

    fn new(text: String, words: Vec<String>, seconds_from: SecondsFrom) -> Result<Self> {
        let refuse = |what: &str, remedy: &str| Err(Error::input("`command`", what, remedy));
        if words.first().is_none_or(String::is_empty) {
            return refuse("it names no program", "write it like './solver {size}'");
        }
        if let Some(name) = words.iter().find_map(|word| unknown_placeholder(word)) {
            let known = PLACEHOLDERS.map(|name| format!("{{{name}}}")).join(", ");
            let what = format!("{{{name}}} is not a placeholder");
            return refuse(&what, &format!("use {known}; a blank after the brace keeps other text as it is"));
        }
        let places = ["{size}", "{share}", "{to}", "APPORTION_SIZE", "APPORTION_TO"];
        if !words.iter().any(|word| places.iter().any(|place| word.contains(place))) {
            let what = format!("\"{text}\" has no place for the size of the task");
            return refuse(&what, "put {size} or {share}, or {from} and {to}, where the program takes it");
        }
        Ok(Self { text, words, seconds_from, timeout: None })
    }

    /// The same command, with a limit of seconds for each run; `None`: any time.
    #[must_use]
    pub fn with_timeout(self, seconds: Option<f64>) -> Self {
        Self { timeout: seconds, ..self }
    }

    /// The longest that a run may take, if there is a limit.
    pub(super) fn patience(&self) -> Option<Duration> {
        self.timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
    }

    /// Whether the time of the program is that of the wall clock.
    pub(super) fn is_timed_by_wall(&self) -> bool {
        self.seconds_from == SecondsFrom::Wall
    }

    /// The command line as it was written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The words with all placeholders replaced. Numbers are written without an exponent.
    fn words_of(&self, run: &CommandRun<'_>) -> Vec<String> {
        let CommandRun { processor, rank, piece, units } = run;
        let size = units.end - units.start;
        let values: [(&str, &dyn Display); 7] = [
            ("size", &size),
            ("share", &size),
            ("from", &units.start),
            ("to", &units.end),
            ("piece", piece),
            ("processor", &processor.name),
            ("rank", rank),
        ];
        self.words.iter().map(|word| fill_placeholders(word, &values)).collect()
    }

    /// Runs the program once on the run's processor. Here, the calling thread is pinned to its cores; on another
    /// machine the program is, as far as that machine can.
    ///
    /// # Errors
    /// The program cannot be started, or not on the processor's cores (exit code 2); the processor's launcher fails
    /// (exit code 1); stopped.
    pub(super) fn execute(
        &self,
        run: &CommandRun<'_>,
        listeners: &Listeners,
        halt: &StopSignal<'_>,
    ) -> Result<Exit> {
        let (processor, words, environment) = (run.processor, self.words_of(run), environment(run));
        let most = self.patience();
        if !processor.start.is_empty() {
            let program = RemoteProgram { processor, words: &words, environment: &environment };
            return program.run(most, listeners, halt);
        }
        if let Some(what) = clock::absent_cores_of(processor) {
            return Err(unusable_cores(processor, what));
        }
        clock::pin(&processor.cores);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).envs(environment);
        process::run(command, most, listeners, None, halt)?
            .map_err(|error| process::cannot_start(&words[0], &error))
    }

    /// Runs the program once as [`execute`](Self::execute) does, and returns its seconds.
    ///
    /// # Errors
    /// Those of `execute` and of [`seconds_of`](Self::seconds_of).
    pub(super) fn seconds(
        &self,
        run: &CommandRun<'_>,
        halt: &StopSignal<'_>,
    ) -> std::result::Result<f64, Failure> {
        self.seconds_of(run, &self.execute(run, &Listeners::default(), halt)?)
    }

    /// The seconds of a run that has ended, multiplied by the processor's slowdown.
    ///
    /// # Errors
    /// The program failed, printed no time or took too long: exit code 1.
    pub(super) fn seconds_of(&self, run: &CommandRun<'_>, ended: &Exit) -> std::result::Result<f64, Failure> {
        let CommandRun { processor, units, .. } = run;
        self.read(ended).map(|seconds| seconds * processor.slowdown).map_err(|(what, remedy, reason)| {
            let (text, size, name) = (one_line(&self.text), units.end - units.start, &processor.name);
            let launcher = match processor.start.is_empty() {
                true => String::new(),
                false => format!(" (`{}`)", remote::name(processor)),
            };
            let what = format!("`{text}` with size {size} on processor \"{name}\"{launcher} {what}");
            Failure { error: Error::infeasible(what, remedy), reason }
        })
    }

    /// The time of a run that has ended, or the problem, its remedy and the reason of a failure.
    fn read(&self, ended: &Exit) -> std::result::Result<f64, (String, &'static str, Option<String>)> {
        let failure = match &ended.end {
            End::Exited { failure, .. } => failure,
            End::TimedOut => {
                let limit = units::show_seconds(self.timeout.unwrap_or_default());
                let what = format!("did not end within {limit} and was stopped");
                return Err((what, "raise `timeout`, or run it by hand with that size", None));
            }
        };
        if let Some(failure) = failure {
            let mut reason = failure.clone();
            if let Some(line) = ended.last_line() {
                reason += &format!(", its last line: {line}");
            }
            return Err((format!("failed: {reason}"), "run it by hand with that size", Some(reason)));
        }
        match self.seconds_from {
            SecondsFrom::Wall => Ok(ended.seconds),
            SecondsFrom::Stdout => {
                let bad = |what: String| {
                    Err((what, "its last line must be a positive number of seconds and nothing else", None))
                };
                let Some(line) = last_line(&ended.stdout) else {
                    return bad("printed nothing".into());
                };
                match f64::from_str(&line) {
                    Ok(seconds) if seconds.is_finite() && seconds > 0.0 => Ok(seconds),
                    Ok(seconds) => bad(format!("printed a time of {seconds} seconds")),
                    Err(_) => bad(format!("ended with \"{line}\", which is not a number")),
                }
            }
        }
    }
}

/// The error of a program that would not run on the cores of its processor: its time would be that of others.
pub(super) fn unusable_cores(processor: &Processor, what: String) -> Error {
    Error::input(
        format!("processor \"{}\"", processor.name),
        what,
        "name cores that `apportion detect` lists there, or remove `cores`",
    )
}

/// The variables of a run. A program of a processor with cores is told to use as many threads, whatever the
/// environment says to all processors.
fn environment(run: &CommandRun<'_>) -> Vec<(&'static str, String)> {
    let CommandRun { processor, rank, piece, units } = run;
    let mut variables = vec![
        ("APPORTION_SIZE", (units.end - units.start).to_string()),
        ("APPORTION_FROM", units.start.to_string()),
        ("APPORTION_TO", units.end.to_string()),
        ("APPORTION_PIECE", piece.to_string()),
        ("APPORTION_PROCESSOR", processor.name.clone()),
        ("APPORTION_RANK", rank.to_string()),
    ];
    if !processor.cores.is_empty() {
        variables.push(("OMP_NUM_THREADS", processor.cores.len().to_string()));
    }
    variables
}

/// Each processor runs one instance at a time, pinned to its cores, on its machine. The first run of a size is not counted.
///
/// If the program fails at a larger size than one that worked, its memory is taken to be full: the largest
/// size that works is searched for by bisection and becomes the model's cap
/// ([`Model::failure`](crate::model::Model::failure)).
///
/// If one run takes longer than the time for a size, it is the only run of that size. The `slowdown` of an
/// emulated processor multiplies the seconds of its program, whether they are wall-clock seconds or printed
/// by the program; no time is spent sleeping.
///
/// A sweep ends with an error if the program cannot be started (exit code 2), fails at its smallest size,
/// prints no time or takes too long (exit code 1; the message contains command, size and processor).
impl Workload for UserCommand {
    type Trial<'a> = CommandTrial<'a>;

    fn subject<'a>(&'a self, platform: &'a Platform, sizes: &Sizes) -> Result<Subject<'a>> {
        if let Sizes::Listed(sizes) | Sizes::Each(sizes) = sizes {
            check_sizes(sizes, "1000,10000,100000", |size| {
                let is_fine = size.is_finite() && size > 0.0;
                (!is_fine).then(|| format!("{size} is not a positive size"))
            })?;
        }
        Ok(Subject {
            platform,
            kernel: format!("command: {}", self.text()),
            unit: "{size} of the command".into(),
            parameters: BTreeMap::new(),
            rounded: |size| size,
            largest: Box::new(|_| f64::INFINITY),
        })
    }

    fn trial<'a>(&'a self, processor: &'a Processor, rank: Rank, size: f64) -> Self::Trial<'a> {
        let run = CommandRun { processor, rank: rank.0, piece: 0, units: 0.0..size };
        CommandTrial { command: self, run, reason: None }
    }
}

/// One size of a program on one processor.
pub struct CommandTrial<'a> {
    command: &'a UserCommand,
    run: CommandRun<'a>,
    /// The reason of the last failure, if the program itself failed.
    reason: Option<String>,
}

impl Trial for CommandTrial<'_> {
    const FEWEST_WHEN_LATE: usize = 1;

    fn time(&mut self, halt: &StopSignal<'_>) -> Result<Timing> {
        let seconds = self.command.seconds(&self.run, halt).map_err(|failure| {
            self.reason = failure.reason;
            failure.error
        })?;
        Ok(Timing::of_wall(seconds))
    }

    fn failure_of_size(&self) -> Option<&str> {
        self.reason.as_deref()
    }
}

/// The names that are replaced in a command.
const PLACEHOLDERS: [&str; 7] = ["size", "share", "from", "to", "piece", "processor", "rank"];

/// What only a shell would follow in a command line, outside of quotes: an operator, a substitution of a command, or a
/// variable that is set in front of the program.
fn shell_syntax(text: &str) -> Option<String> {
    let mut rest = text;
    let (mut quote, mut is_begin) = (None, true);
    while let Some(c) = rest.chars().next() {
        let operator = ["&&", "||", ">>", "$(", ">", "<", "|", ";", "&", "`"].into_iter();
        if let Some(operator) = operator.filter(|_| quote.is_none()).find(|found| rest.starts_with(found)) {
            return Some(operator.to_owned());
        }
        if quote.is_none() && is_begin && c == '#' {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
            continue;
        }
        is_begin = quote.is_none() && c.is_whitespace();
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            (None | Some('"'), '\\') => rest = rest.get(1..).unwrap_or_default(),
            _ => {}
        }
        let next = rest.chars().next().map_or(0, char::len_utf8);
        rest = &rest[next..];
    }
    let first = text.split_whitespace().next()?;
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    first.split_once('=').filter(|(name, _)| is_name(name)).map(|_| first.to_owned())
}

/// The name of the first `{name}` in a word that is no placeholder; `${name}` is the shell's.
fn unknown_placeholder(word: &str) -> Option<&str> {
    word.match_indices('{').find_map(|(at, _)| {
        let name = &word[at + 1..at + 1 + word[at + 1..].find('}')?];
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && name.starts_with(|c: char| c.is_ascii_alphabetic());
        (plain && !word[..at].ends_with('$') && !PLACEHOLDERS.contains(&name)).then_some(name)
    })
}

/// Replaces each `{name}`. Other braces stay, and inserted text is not scanned again.
fn fill_placeholders(word: &str, values: &[(&str, &dyn Display)]) -> String {
    let mut out = String::new();
    let mut rest = word;
    while let Some(start) = rest.find('{') {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        let hit = values
            .iter()
            .find(|(name, _)| rest[1..].strip_prefix(name).is_some_and(|after| after.starts_with('}')));
        match hit {
            Some((name, value)) => {
                out.push_str(&value.to_string());
                rest = &rest[name.len() + 2..];
            }
            None => {
                out.push('{');
                rest = &rest[1..];
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Monitor;

    fn command(text: &str) -> UserCommand {
        UserCommand::parse(text, SecondsFrom::Stdout).unwrap()
    }

    #[test]
    fn words_are_split_first_and_filled_then() {
        let words =
            command("prog '{size} x' {processor}-{rank} {share}{size} {from}:{to}:{piece} '{print $1}' {}");
        let filled = |command: &UserCommand, name: &str, units| {
            let processor = &Processor::named(name);
            command.words_of(&CommandRun { processor, rank: 3, piece: 5, units })
        };
        assert_eq!(
            filled(&words, "a b; rm {size}", 1e9..3e9),
            [
                "prog",
                "2000000000 x",
                "a b; rm {size}-3",
                "20000000002000000000",
                "1000000000:3000000000:5",
                "{print $1}",
                "{}"
            ]
        );
        assert_eq!(filled(&command("p {size}"), "p", 0.0..0.5), ["p", "0.5"]);
        for bad in ["", "   ", "'' {size}", "solver", "solver '{size}", "solver {from}"] {
            assert_eq!(UserCommand::parse(bad, SecondsFrom::Wall).unwrap_err().exit_code(), 2, "{bad}");
        }
        let given = ["./my prog", "{share}"].map(String::from);
        let command = UserCommand::of_words(&given, SecondsFrom::Wall).unwrap();
        assert_eq!(UserCommand::parse(command.text(), SecondsFrom::Wall).unwrap(), command);
        assert!(UserCommand::of_words(&[], SecondsFrom::Wall).is_err());
    }

    #[test]
    fn shell_syntax_is_refused_unless_a_shell_runs() {
        for (text, syntax) in [
            ("./w {size} > out", ">"),
            ("./w {size} 2>>log", ">>"),
            ("./w {size} <in", "<"),
            ("./w {size} | wc", "|"),
            ("./w {size} || x", "||"),
            ("./w {size} && x", "&&"),
            ("./w {size}; x", ";"),
            ("./w {size} &", "&"),
            ("./w {size} $(date)", "$("),
            ("./w {size} `date`", "`"),
            ("./w 'a' \"b\" {size} > x", ">"),
            ("FOO=1 ./w {size}", "FOO=1"),
        ] {
            let error = UserCommand::parse(text, SecondsFrom::Wall).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{text}");
            let line = error.to_string();
            assert!(
                line.contains(&format!("\"{syntax}\" is for a shell")) && line.contains("`shell`"),
                "{line}"
            );
            assert!(UserCommand::of_shell(text, SecondsFrom::Wall).is_ok(), "{text}");
        }
        for text in [
            "sh -c 'a > b; c {size} `d` && e'",
            "./w \"{size};\\\"|\" \\> a=b --x=$HOME",
            "./w {size} # > a",
            "./a=b {size}",
        ] {
            assert!(UserCommand::parse(text, SecondsFrom::Wall).is_ok(), "{text}");
        }
        for (text, word) in
            [("./w {size} {processor}", "$APPORTION_PROCESSOR"), (" ", "no program"), ("x {foo}", "{foo}")]
        {
            let error = UserCommand::of_shell(text, SecondsFrom::Wall).unwrap_err();
            assert!(error.to_string().contains(word), "{error}");
        }
    }

    #[test]
    fn unknown_placeholders_are_refused() {
        let error = UserCommand::parse("p {size} {shares}", SecondsFrom::Wall).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("{shares}") && error.to_string().contains("{from}"), "{error}");
    }

    #[cfg(unix)]
    fn timed(
        text: &str,
        processor: &Processor,
        rank: usize,
        size: f64,
        halt: &StopSignal<'_>,
    ) -> Result<f64> {
        let task = CommandRun { processor, rank, piece: 0, units: 0.0..size };
        command(text).with_timeout(Some(5.0)).seconds(&task, halt).map_err(|failure| failure.error)
    }

    #[cfg(unix)]
    #[test]
    fn the_last_line_is_the_time_and_slowdown_multiplies_it() {
        let monitor = Monitor::new();
        let halt = StopSignal::new(&monitor);
        let slow = Processor { slowdown: 3.0, ..Processor::named("slow") };
        let run = |text: &str| timed(text, &slow, 1, 8.0, &halt);
        let shell = UserCommand::of_shell("x={size}; echo $x | cat", SecondsFrom::Stdout).unwrap();
        let task = CommandRun { processor: &slow, rank: 0, piece: 0, units: 0.0..8.0 };
        assert_eq!(shell.seconds(&task, &halt).map_err(|failure| failure.error).unwrap(), 24.0);
        assert_eq!(run("sh -c 'echo chatter; echo {size}e-1; echo'").unwrap(), 0.8 * 3.0);
        assert_eq!(run("sh -c 'echo $APPORTION_RANK$APPORTION_SIZE'").unwrap(), 18.0 * 3.0);
        for (text, code, word) in [
            ("sh -c 'echo oh dear >&2; exit 3 # {size}'", 1, "oh dear"),
            ("sh -c 'echo word {size}'", 1, "not a number"),
            ("sh -c 'true {size}'", 1, "printed nothing"),
            ("sh -c 'echo -{size}'", 1, "-8 seconds"),
            ("sh -c 'echo NaN # {size}'", 1, "NaN"),
            ("sh -c 'echo inf # {size}'", 1, "inf"),
            ("sh -c 'echo 0 # {size}'", 1, "a time of 0 "),
            ("sh -c 'kill -9 $$ # {size}'", 1, "signal: 9"),
            ("./no-such-program {size}", 2, "cannot start"),
        ] {
            let error = run(text).unwrap_err();
            assert_eq!(error.exit_code(), code, "{error}");
            assert!(error.to_string().contains(word) && !error.to_string().contains('\n'), "{error}");
        }
    }

    /// A time of other cores would be believed to be that of the processor.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_program_that_cannot_be_pinned_is_refused() {
        let monitor = Monitor::new();
        let halt = StopSignal::new(&monitor);
        let core = crate::platform::discover().cores[0].cpu;
        for cores in [vec![30_000], vec![core, 30_000]] {
            let p = Processor { cores, ..Processor::named("p") };
            let task = CommandRun { processor: &p, rank: 0, piece: 0, units: 0.0..7.0 };
            let failure = command("echo {size}").seconds(&task, &halt).err().unwrap();
            assert_eq!((failure.error.exit_code(), failure.reason), (2, None));
            let line = failure.error.to_string();
            assert!(line.contains("\"p\"") && line.contains("[30000] cannot be used here"), "{line}");
        }
        let p = Processor { cores: vec![core], ..Processor::named("p") };
        assert_eq!(timed("echo {size}", &p, 0, 2.0, &halt).unwrap(), 2.0);
    }

    /// Background processes of a program hold its pipes, and must not block us.
    #[cfg(unix)]
    #[test]
    fn leftovers_are_ended() {
        let monitor = Monitor::new();
        let halt = StopSignal::new(&monitor);
        let p = Processor::named("p");
        assert_eq!(timed("sh -c 'sleep 3600 & echo {size}'", &p, 0, 2.0, &halt).unwrap(), 2.0);
        // A process in a session of its own escapes, but is not waited for.
        assert_eq!(timed("sh -c 'setsid sleep 20 & echo {size}'", &p, 0, 2.0, &halt).unwrap(), 2.0);
    }

    #[cfg(unix)]
    #[test]
    fn a_program_that_hangs_is_stopped_and_named() {
        let monitor = Monitor::new();
        let halt = StopSignal::new(&monitor);
        let p = Processor::named("p");
        let task = CommandRun { processor: &p, rank: 0, piece: 0, units: 0.0..3600.0 };
        let hanging = command("sh -c 'sleep {size} & wait'").with_timeout(Some(0.05));
        let failure = hanging.seconds(&task, &halt).err().unwrap();
        assert_eq!((failure.error.exit_code(), failure.reason), (1, None));
        let line = failure.error.to_string();
        assert!(line.contains("\"p\"") && line.contains("50.0 ms") && line.contains("`timeout`"), "{line}");
    }

    #[cfg(unix)]
    #[test]
    fn every_line_is_passed_on() {
        let monitor = Monitor::new();
        let halt = StopSignal::new(&monitor);
        let p = Processor::named("p");
        let task = CommandRun { processor: &p, rank: 0, piece: 0, units: 0.0..7.0 };
        let heard = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let ours = std::sync::Arc::clone(&heard);
        let lines = std::sync::Arc::new(move |line: &str| ours.lock().unwrap().push(line.to_owned()));
        let text = "sh -c 'printf \"a\\n\\nb\"; sleep 0.1; echo c; printf {size}'";
        assert!(command(text).execute(&task, &Listeners::of_lines(lines), &halt).is_ok());
        assert_eq!(*heard.lock().unwrap(), ["a", "", "bc", "7"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_stopped_run_ends_its_program() {
        let monitor = Monitor::new();
        let halt = StopSignal::new(&monitor);
        std::thread::scope(|scope| {
            let run = scope.spawn(|| {
                let text = "sh -c 'sleep {size} & wait'";
                let p = Processor::named("p");
                let task = CommandRun { processor: &p, rank: 0, piece: 0, units: 0.0..3600.0 };
                command(text).seconds(&task, &halt).map_err(|failure| failure.error)
            });
            std::thread::sleep(Duration::from_millis(50));
            monitor.stop();
            assert!(matches!(run.join().unwrap(), Err(Error::Interrupted)));
        });
    }

    #[test]
    fn only_plain_names_are_placeholders() {
        for (word, name) in [("{n}", Some("n")), ("x{foo_1}y{size}", Some("foo_1")), ("{a}{", Some("a"))] {
            assert_eq!(unknown_placeholder(word), name, "{word}");
        }
        for word in
            ["{size}{to}{rank}", "${HOME}", "{}", "{ n }", "{1}", "{a,b}", "{print $1}", "}{", "{\u{e9}}"]
        {
            assert_eq!(unknown_placeholder(word), None, "{word}");
        }
    }
}
