//! A separate directory for each test, and the binary run in it.

use serde_json::Value;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A working directory; dereferences to its path, and is removed when dropped.
pub struct Bench {
    /// Holds `work` and, beside it, the cache.
    directory: TempDir,
    work: PathBuf,
}

impl Default for Bench {
    fn default() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        // Without links, as the system names a process's directory.
        let work = directory.path().canonicalize().expect("it exists").join("work");
        std::fs::create_dir(&work).expect("a new directory");
        Self { directory, work }
    }
}

impl Deref for Bench {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.work
    }
}

/// The words of a command line: a list of them, or one text with blanks between words and single quotes
/// around words that hold blanks.
pub trait Words {
    /// The words, one by one.
    fn words(&self) -> Vec<String>;
}

impl Words for str {
    fn words(&self) -> Vec<String> {
        let part = |(i, part): (usize, &str)| match i % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        };
        self.split('\'').enumerate().flat_map(part).collect()
    }
}

impl Words for String {
    fn words(&self) -> Vec<String> {
        self.as_str().words()
    }
}

impl<W: Words + ?Sized> Words for &W {
    fn words(&self) -> Vec<String> {
        (*self).words()
    }
}

impl Words for [&str] {
    fn words(&self) -> Vec<String> {
        self.iter().map(|word| (*word).to_owned()).collect()
    }
}

impl<const N: usize> Words for [&str; N] {
    fn words(&self) -> Vec<String> {
        self[..].words()
    }
}

impl Words for Vec<&str> {
    fn words(&self) -> Vec<String> {
        self[..].words()
    }
}

/// The binary `apportion`, which cargo builds beside the folder of the test binaries.
pub fn binary() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    let folder = test.parent().and_then(Path::parent).expect("target/<profile>/deps/<test>");
    folder.join("apportion").with_extension(std::env::consts::EXE_EXTENSION)
}

impl Bench {
    /// An empty directory.
    pub fn new() -> Self {
        Self::default()
    }

    /// The path of a file here.
    pub fn path(&self, name: &str) -> PathBuf {
        self.work.join(name)
    }

    /// The cache that the binary uses.
    pub fn cache(&self) -> PathBuf {
        self.directory.path().join("cache")
    }

    /// The binary, in this directory, with a cache of its own.
    pub fn command(&self, arguments: &(impl Words + ?Sized)) -> Command {
        let mut command = Command::new(binary());
        command
            .args(arguments.words())
            .current_dir(&self.work)
            .env("XDG_CACHE_HOME", self.cache())
            .stdin(Stdio::null());
        command
    }

    /// Runs the binary.
    pub fn run(&self, arguments: &(impl Words + ?Sized)) -> Output {
        self.command(arguments).output().expect("the binary starts")
    }

    /// Runs a command that must succeed; returns its stdout.
    pub fn done(&self, arguments: &(impl Words + ?Sized)) -> String {
        let output = self.run(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{:?}: {:?} {stderr}", arguments.words(), output.status.code());
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// Runs a command that must succeed with `--json`; stdout is one object and nothing else.
    pub fn json(&self, arguments: &(impl Words + ?Sized)) -> Value {
        let words = arguments.words();
        let words: Vec<&str> = words.iter().map(String::as_str).chain(["--json"]).collect();
        object(&self.run(&words))
    }

    /// Runs a command that must fail with this exit code and one line on stderr; stdout is empty, and no file
    /// is new or changed.
    pub fn fails(&self, code: i32, arguments: &(impl Words + ?Sized)) -> String {
        let (before, words) = (self.files(), arguments.words());
        let output = self.run(arguments);
        let stderr = without_progress(&String::from_utf8(output.stderr).expect("UTF-8"));
        assert_eq!(output.status.code(), Some(code), "{words:?}: {stderr}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{words:?}");
        assert!(stderr.ends_with('\n') && stderr.lines().count() == 1, "{words:?}: {stderr:?}");
        assert!(stderr.starts_with("apportion: ") && !stderr.contains("internal error"), "{stderr}");
        assert!(self.files() == before, "{words:?} left something behind");
        stderr
    }

    /// Runs commands that must fail with exit code 2, as [`Bench::fails`], and a line that holds this word.
    pub fn refuses(&self, table: &[(&str, &str)]) {
        for (line, word) in table {
            let said = self.fails(2, line);
            assert!(said.contains(word), "{line}: {word} in {said}");
        }
    }

    /// Every file in the directory with its content, including hidden ones; pipes, devices and links to them
    /// have none.
    pub fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        let mut folders = vec![self.work.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten() {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path)
                } else if path.is_file() {
                    found.push((path.clone(), std::fs::read(&path).expect("a file that can be read")))
                } else {
                    found.push((path, Vec::new()))
                }
            }
        }
        found.sort();
        found
    }

    /// The names of all entries of the directory, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.work).expect("the directory");
        let mut names: Vec<String> =
            entries.map(|e| e.expect("an entry").file_name().into_string().expect("UTF-8")).collect();
        names.sort();
        names
    }

    /// Writes a file.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).expect("a file is written");
    }

    /// Writes an executable file.
    #[cfg(unix)]
    pub fn program(&self, name: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt as _;
        self.write(name, text);
        let all = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(self.path(name), all).expect("permissions are set");
    }

    /// The bytes of a file.
    pub fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Removes a file.
    pub fn remove(&self, name: &str) {
        std::fs::remove_file(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    }

    /// The text of a file.
    pub fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The JSON in a file.
    pub fn value(&self, name: &str) -> Value {
        serde_json::from_str(&self.text(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// True if there is a file of this name.
    pub fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }
}

/// Asserts that a text holds all of these words.
pub fn holds(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word} in {text}");
    }
}

/// What was printed on stderr, without the lines that long work prints from time to time: a busy machine
/// makes any work long.
pub fn without_progress(stderr: &str) -> String {
    let progress = |line: &str| line.contains(": ") && line.contains("after ") && line.ends_with(" s\n");
    stderr.split_inclusive('\n').filter(|line| !progress(line)).collect()
}

/// The one JSON object that a successful call printed on stdout.
pub fn object(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let value: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stdout)));
    assert!(value.is_object(), "{value}");
    value
}
