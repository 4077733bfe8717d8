//! The memory of this process, and what it may still take: what the host has free, and what limits leave.

use crate::ControlGroups;
use crate::system_files::read_kib;
use std::fs;
use std::path::Path;

/// Bytes of memory that this process may take now without swapping: the least of what the machine has
/// available, what its control groups leave, and what its limit of address space (`ulimit -v`) leaves;
/// `None` if unknown. Outside Linux nothing is known.
pub fn available_memory() -> Option<u64> {
    let machine = read_kib(Path::new("/proc/meminfo"), "MemAvailable:");
    let groups = ControlGroups::of_process(Path::new("/")).memory_left();
    [machine, groups, left_by_limit()].into_iter().flatten().min()
}

/// What the limit of address space leaves.
#[cfg(target_os = "linux")]
fn left_by_limit() -> Option<u64> {
    let most = rustix::process::getrlimit(rustix::process::Resource::As).current?;
    Some(most.saturating_sub(read_kib(Path::new("/proc/self/status"), "VmSize:")?))
}

#[cfg(not(target_os = "linux"))]
fn left_by_limit() -> Option<u64> {
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
        }
        for parameter in [M_TRIM_THRESHOLD, M_MMAP_THRESHOLD] {
            let _ = mallopt(parameter, bytes.min(32 << 20) as i32);
        }
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

    #[cfg(target_os = "linux")]
    #[test]
    fn no_more_than_the_machine_has() {
        let free = available_memory().unwrap();
        assert!(free <= read_kib(Path::new("/proc/meminfo"), "MemTotal:").unwrap());
    }
}
