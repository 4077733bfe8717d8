//! The system's signals, apart from Ctrl-C and SIGTERM: how the process handles or ignores each.

#![allow(unsafe_code)]

/// Raised when the standard library cannot allocate memory.
#[cfg(unix)]
pub const SIGABRT: i32 = 6;
#[cfg(unix)]
const SIGHUP: i32 = 1;
/// Raised, beside the write's error, when a file exceeds its size limit (`ulimit -f`).
#[cfg(unix)]
const SIGXFSZ: i32 = if cfg!(any(target_arch = "mips", target_arch = "mips64")) { 31 } else { 25 };
#[cfg(unix)]
const DEFAULT: usize = 0;
#[cfg(unix)]
const IGNORED: usize = 1;

#[cfg(unix)]
unsafe extern "C" {
    safe fn signal(number: i32, handler: usize) -> usize;
}

/// Installs a handler.
#[cfg(unix)]
pub fn handle(number: i32, handler: extern "C" fn(i32)) {
    signal(number, handler as *const () as usize);
}

/// Makes a file that exceeds its size limit an error of the write instead of the end of the process.
///
/// The signal is handled rather than ignored: programs that this process starts get the default again.
pub fn prepare() {
    #[cfg(unix)]
    {
        extern "C" fn unheeded(_: i32) {}
        handle(SIGXFSZ, unheeded);
    }
}

/// Calls `install`, which sets handlers, and keeps SIGHUP ignored if it was: `nohup` relies on that.
pub fn keeping_nohup(install: impl FnOnce()) {
    #[cfg(unix)]
    {
        let before = signal(SIGHUP, IGNORED);
        if before != IGNORED {
            signal(SIGHUP, DEFAULT);
        }
        install();
        if before == IGNORED {
            signal(SIGHUP, IGNORED);
        }
    }
    #[cfg(not(unix))]
    install();
}
