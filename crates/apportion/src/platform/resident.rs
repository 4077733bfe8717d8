//! The memory of this process, as the operating system reports it.

/// Resets the peak of [`peak_memory`], if the system can; otherwise the peak counts from the start of the
/// process.
pub fn forget_peak_memory() {
    // Linux: "5" resets the peak of the resident set, and nothing else.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
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
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}
