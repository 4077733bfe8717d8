//! Symbolic links in the names of outputs, followed as the system itself would.

use crate::error::{Error, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// Links that are followed before a chain is called endless, as Linux does.
const LONGEST_CHAIN: usize = 40;

/// The end of a chain of symbolic links, which need not exist.
///
/// # Errors
/// Exit code 2: the chain does not end, or it passes a link that another user left in a directory that
/// everybody may write to, such as `/tmp`. Linux refuses to write through those where
/// `fs.protected_symlinks` is set; a rename would not notice.
pub(super) fn follow(path: &Path) -> Result<PathBuf> {
    let place = path.display().to_string();
    let mut target = path.to_path_buf();
    for _ in 0..LONGEST_CHAIN {
        let Ok(next) = fs::read_link(&target) else {
            return Ok(target);
        };
        if is_foreign(&target) {
            let what = format!("{} is a link that another user left in a shared directory", target.display());
            return Err(Error::input(place, what, "remove the link, or write elsewhere"));
        }
        // A relative link is relative to its own directory.
        target = target.parent().unwrap_or(Path::new("")).join(next);
    }
    Err(Error::input(place, "is a symbolic link that leads to itself", "remove the link, or write elsewhere"))
}

/// True for a link in a sticky directory that others may write to, which belongs neither to this user nor to
/// the directory's owner: the rule of `fs.protected_symlinks`.
#[cfg(unix)]
fn is_foreign(link: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    /// Sticky, and writable by all.
    const SHARED: u32 = 0o1002;
    let directory = match link.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let (Ok(link), Ok(directory)) = (fs::symlink_metadata(link), fs::metadata(directory)) else {
        return false;
    };
    let ours = [rustix::process::geteuid().as_raw(), directory.uid()];
    directory.mode() & SHARED == SHARED && !ours.contains(&link.uid())
}

#[cfg(not(unix))]
fn is_foreign(_link: &Path) -> bool {
    false
}
