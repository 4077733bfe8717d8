//! Memory that the system may refuse.
//!
//! Rust ends a process by SIGABRT where an allocation is refused, except where the caller asks for a refusal
//! to be told. A program whose global allocator ends the process in another way, as the `apportion` command
//! does, distinguishes the two by [`refusal_is_expected`].

use std::cell::Cell;

thread_local! {
    // Neither initialised nor dropped at run time, so that an allocator may read it.
    static ASKS: Cell<bool> = const { Cell::new(false) };
}

/// True while this thread asks for memory that may be refused: an allocator must return null then.
pub fn refusal_is_expected() -> bool {
    ASKS.get()
}

/// Asks for memory by a function that tells of a refusal, such as `try_reserve`.
pub fn ask<R>(question: impl FnOnce() -> R) -> R {
    ASKS.set(true);
    let answer = question();
    ASKS.set(false);
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_expected_only_while_asking() {
        assert!(!refusal_is_expected());
        assert!(ask(refusal_is_expected) && ask(|| Vec::<u8>::new().try_reserve(usize::MAX)).is_err());
        assert!(!refusal_is_expected());
    }
}
