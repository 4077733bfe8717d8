//! Shared memory of the ranks of one host, which all of them must be able to use.

use super::World;
use crate::error::Result;
use crate::run::shared::{Mine, SharedMemory};

/// With more ranks on a host each would have too many files open.
const MOST_RANKS: usize = 256;

impl World {
    /// Lets the ranks share memory if all of them can; every rank must call it, and all are on one host.
    pub(crate) fn share_memory(&self) -> Result<()> {
        if self.size() == 1 || self.size() > MOST_RANKS {
            return Ok(());
        }
        let mine = Mine::new();
        let address = mine.as_ref().map_or([0; 3], Mine::address);
        let addresses = self.all_gather(bytemuck::cast_slice(&address))?;
        let addresses: Vec<[u64; 3]> =
            addresses.iter().map(|one| bytemuck::pod_read_unaligned(one)).collect();
        let shared = mine.and_then(|mine| mine.with(&addresses));
        // Also until all have opened the files of all.
        let can = self.all_reduce(&[u8::from(shared.is_some())], u8::min)?;
        if let Some(shared) = shared.filter(|_| can == [1]) {
            let _ = self.shared.set(shared);
        }
        Ok(())
    }

    /// The memory that all ranks share, if they do.
    pub(in crate::run) fn shared(&self) -> Option<&SharedMemory> {
        self.shared.get()
    }

    /// True if all ranks share memory.
    pub(crate) fn shares_memory(&self) -> bool {
        self.shared().is_some()
    }
}
