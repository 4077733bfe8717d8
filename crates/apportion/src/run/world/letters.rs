//! Values that ranks send each other at any time, beside the collective operations.

use super::collectives::{from_json, packed, to_json, unpacked};
use super::{COLLECTIVE, Transfer, World};
use crate::error::Result;
use serde::Serialize;
use serde::de::DeserializeOwned;

impl World {
    /// Sends a value, as JSON and the bytes after it, to a rank that [waits for it](Awaited).
    ///
    /// # Errors
    /// Interrupted, or another rank failed.
    pub(crate) fn send_letter<V: Serialize>(&self, value: &V, bytes: &[u8], to: usize) -> Result<()> {
        let [value, bytes] = [packed(&to_json(value)), packed(bytes)];
        self.send(vec![value.len() as u64, bytes.len() as u64], to)?;
        self.send(value, to)?;
        self.send(bytes, to)
    }
}

/// A value that another rank will send.
#[derive(Debug)]
pub(crate) struct Awaited {
    from: usize,
    lengths: Transfer,
}

impl Awaited {
    /// Gets ready for the next value from a rank. No collective operation may begin before it has come.
    pub(crate) fn from(world: &World, from: usize) -> Self {
        Self { from, lengths: world.start_receive(vec![0; 2], from, COLLECTIVE) }
    }

    /// The value and the bytes, once they are here.
    ///
    /// # Errors
    /// Interrupted, or another rank failed.
    pub(crate) fn take<V: DeserializeOwned>(&mut self, world: &World) -> Result<Option<(V, Vec<u8>)>> {
        world.check()?;
        if !world.is_done(&mut self.lengths)? {
            return Ok(None);
        }
        let [value, bytes] = [0, 1].map(|i| self.lengths.words()[i] as usize);
        let value = from_json(&unpacked(&world.recv(value, self.from)?))?;
        Ok(Some((value, unpacked(&world.recv(bytes, self.from)?))))
    }
}
