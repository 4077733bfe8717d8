//! Files in which Linux describes the machine and a process: those of `/proc` and `/sys`, or a recording of
//! them.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// Bytes that are read of a file. Those of a machine of thousands of processors have fewer, but for
/// `/proc/cpuinfo`, whose first entry suffices.
const LONGEST: u64 = 4 << 20;

/// The text of a file, its first 4 MiB if it is longer. `None` if it cannot be read or is no regular file: a
/// pipe in a recording would be waited for.
pub fn read_system_file(path: &Path) -> Option<String> {
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(LONGEST).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// A field that a file has in KiB (`MemTotal:` of `/proc/meminfo`), in bytes.
pub fn read_kib(path: &Path, field: &str) -> Option<u64> {
    let text = read_system_file(path)?;
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_file_is_read_without_waiting() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, b"MemTotal: 3 kB\n\xff\n").unwrap();
        assert!(read_system_file(&path).unwrap().ends_with("\u{fffd}\n"));
        assert_eq!(read_kib(&path, "MemTotal:"), Some(3072));
        assert_eq!(read_kib(&path, "MemFree:"), None);
        fs::write(&path, "MemTotal: 18446744073709551615 kB").unwrap();
        assert_eq!(read_kib(&path, "MemTotal:"), None);
        fs::write(&path, vec![b'x'; LONGEST as usize + 9]).unwrap();
        assert_eq!(read_system_file(&path).unwrap().len() as u64, LONGEST);
        assert_eq!(read_system_file(directory.path()), None);
        #[cfg(target_os = "linux")]
        {
            let pipe = directory.path().join("pipe");
            assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
            assert_eq!(read_system_file(&pipe), None);
            assert_eq!(read_system_file(Path::new("/dev/zero")), None);
        }
    }
}
