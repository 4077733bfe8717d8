//! The processor's caches: the size of the second level, and what is fetched into them before it is used.

#![allow(unsafe_code)]

use std::sync::OnceLock;

/// Bytes of a second-level cache, if the system does not say.
const SECOND_LEVEL: usize = 512 << 10;

/// Bytes of a core's second-level cache, from 256 KiB to 2 MiB.
pub fn second_level() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let told = std::fs::read_to_string("/sys/devices/system/cpu/cpu0/cache/index2/size");
        let kib = told.ok().and_then(|text| text.trim().strip_suffix('K')?.parse::<usize>().ok());
        kib.map_or(SECOND_LEVEL, |kib| kib << 10).clamp(SECOND_LEVEL / 2, 4 * SECOND_LEVEL)
    })
}

/// Prefetches the cache line at an address, which need not be valid.
#[inline(always)]
pub fn prefetch<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: SSE is part of x86-64, and a prefetch is a hint that never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
