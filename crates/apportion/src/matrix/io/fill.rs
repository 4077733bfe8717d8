//! Bytes of a file at a place, read by several threads where they are many: one core alone copies them from
//! the system's cache more slowly than memory could take them.

use std::fs::File;
use std::io::Result;

/// Bytes that a thread reads at a time.
#[cfg(any(unix, test))]
const PART: usize = 8 << 20;
/// The most threads: more wait for the memory.
#[cfg(unix)]
const THREADS: usize = 4;

/// Fills `bytes` from the file's byte `place` on.
///
/// # Errors
/// The file is shorter, or another error of the operating system.
pub(super) fn fill(file: &mut File, place: u64, bytes: &mut [u8]) -> Result<()> {
    #[cfg(unix)]
    if bytes.len() >= 2 * PART {
        return together(file, place, bytes);
    }
    alone(file, place, bytes)
}

fn alone(file: &mut File, place: u64, bytes: &mut [u8]) -> Result<()> {
    use std::io::{Read, Seek, SeekFrom};
    file.seek(SeekFrom::Start(place))?;
    file.read_exact(bytes)
}

/// The error is that of the first part that fails.
#[cfg(unix)]
fn together(file: &File, place: u64, bytes: &mut [u8]) -> Result<()> {
    use std::os::unix::fs::FileExt;
    use std::sync::{Mutex, PoisonError};
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS);
    let failed = Mutex::new(None);
    let parts = bytes.chunks_mut(PART).enumerate().collect();
    crate::threads::share_out(parts, threads, |(i, part): (usize, &mut [u8])| {
        if let Err(error) = file.read_exact_at(part, place + (i * PART) as u64) {
            let mut first = failed.lock().unwrap_or_else(PoisonError::into_inner);
            if first.as_ref().is_none_or(|(known, _)| i < *known) {
                *first = Some((i, error));
            }
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    failed.map_or(Ok(()), |(_, error)| Err(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{ErrorKind, Write};

    #[test]
    fn many_bytes_are_those_of_the_file_and_too_many_are_an_error() {
        let mut file = tempfile::tempfile().unwrap();
        let content: Vec<u8> = (0..2 * PART + 1234).map(|i| (i % 251 + i / PART) as u8).collect();
        file.write_all(&content).unwrap();
        for (place, length) in [(0, 10), (77, 2 * PART), (5, 2 * PART + 1229), (2 * PART, 1234)] {
            let mut bytes = vec![0; length];
            fill(&mut file, place as u64, &mut bytes).unwrap();
            assert!(bytes == content[place..][..length], "{length} from {place}");
        }
        for (place, length) in [(6, 2 * PART + 1229), (2 * PART + 1230, 5)] {
            let error = fill(&mut file, place as u64, &mut vec![0; length]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
        }
    }
}
