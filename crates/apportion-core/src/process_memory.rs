//! The memory of this process, and what it may still take: what the host has free, and what limits leave.

use crate::ControlGroups;
use crate::error::{Error, Result};
use crate::system_files::read_kib;
use crate::units::show_bytes;
use std::fmt;
use std::fs;
use std::path::Path;

/// What limits the memory of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryLimit {
    /// The machine has no more available without swapping.
    Machine,
    /// Its control groups, as of a container or a batch job.
    ControlGroup,
    /// Its limit of address space (`ulimit -v`).
    AddressSpace,
    /// Its limit of data (`ulimit -d`).
    Data,
}

impl MemoryLimit {
    /// True for a limit of addresses, whether or not there is memory behind them.
    pub fn is_of_process(self) -> bool {
        matches!(self, Self::AddressSpace | Self::Data)
    }
}

impl fmt::Display for MemoryLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Machine => "left on this machine",
            Self::ControlGroup => "left by the limit of the control group (container or job)",
            Self::AddressSpace => "left by the limit of address space (ulimit -v)",
            Self::Data => "left by the limit of data (ulimit -d)",
        })
    }
}

/// The memory that a process may still take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryLeft {
    /// Bytes.
    pub bytes: u64,
    /// What allows no more.
    pub limit: MemoryLimit,
}

/// The most that a computation takes besides its matrices: stacks of threads, what kernels pack, what is read and
/// written at once. A small one takes less.
const BESIDES: u64 = 12 << 20;

impl MemoryLeft {
    /// What this process may take now without swapping: the least of what the machine has available, what its
    /// control groups leave, and what its limits of address space and of data leave; `None` if unknown. Outside
    /// Linux nothing is known.
    pub fn now() -> Option<Self> {
        Self::of_process(Path::new("/"), [address_space_limit(), data_limit()])
    }

    /// The same on the machine whose files are under `root`, with limits of address space and of data.
    fn of_process(root: &Path, [address_space, data]: [Option<u64>; 2]) -> Option<Self> {
        let used = |field: &str| read_kib(&root.join("proc/self/status"), field);
        let left_of =
            |most: Option<u64>, field: &str| most.and_then(|most| Some(most.saturating_sub(used(field)?)));
        let all = [
            (read_kib(&root.join("proc/meminfo"), "MemAvailable:"), MemoryLimit::Machine),
            (ControlGroups::of_process(root).memory_left(), MemoryLimit::ControlGroup),
            (left_of(address_space, "VmSize:"), MemoryLimit::AddressSpace),
            (left_of(data, "VmData:"), MemoryLimit::Data),
        ];
        let known = all.into_iter().filter_map(|(bytes, limit)| Some(Self { bytes: bytes?, limit }));
        known.min_by_key(|left| left.bytes)
    }

    /// Whether matrices of so many bytes fit, with what their computation takes besides.
    pub fn fits(&self, bytes: u128) -> bool {
        bytes.saturating_add((bytes / 8).min(u128::from(BESIDES))) <= u128::from(self.bytes)
    }

    /// `72.0 MB, more than is free: 40.0 MB left on this machine`, of a need.
    pub fn beside(&self, bytes: u128) -> String {
        let [need, left] = [bytes as f64, self.bytes as f64].map(show_bytes);
        format!("{need}, more than is free: {left} {}", self.limit)
    }
}

/// Bytes of memory that this process may take now without swapping ([`MemoryLeft::now`]).
pub fn available_memory() -> Option<u64> {
    MemoryLeft::now().map(|left| left.bytes)
}

/// Bytes that all of this process may hold, what it holds already included, where it must be careful; `None` if
/// unknown.
pub fn memory_budget() -> Option<u64> {
    let held = read_kib(Path::new("/proc/self/status"), "VmRSS:")?;
    Some(held + available_memory()? / 8 * 7)
}

/// Refuses what does not fit the memory that this process may still take: the one question of every computation, before
/// it reads, measures or allocates. `what` needs so many bytes.
///
/// # Errors
/// Exit code 2, with the need and what limits it.
pub fn require_memory(place: &str, what: &str, bytes: u128, remedy: &str) -> Result<()> {
    match MemoryLeft::now() {
        Some(left) if !left.fits(bytes) => {
            Err(Error::input(place, format!("{what} needs {}", left.beside(bytes)), remedy))
        }
        _ => Ok(()),
    }
}

#[cfg(target_os = "linux")]
fn address_space_limit() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::As).current
}

#[cfg(target_os = "linux")]
fn data_limit() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Data).current
}

#[cfg(not(target_os = "linux"))]
fn address_space_limit() -> Option<u64> {
    None
}

#[cfg(not(target_os = "linux"))]
fn data_limit() -> Option<u64> {
    None
}

/// Bytes of a large page.
#[cfg(target_os = "linux")]
const LARGE: usize = 2 << 20;
/// A multiple of the bytes of a small page, which are 64 KiB at most.
#[cfg(target_os = "linux")]
const PAGE: usize = 64 << 10;

/// Asks the system for large pages behind elements that nobody has written to yet: matrices whose rows are far apart
/// otherwise need more translations of addresses than a processor keeps. Only for 2 MiB and more; elsewhere than on
/// Linux, and where the system refuses, nothing changes.
pub fn prefer_large_pages<T>(elements: &mut [T]) {
    #[cfg(target_os = "linux")]
    {
        use rustix::mm::{Advice, madvise};
        let bytes = size_of_val(elements);
        if bytes < LARGE {
            return;
        }
        let first = elements.as_mut_ptr().cast::<u8>();
        let before = first.align_offset(PAGE).min(bytes);
        let (first, whole) = (first.wrapping_add(before), (bytes - before) / PAGE * PAGE);
        // SAFETY: the pages are inside the elements, and the advice does not change what they hold.
        #[allow(unsafe_code)]
        let _ = unsafe { madvise(first.cast(), whole, Advice::LinuxHugepage) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = elements;
}

/// Resets the peak of [`peak_memory`], if the system can; otherwise the peak counts from the start of the
/// process.
pub fn forget_peak_memory() {
    // Linux: "5" resets the peak of the resident set, and nothing else.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// Makes the allocator return freed blocks of 128 KiB and more to the system at once. By default glibc keeps
/// blocks of up to 32 MiB in case they are needed again, half as much again as a product with little memory
/// holds. Elsewhere nothing changes.
pub fn return_freed_memory() {
    return_freed_blocks(128 << 10);
}

/// The same for blocks of at least this number of bytes, at most 32 MiB: smaller ones, which are needed again
/// and again, are kept.
pub fn return_freed_blocks(bytes: u32) {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // From glibc's malloc.h.
        const M_TRIM_THRESHOLD: i32 = -1;
        const M_MMAP_THRESHOLD: i32 = -3;
        #[allow(unsafe_code)]
        unsafe extern "C" {
            safe fn mallopt(parameter: i32, value: i32) -> i32;
            safe fn malloc_trim(pad: usize) -> i32;
        }
        for parameter in [M_TRIM_THRESHOLD, M_MMAP_THRESHOLD] {
            let _ = mallopt(parameter, bytes.min(32 << 20) as i32);
        }
        // What was freed before.
        let _ = malloc_trim(0);
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    let _ = bytes;
}

/// The largest number of bytes of memory that this process has held at once, including code and mapped files;
/// `None` if the system does not report it.
pub fn peak_memory() -> Option<u64> {
    read_kib(Path::new("/proc/self/status"), "VmHWM:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_limit_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let left = |limits| MemoryLeft::of_process(directory.path(), limits);
        assert_eq!(left([Some(1 << 30), None]), None);
        write("proc/meminfo", "MemTotal: 9000 kB\nMemAvailable: 5000 kB\n");
        write("proc/self/status", "VmSize:\t2000 kB\nVmData:\t 500 kB\n");
        let named = |kib: u64, limit| Some(MemoryLeft { bytes: kib << 10, limit });
        assert_eq!(left([None, None]), named(5000, MemoryLimit::Machine));
        assert_eq!(left([Some(6000 << 10), None]), named(4000, MemoryLimit::AddressSpace));
        assert_eq!(left([Some(6000 << 10), Some(4000 << 10)]), named(3500, MemoryLimit::Data));
        assert_eq!(left([Some(0), None]), named(0, MemoryLimit::AddressSpace));
        write("proc/self/cgroup", "0::/job\n");
        write("sys/fs/cgroup/job/memory.high", "2048000\n");
        write("sys/fs/cgroup/job/memory.current", "1024000\n");
        let tight = left([Some(6000 << 10), None]).unwrap();
        assert_eq!(Some(tight), named(1000, MemoryLimit::ControlGroup));
        assert!(tight.fits(900_000) && !tight.fits(1_000_000));
        assert!(
            tight
                .beside(2_000_000)
                .starts_with("2.0 MB, more than is free: 1.0 MB left by the limit of the control group")
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn no_more_than_the_machine_has() {
        let free = available_memory().unwrap();
        assert!(free <= read_kib(Path::new("/proc/meminfo"), "MemTotal:").unwrap());
    }
}
