//! The seam between a world and what carries its messages. It has three implementations: a process alone,
//! ranks as threads, MPI.

use std::fmt::Debug;

/// What carries the messages of a rank.
pub(super) trait Engine: Debug + Send + Sync {
    /// Its name in reports.
    fn name(&self) -> &'static str {
        "threads"
    }

    /// Version string of its library, or a note that there is none.
    fn library(&self) -> String {
        "threads of one process".into()
    }

    /// True if one process runs all processors.
    fn is_solo(&self) -> bool {
        false
    }

    /// This process's rank.
    fn rank(&self) -> usize;

    /// Number of ranks.
    fn size(&self) -> usize;

    /// Starts sending words. The transfer owns the memory until it is done.
    fn start_send(&self, words: Vec<u64>, to: usize, tag: u16) -> Transfer;

    /// Starts receiving words from a rank; they must fill `room` exactly.
    fn start_receive(&self, room: Vec<u64>, from: usize, tag: u16) -> Transfer;

    /// True once a transfer is done.
    ///
    /// # Errors
    /// The library's code of an error that the transfer met.
    fn is_done(&self, transfer: &mut Transfer) -> Result<bool, i32>;

    /// Sleeps until something arrives, or briefly, unless the transfer's message is already here. False if
    /// the engine cannot: the caller then sleeps itself.
    fn wait_for_news(&self, _transfer: &Transfer) -> bool {
        false
    }

    /// True if another rank has failed, so that its messages will not come.
    fn has_failed(&self) -> bool {
        false
    }

    /// True if any thread of this process may use the world, one at a time.
    fn is_for_any_thread(&self) -> bool {
        true
    }

    /// True if messages advance only during calls of the engine.
    fn needs_progress(&self) -> bool {
        false
    }

    /// Lets messages advance.
    fn progress(&self) {}

    /// Declares that all ranks are on one host. All ranks must call it, with no message in flight.
    #[cfg(all(unix, target_pointer_width = "64", target_endian = "little"))]
    fn set_on_one_host(&mut self) {}

    /// Leaves the world.
    fn finalize(self: Box<Self>) {}

    /// Ends all ranks at once.
    fn abort(&self, code: u8) -> ! {
        std::process::exit(code.into())
    }
}

/// The engine of a process alone, which sends and receives nothing.
#[derive(Debug)]
pub(super) struct Solo;

impl Engine for Solo {
    fn is_solo(&self) -> bool {
        true
    }

    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn start_send(&self, _: Vec<u64>, _: usize, _: u16) -> Transfer {
        unreachable!("a process alone sends nothing")
    }

    fn start_receive(&self, _: Vec<u64>, _: usize, _: u16) -> Transfer {
        unreachable!("a process alone receives nothing")
    }

    fn is_done(&self, _: &mut Transfer) -> Result<bool, i32> {
        Ok(true)
    }
}

/// Words in flight, or the memory for words to be received.
#[derive(Debug)]
pub(in crate::run) struct Transfer {
    /// The rank at the other end.
    pub(crate) peer: usize,
    pub(crate) words: Vec<u64>,
    pub(crate) pending: Pending,
}

/// What a transfer waits for.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::run) enum Pending {
    Nothing,
    /// A message of a rank of this process: its tag, and its number among the messages with the same sender
    /// and tag.
    Message {
        tag: u16,
        number: u64,
    },
    /// Requests of MPI, which reads or fills the words meanwhile.
    #[cfg_attr(not(all(unix, target_pointer_width = "64", target_endian = "little")), expect(dead_code))]
    Requests(Vec<usize>),
}

impl Pending {
    fn is_nothing(&self) -> bool {
        match self {
            Self::Nothing => true,
            Self::Message { .. } => false,
            Self::Requests(requests) => requests.is_empty(),
        }
    }
}

impl Transfer {
    /// Adds a request of MPI, which uses the words from now on.
    #[cfg(all(unix, target_pointer_width = "64", target_endian = "little"))]
    pub(crate) fn push_request(&mut self, request: usize) {
        if let Pending::Requests(requests) = &mut self.pending {
            requests.push(request);
        }
    }

    /// The words that have come; the transfer must be done.
    pub(crate) fn words(&self) -> &[u64] {
        assert!(self.pending.is_nothing(), "what is under way may still be written");
        &self.words
    }

    /// Returns the memory; the transfer must be done.
    pub(crate) fn into_words(mut self) -> Vec<u64> {
        assert!(self.pending.is_nothing(), "the memory of what is under way is needed");
        std::mem::take(&mut self.words)
    }
}

impl Drop for Transfer {
    /// MPI may still read or write the memory of an abandoned transfer: it is never freed.
    fn drop(&mut self) {
        if matches!(self.pending, Pending::Requests(_)) && !self.pending.is_nothing() {
            std::mem::forget(std::mem::take(&mut self.words));
        }
    }
}
