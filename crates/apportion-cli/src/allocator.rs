//! Memory that is refused ends the command in order: one line, exit code 1, no temporary file left.
//!
//! Rust's own way is a message without a remedy and SIGABRT. Here the allocator itself ends the process,
//! wherever memory is refused and the caller does not ask for refusals to be told. Nothing here takes memory.
//!
//! Matrices are put on large pages where the system grants them on request, as NumPy's are: the first touch
//! of 128 MB then takes 64 faults instead of 31,250.

#![allow(unsafe_code)]

use apportion::measure::abandon_programs;
use apportion::memory::refusal_is_expected;
use apportion::output::abandon_now;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::Write as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: Ending = Ending;

/// The system's allocator; a refusal ends the process.
struct Ending;

// SAFETY: every call is passed on unchanged, and its result is returned or the process ends. Nothing unwinds.
unsafe impl GlobalAlloc for Ending {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise, for the same layout.
        granted(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise, for the same layout.
        granted(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller's promise, for the same memory, layout and size.
        granted(unsafe { System.realloc(memory, layout, bytes) }, bytes)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise, for the same memory and layout.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// The memory, unless it is null: the process ends then, unless the caller expects a refusal.
#[inline]
fn granted(memory: *mut u8, bytes: usize) -> *mut u8 {
    if memory.is_null() {
        if !refusal_is_expected() {
            end(bytes);
        }
    } else if bytes >= 2 * LARGE_PAGE {
        prefer_large_pages(memory, bytes);
    }
    memory
}

/// Bytes of a large page on most machines; on others the request is for a multiple or a part of one.
const LARGE_PAGE: usize = 2 << 20;

/// Asks the system to back the memory by large pages, which it may do or not.
#[cold]
fn prefer_large_pages(memory: *mut u8, bytes: usize) {
    #[cfg(target_os = "linux")]
    {
        unsafe extern "C" {
            fn madvise(memory: *mut std::ffi::c_void, bytes: usize, advice: i32) -> i32;
        }
        const MADV_HUGEPAGE: i32 = 14;
        let before = memory.addr().next_multiple_of(LARGE_PAGE) - memory.addr();
        let whole = bytes.saturating_sub(before) / LARGE_PAGE * LARGE_PAGE;
        // SAFETY: the pages lie within the memory, and the advice does not change what they hold. A refusal
        // has no consequence.
        let _ = unsafe { madvise(memory.wrapping_add(before).cast(), whole, MADV_HUGEPAGE) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (memory, bytes);
}

thread_local! {
    /// True if this thread ends the process. Neither initialised nor dropped at run time.
    static ENDS: Cell<bool> = const { Cell::new(false) };
}

/// This process in a job of several, as `rank 1 (beta)`.
static RANK: OnceLock<String> = OnceLock::new();

/// From now on the last words of this process begin with its rank.
pub fn name_rank(name: String) {
    let _ = RANK.set(name);
}

/// True if a thread ends the process.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Ends the process because an allocation of `bytes` bytes was refused.
#[cold]
fn end(bytes: usize) -> ! {
    ended(format_args!(
        "the system refuses {bytes} bytes of memory (free some, raise the limit of ulimit -v or of the container, or \
         use smaller inputs"
    ))
}

/// Where the standard library takes memory from the system itself, as for a thread's handle, it ends the
/// process by SIGABRT, after a line of its own. Other causes are defects, such as a panic during a panic.
pub fn catch_aborts() {
    #[cfg(unix)]
    {
        extern "C" fn aborted(_: i32) {
            ended(format_args!(
                "aborted for the reason above (if the system refused memory, free some or use smaller inputs; \
                 otherwise please report it"
            ))
        }
        crate::signals::handle(crate::signals::SIGABRT, aborted);
    }
}

/// Removes temporary files, ends programs that were started, says why the process ends, and ends it.
fn ended(why: std::fmt::Arguments<'_>) -> ! {
    // If memory is refused again while files are removed, the line is still due.
    let again = ENDS.replace(true);
    if !again && ENDING.swap(true, Ordering::SeqCst) {
        // Another thread is about to end the process.
        loop {
            std::thread::sleep(Duration::from_secs(1));
        }
    }
    abandon_programs();
    let written = if again { 0 } else { abandon_now() };
    // Each line fits.
    let mut line = [0_u8; 512];
    let mut rest = &mut line[..];
    let kept = if written > 0 { "; the files were written" } else { "" };
    let (rank, colon) = RANK.get().map_or(("", ""), |name| (name, ": "));
    let _ = writeln!(rest, "apportion: {rank}{colon}{why}{kept})");
    let length = 512 - rest.len();
    say(&line[..length]);
    crate::signals::leave(1)
}

/// Writes a line to stderr without taking memory. Whether it is written cannot be told to anybody.
#[cfg(unix)]
fn say(line: &[u8]) {
    unsafe extern "C" {
        fn write(file: i32, from: *const u8, bytes: usize) -> isize;
    }
    // SAFETY: the line is as long as its length says.
    let _ = unsafe { write(2, line.as_ptr(), line.len()) };
}

#[cfg(not(unix))]
fn say(line: &[u8]) {
    let _ = std::io::stderr().write_all(line);
}
