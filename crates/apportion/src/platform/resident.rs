//! The memory of this process, as the operating system reports it.

/// Resets the peak of [`peak_memory`], if the system can; otherwise the peak counts from the start of the
/// process.
pub fn forget_peak_memory() {
    // Linux: "5" resets the peak of the resident set, and nothing else.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// The largest number of bytes of memory that this process has held at once, including code and mapped files;
/// `None` if the system does not report it.
pub fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}
