//! Signals of the system, beside Ctrl-C and its like: which the process ignores, and who handles the others.

#![allow(unsafe_code)]

/// Sent where the standard library takes memory from the system and is refused.
#[cfg(unix)]
pub const SIGABRT: i32 = 6;
#[cfg(unix)]
const SIGHUP: i32 = 1;
/// Sent with the error of a write beyond the limit of a file's size (`ulimit -f`).
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

/// A function is called on this signal from now on.
#[cfg(unix)]
pub fn handle(number: i32, handler: extern "C" fn(i32)) {
    signal(number, handler as *const () as usize);
}

/// At the beginning: a file that reaches the limit of its size is an error of the write, not the end.
pub fn prepare() {
    #[cfg(unix)]
    signal(SIGXFSZ, IGNORED);
}

/// Calls `install`, which sets handlers, and ignores SIGHUP afterwards if it was ignored before: `nohup` asks
/// for that.
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
