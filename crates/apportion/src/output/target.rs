//! Where a name leads, so that two names of one file are recognised.

use super::links::follow;
use crate::files::{duplicate, input_descriptor, output_descriptor};
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};

/// One of the identities of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A descriptor of this process.
    Descriptor(u32),
    /// A regular file or a pipe, under whatever name: its device and its inode.
    Inode([u64; 2]),
    /// A name in a directory, without links.
    Name {
        /// The directory.
        directory: PathBuf,
        /// The name in it.
        name: String,
    },
}

/// Where the name of an output (or of an input) leads, also if the file is not there yet. Devices such as
/// `/dev/null` have no identity: they take any number of outputs. Names that cannot be followed have none.
pub fn targets(path: &Path, output: bool) -> Vec<Target> {
    let number = if output { output_descriptor(path) } else { input_descriptor(path) };
    if let Some(number) = number {
        let open = duplicate(number).and_then(|file| file.metadata()).ok();
        return [Some(Target::Descriptor(number)), open.as_ref().and_then(inode)]
            .into_iter()
            .flatten()
            .collect();
    }
    let found = fs::metadata(path).ok();
    if found.as_ref().is_some_and(|found| inode(found).is_none() && cfg!(unix)) {
        return Vec::new();
    }
    let mut all: Vec<Target> = found.as_ref().and_then(inode).into_iter().collect();
    let Ok(end) = follow(path) else { return all };
    let parent = end.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if let (Ok(directory), Some(name)) = (parent.canonicalize(), end.file_name()) {
        all.push(Target::Name { directory, name: name.to_string_lossy().into_owned() });
    }
    all
}

/// The identity of a file that takes one output only.
#[cfg(unix)]
fn inode(found: &Metadata) -> Option<Target> {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    let takes_one = found.is_file() || found.file_type().is_fifo();
    takes_one.then(|| Target::Inode([found.dev(), found.ino()]))
}

#[cfg(not(unix))]
fn inode(_: &Metadata) -> Option<Target> {
    None
}

/// True if both describe one file.
pub(super) fn is_same(a: &Metadata, b: &Metadata) -> bool {
    inode(a).is_some() && inode(a) == inode(b)
}
