//! Helpers that several of apportion's test binaries share.
//!
//! - [`Bench`]: a directory of the test's own, and the binary run in it.
//! - [`skip`]: the one way to skip a test. A skipped test passes, so a skip must not go unseen: `skip` prints
//!   a line, appends it to the file named by `APPORTION_SKIPS` (cargo hides the output of tests that pass;
//!   `./test` prints that file at its end), and panics if `APPORTION_REQUIRE` says that the machine must have
//!   what is missing.
//! - [`recorded_machine`]: the files of `/proc` and `/sys` of a machine that is not here.
//! - [`until`]: waits for what must come true.
//! - [`cases`]: fewer cases of a slow test in `./test` than in `./test all`.

mod bench;
mod machines;
mod skip;

use std::time::{Duration, Instant};

pub use bench::{Bench, Words, binary, holds, object, without_progress};
pub use machines::{recorded_machine, recorded_machines};
pub use skip::{Need, cases, program, skip};

/// Waits for a condition that must come true within a minute.
///
/// # Panics
/// It does not.
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < Duration::from_secs(60), "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
