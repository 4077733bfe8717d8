//! A message in flight, with its memory.

/// Words in flight, or the memory for words to be received.
#[derive(Debug)]
pub(crate) struct Transfer {
    /// The rank at the other end.
    pub peer: usize,
    pub state: State,
}

/// A message in flight, by engine.
#[derive(Debug)]
pub(crate) enum State {
    /// Between ranks as threads: the words, once they have arrived.
    Threads {
        /// The received words, or the sender's memory once it was handed over.
        words: Vec<u64>,
        /// The expected message: its sender, its tag, and its number among the messages with the same sender
        /// and tag.
        expected: Option<(usize, u16, u64)>,
        /// The expected number of words.
        length: usize,
    },
    /// Between MPI processes.
    #[cfg(all(unix, target_pointer_width = "64", target_endian = "little"))]
    Mpi(crate::run::mpi::Transfer),
}

impl Transfer {
    /// The words that have come; the transfer must be done.
    pub fn words(&self) -> &[u64] {
        match &self.state {
            State::Threads { words, .. } => words,
            #[cfg(all(unix, target_pointer_width = "64", target_endian = "little"))]
            State::Mpi(transfer) => transfer.words(),
        }
    }

    /// Returns the memory; the transfer must be done.
    pub fn into_words(self) -> Vec<u64> {
        match self.state {
            State::Threads { words, .. } => words,
            #[cfg(all(unix, target_pointer_width = "64", target_endian = "little"))]
            State::Mpi(transfer) => transfer.into_words(),
        }
    }
}
