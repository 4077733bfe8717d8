//! The program under attack: where it is, and how it is run within a time limit.

use rustix::process::Pid;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The longest that any command of the campaign may take before it counts as hanging.
const LONGEST: Duration = Duration::from_secs(60);

/// The program.
#[derive(Debug)]
pub struct Tool {
    binary: PathBuf,
}

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    /// The exit code; `None` after a signal.
    pub code: Option<i32>,
    pub said: String,
}

impl Tool {
    /// The program, by default the one beside this program.
    pub fn new(binary: Option<PathBuf>) -> Result<Self, String> {
        let binary = match binary {
            Some(binary) => binary,
            None => {
                let own = std::env::current_exe().map_err(|e| e.to_string())?;
                own.with_file_name("apportion")
            }
        };
        let found = binary.canonicalize();
        let binary = found.map_err(|e| {
            format!("{}: {e}: build it with cargo build --release -p apportion-cli", binary.display())
        })?;
        Ok(Self { binary })
    }

    /// A command in a directory, with a cache of its own beside it.
    pub fn command(&self, directory: &Path, words: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(words).current_dir(directory).env("XDG_CACHE_HOME", directory.join("cache"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    /// The same with several processes under Open MPI's mpirun.
    pub fn command_under(&self, mpirun: &str, processes: usize, directory: &Path, words: &[&str]) -> Command {
        let mut command = Command::new(mpirun);
        command.args(["--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n"]);
        command.arg(processes.to_string()).arg(&self.binary).args(words);
        command.current_dir(directory).env("XDG_CACHE_HOME", directory.join("cache"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    /// Runs to the end; an error if it hangs.
    pub fn run(&self, directory: &Path, words: &[&str]) -> Result<Ended, String> {
        ended(self.command(directory, words), words)
    }

    /// The same, for commands that must succeed.
    pub fn must(&self, directory: &Path, words: &[&str]) -> Result<(), String> {
        let ended = self.run(directory, words)?;
        if ended.code == Some(0) {
            Ok(())
        } else {
            Err(format!("apportion {}: {}", words.join(" "), ended.said))
        }
    }
}

/// Waits for a command; an error if it hangs.
pub fn ended(mut command: Command, words: &[&str]) -> Result<Ended, String> {
    let child = command.spawn().map_err(|e| format!("cannot start: {e}"))?;
    finish(child, words)
}

/// Waits for a started command.
pub fn finish(mut child: Child, words: &[&str]) -> Result<Ended, String> {
    let begun = Instant::now();
    let mut pipe = child.stderr.take();
    // Read beside the waiting: a full pipe would stop the child.
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(pipe) = &mut pipe {
            let _ = std::io::Read::read_to_end(pipe, &mut text);
        }
        String::from_utf8_lossy(&text).into_owned()
    });
    loop {
        match child.try_wait().map_err(|e| e.to_string())? {
            Some(status) => {
                let said = reader.join().unwrap_or_default();
                return Ok(Ended { code: status.code(), said });
            }
            None if begun.elapsed() > LONGEST => {
                let alone = is_launcher_alone(child.id());
                let _ = child.kill();
                let _ = child.wait();
                if alone {
                    return Ok(Ended { code: None, said: reader.join().unwrap_or_default() });
                }
                return Err(format!("apportion {} hangs", words.join(" ")));
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    }
}

/// True for an mpirun whose processes have all ended: that of Open MPI 4.1 waits forever at times after they
/// have failed, which is no defect of theirs.
fn is_launcher_alone(id: u32) -> bool {
    let name = std::fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
    let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    let lives = |child: &str| {
        let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
    };
    (name.starts_with("mpirun") || name.starts_with("orterun")) && !children.split_whitespace().any(lives)
}

/// The processes that work in a directory.
pub fn processes_in(directory: &Path) -> Vec<Pid> {
    let here = directory.canonicalize().unwrap_or_else(|_| directory.to_path_buf());
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let works_there = |entry: std::fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw)?;
        (std::fs::read_link(entry.path().join("cwd")).ok()? == here).then_some(pid)
    };
    entries.filter_map(works_there).collect()
}

/// True if no process works in a directory any more: those that were killed take a moment.
pub fn all_end_in(directory: &Path) -> bool {
    let gone = || processes_in(directory).is_empty();
    (0..20).any(|_| {
        gone() || {
            std::thread::sleep(Duration::from_millis(2));
            false
        }
    })
}

/// The name of Open MPI's mpirun, if it is installed.
pub fn mpirun() -> Option<&'static str> {
    ["mpirun.openmpi", "mpirun"].into_iter().find(|program| {
        let said = Command::new(program).arg("--version").stderr(Stdio::null()).output();
        said.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("Open MPI"))
    })
}

/// Builds a library from a C file beside this one. The reason why not, if there is no compiler.
pub fn built(source: &str, library: &Path, arguments: &[&str]) -> Result<Option<String>, String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(source);
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O2", "-o"]).args([library, &source]).args(arguments);
    match compiler.status() {
        Ok(status) if status.success() => Ok(None),
        Ok(status) => Err(format!("cc cannot build {}: {status}", source.display())),
        Err(e) => Ok(Some(format!("no C compiler: cc: {e}"))),
    }
}

impl Ended {
    /// Checks the rules of an end: exit code 0, 1 or 2, no signal, and exactly one line of error, the last
    /// one, that is no internal one. Notes may stand before it.
    pub fn is_orderly(&self) -> Result<(), String> {
        let is_error = |line: &&str| line.starts_with("apportion: ");
        let errors = self.said.lines().filter(is_error).count();
        match self.code {
            Some(0) if errors == 0 => Ok(()),
            Some(0) => Err(format!("an error, but exit code 0: {}", self.said)),
            Some(1 | 2) if self.said.contains("internal error") => {
                Err(format!("internal error: {}", self.said))
            }
            Some(1 | 2) if errors != 1 => Err(format!("{errors} lines of error: {}", self.said)),
            Some(1 | 2)
                if self.said.lines().rfind(|line| !is_of_system(line)).is_none_or(|l| !is_error(&l)) =>
            {
                Err(format!("text after the error: {}", self.said))
            }
            Some(1 | 2) => Ok(()),
            code => Err(format!("ended with {code:?}: {}", self.said)),
        }
    }
}

/// True for what the C library or Rust's says about a thread that is refused memory while another thread
/// already ends the process for that reason.
fn is_of_system(line: &str) -> bool {
    let starts = ["Fatal glibc error: ", "memory allocation of ", "note: run with `RUST_BACKTRACE"];
    line.is_empty() || starts.iter().any(|start| line.starts_with(start))
}
