//! Where ranks share no memory between processes: the same names, and no values.

use crate::error::Result;

pub(super) const NOTICE: usize = 3;

#[derive(Debug)]
pub(super) enum Mine {}
#[derive(Debug)]
pub(super) enum SharedMemory {}
#[derive(Debug)]
pub(super) enum Outgoing {}
#[derive(Debug)]
pub(super) enum Sent {}
#[derive(Debug)]
pub(super) enum Incoming {}

impl Mine {
    pub fn new() -> Option<Self> {
        None
    }

    pub fn address(&self) -> [u64; 3] {
        match *self {}
    }

    pub fn with(self, _: &[[u64; 3]]) -> Option<SharedMemory> {
        match self {}
    }
}

impl SharedMemory {
    pub fn claim(&self, _: usize) -> Result<Outgoing> {
        match *self {}
    }

    pub fn reserve(&self, _: &[usize]) -> Result<()> {
        match *self {}
    }

    pub fn take(&self, _: usize, _: [u64; NOTICE], _: usize) -> Result<Option<Incoming>> {
        match *self {}
    }
}

impl Outgoing {
    pub fn words(&mut self) -> &mut [u64] {
        match *self {}
    }

    pub fn send(self) -> ([u64; NOTICE], Sent) {
        match self {}
    }
}

impl Sent {
    pub fn is_taken(&self) -> bool {
        match *self {}
    }
}

impl Incoming {
    pub fn words(&self) -> &[u64] {
        match *self {}
    }
}
