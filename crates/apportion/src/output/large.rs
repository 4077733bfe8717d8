//! Many bytes, which go to the disk while they are written: the wait for it at the end is shorter.

use crate::threads;
use std::fs::File;
use std::io::{Result, Write};

/// Bytes that are many.
pub(super) const MANY: usize = 64 << 20;

/// Appends the bytes. While the second half is copied to the system, the first goes to the disk.
///
/// # Errors
/// The disk is full, or another error of the operating system.
pub(super) fn append(mut file: &File, bytes: &[u8]) -> Result<()> {
    let (first, second) = bytes.split_at(bytes.len() / 2);
    file.write_all(first)?;
    threads::scope(|scope| {
        let helper = threads::start(scope, move || file.sync_data());
        file.write_all(second)?;
        // Without a thread, all goes to the disk at the end. What failed here is not told again there.
        helper.map_or(Ok(()), |helper| helper.join().expect("bringing data to the disk does not panic"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_follow_each_other() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let bytes: Vec<u8> = (0..99_999).map(|i| (i % 251) as u8).collect();
        append(file.as_file(), &bytes[..50_001]).unwrap();
        append(file.as_file(), &bytes[50_001..]).unwrap();
        assert!(std::fs::read(file.path()).unwrap() == bytes);
        #[cfg(unix)]
        assert!(append(&File::open(file.path()).unwrap(), &bytes).is_err());
    }
}
