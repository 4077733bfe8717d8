//! The system's signals: which of them end the process, and how each is handled or ignored.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicI32, Ordering};

/// Raised when the standard library cannot allocate memory.
#[cfg(unix)]
pub const SIGABRT: i32 = 6;
/// Raised, beside the write's error, when a file exceeds its size limit (`ulimit -f`).
#[cfg(unix)]
const SIGXFSZ: i32 = if cfg!(any(target_arch = "mips", target_arch = "mips64")) { 31 } else { 25 };
#[cfg(unix)]
const IGNORED: usize = 1;

#[cfg(unix)]
unsafe extern "C" {
    safe fn signal(number: i32, handler: usize) -> usize;
    safe fn _exit(code: i32) -> !;
}

/// Ends the process without what is due at a normal end: libraries that were loaded join their threads there, which may
/// wait for ever, as those of OpenBLAS for memory that is refused. Everything is written by then.
pub fn leave(code: u8) -> ! {
    #[cfg(unix)]
    _exit(code.into());
    #[cfg(not(unix))]
    std::process::exit(code.into())
}

/// Installs a handler, and returns the previous one.
#[cfg(unix)]
pub fn handle(number: i32, handler: extern "C" fn(i32)) -> usize {
    signal(number, handler as *const () as usize)
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

/// The first signal that asked the process to end; 0 if none has.
static RECEIVED: AtomicI32 = AtomicI32::new(0);

/// The exit code by convention of a process that a signal has ended, 128 plus the signal's number; `None` if
/// no signal came.
pub fn exit_code() -> Option<u8> {
    match RECEIVED.load(Ordering::SeqCst) {
        0 => None,
        number => u8::try_from(128 + number).ok(),
    }
}

/// Calls a function, on a thread of its own, for each signal that asks the process to end: Ctrl-C, SIGTERM,
/// and the others whose default would end it without cleaning up. A signal that is ignored already stays
/// ignored, as under `nohup` or in a script's background job. If the system refuses the thread, signals end
/// the process at once: results are still correct, but temporary files may remain.
#[cfg(unix)]
pub fn on_end(mut asked: impl FnMut() + Send + 'static) {
    use rustix::process::Signal;
    use std::io::{ErrorKind, Read};
    use std::os::fd::IntoRawFd;

    const ENDING: [Signal; 8] = [
        Signal::HUP,
        Signal::INT,
        Signal::QUIT,
        Signal::USR1,
        Signal::USR2,
        Signal::ALARM,
        Signal::TERM,
        Signal::XCPU,
    ];
    /// The end of a pipe that wakes the thread.
    static WAKE: AtomicI32 = AtomicI32::new(-1);

    extern "C" fn received(number: i32) {
        unsafe extern "C" {
            fn write(file: i32, from: *const u8, bytes: usize) -> isize;
        }
        let _ = RECEIVED.compare_exchange(0, number, Ordering::SeqCst, Ordering::SeqCst);
        // SAFETY: one byte is read from a byte that lives. `write` may be called in a handler.
        let _ = unsafe { write(WAKE.load(Ordering::SeqCst), &raw const ONE, 1) };
    }
    static ONE: u8 = 1;

    let Ok((mut wakes, wake)) = std::io::pipe() else { return };
    WAKE.store(wake.into_raw_fd(), Ordering::SeqCst);
    let started = std::thread::Builder::new().spawn(move || {
        loop {
            match wakes.read(&mut [0]) {
                Ok(1) => asked(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                _ => return,
            }
        }
    });
    if started.is_err() {
        return;
    }
    for number in ENDING.map(Signal::as_raw) {
        if handle(number, received) == IGNORED {
            signal(number, IGNORED);
        }
    }
}

/// Calls a function for each Ctrl-C.
#[cfg(not(unix))]
pub fn on_end(mut asked: impl FnMut() + Send + 'static) {
    let _ = ctrlc::set_handler(move || {
        RECEIVED.store(2, Ordering::SeqCst);
        asked();
    });
}
