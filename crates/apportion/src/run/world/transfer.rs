//! A message under way, with its memory.

/// Words on their way, or room for words that come.
#[derive(Debug)]
pub(crate) enum Transfer {
    /// Between ranks that are threads: the words, once they are here.
    Threads {
        /// What came, or the sender's memory once it was handed over.
        words: Vec<u64>,
        /// What is waited for: the sender, the tag, and the message's number among those alike.
        expected: Option<(usize, u16, u64)>,
        /// The number of words that must come.
        length: usize,
    },
    /// Between MPI processes.
    #[cfg(all(unix, target_pointer_width = "64", target_endian = "little"))]
    Mpi(crate::run::mpi::Transfer),
}

impl Transfer {
    /// The memory back; the transfer must be done.
    pub fn into_words(self) -> Vec<u64> {
        match self {
            Self::Threads { words, .. } => words,
            #[cfg(all(unix, target_pointer_width = "64", target_endian = "little"))]
            Self::Mpi(transfer) => transfer.into_words(),
        }
    }
}
