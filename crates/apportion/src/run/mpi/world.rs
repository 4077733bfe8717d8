//! The processes that mpirun started, as one value: who we are, waiting that can be interrupted, and the few collective
//! operations that a run needs, made of messages so that they can be interrupted too.

use super::SWEEP;
use super::raw::{Mpi, Transfer, VARIABLE};
use crate::error::{Error, Result};
use crate::run::{Monitor, MpiLaunch};
use bytemuck::Pod;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

/// Tag of everything but a schedule's messages.
const COLLECTIVE: u16 = 0x7ffe;

/// Looks at a message so often before the core is given to others for longer.
const EAGER: u32 = 1000;

/// All processes of a run under MPI. Every rank calls the collective operations in the same order.
#[derive(Debug)]
pub struct World {
    mpi: Mpi,
    monitor: Monitor,
}

/// Libraries to try, the likeliest first.
fn libraries(launched: Option<MpiLaunch>) -> Vec<String> {
    let names = match launched {
        Some(MpiLaunch { open_mpi: false, .. }) => {
            ["libmpich.so.12", "libmpi.so.12", "libmpi_abi.so.1", "libmpich.so", "libmpi.so"]
        }
        _ => ["libmpi.so.40", "libmpi_abi.so.1", "libmpich.so.12", "libmpi.so.12", "libmpi.so"],
    };
    names.map(str::to_owned).into()
}

impl World {
    /// Joins the world that mpirun made, or a world of one without mpirun. `monitor` ends all waiting.
    ///
    /// # Errors
    /// Exit code 2: no MPI library, or one that sees another world than the mpirun that started this process.
    pub fn join(monitor: &Monitor) -> Result<Self> {
        let launched = MpiLaunch::detect();
        let names = match std::env::var(VARIABLE) {
            Ok(name) if !name.is_empty() => vec![name],
            _ => libraries(launched),
        };
        let mpi = Mpi::start(&names)?;
        let mut world = Self { mpi, monitor: monitor.clone() };
        if let Some(MpiLaunch { size, .. }) = launched
            && size != world.size()
        {
            // Each process is alone in a world of its own: leaving it is safe.
            let what = format!(
                "mpirun started {size} processes, but {} ({}) sees {}: it belongs to another MPI",
                world.mpi.name(),
                world.library(),
                world.size()
            );
            world.mpi.finish();
            let remedy = format!("use that library's own mpirun, or name mpirun's library in {VARIABLE}");
            return Err(Error::input("--engine mpi", what, remedy));
        }
        if world.is_on_one_host()? {
            world.mpi.on_one_host();
        }
        Ok(world)
    }

    /// Whether all ranks' hosts have one name.
    fn is_on_one_host(&self) -> Result<bool> {
        let mut hasher = DefaultHasher::new();
        rustix::system::uname().nodename().hash(&mut hasher);
        let host = hasher.finish();
        // The least, and the complement of the greatest.
        let ends = self.combine(&[host, !host], u64::min)?;
        Ok(ends[0] == !ends[1])
    }

    /// This process's number, from 0.
    pub fn rank(&self) -> usize {
        self.mpi.rank
    }

    /// Number of processes.
    pub fn size(&self) -> usize {
        self.mpi.size
    }

    /// What the MPI library says of itself.
    pub fn library(&self) -> String {
        self.mpi.version()
    }

    /// Leaves the world, which every rank must.
    pub fn leave(self) {
        self.mpi.finish();
    }

    /// Ends all processes of the world at once.
    pub fn abort(&self, code: u8) -> ! {
        self.mpi.abort(code)
    }

    pub(super) fn mpi(&self) -> &Mpi {
        &self.mpi
    }

    /// Waits for a transfer without keeping the core from others.
    pub(super) fn wait(&self, transfer: &mut Transfer) -> Result<()> {
        let mut tries = 0;
        while !(0..SWEEP).any(|_| self.mpi.done(transfer)) {
            if self.monitor.is_stopped() {
                return Err(Error::Interrupted);
            }
            tries += 1;
            if tries < EAGER {
                std::thread::yield_now();
            } else {
                // Longer and longer, up to half a millisecond.
                let micros = (u64::from(tries - EAGER) / 8 + 20).min(500);
                std::thread::sleep(Duration::from_micros(micros));
            }
        }
        Ok(())
    }

    /// Sends words and waits until they have left.
    pub fn tell(&self, words: Vec<u64>, to: usize) -> Result<()> {
        self.wait(&mut self.mpi.send(words, to, COLLECTIVE))
    }

    /// Receives so many words.
    pub fn hear(&self, words: usize, from: usize) -> Result<Vec<u64>> {
        let mut transfer = self.mpi.receive(vec![0; words], from, COLLECTIVE);
        self.wait(&mut transfer)?;
        Ok(transfer.into_words())
    }

    /// Sends words to one rank while receiving from another.
    pub fn exchange(&self, words: Vec<u64>, to: usize, (count, from): (usize, usize)) -> Result<Vec<u64>> {
        let mut coming = self.mpi.receive(vec![0; count], from, COLLECTIVE);
        let mut going = self.mpi.send(words, to, COLLECTIVE);
        self.wait(&mut coming)?;
        self.wait(&mut going)?;
        Ok(coming.into_words())
    }

    /// Returns once all ranks are here, in ceil(log2 p) rounds (Hensgen, Finkel and Manber 1988).
    pub fn barrier(&self) -> Result<()> {
        let (rank, size) = (self.rank(), self.size());
        let mut distance = 1;
        while distance < size {
            self.exchange(Vec::new(), (rank + distance) % size, (0, (rank + size - distance) % size))?;
            distance *= 2;
        }
        Ok(())
    }

    /// Rank 0's bytes, on every rank.
    pub fn broadcast(&self, bytes: &[u8]) -> Result<Vec<u8>> {
        let (rank, size) = (self.rank(), self.size());
        let mut words = packed(bytes);
        // A binomial tree: the lowest bit set names the sender, the bits below it the receivers.
        let mut reach = if rank == 0 { size.next_power_of_two() } else { 1 << rank.trailing_zeros() };
        if rank > 0 {
            let from = rank - reach;
            let length = self.hear(1, from)?[0];
            words = self.hear(length as usize, from)?;
        }
        while reach > 1 {
            reach /= 2;
            if rank + reach < size {
                self.tell(vec![words.len() as u64], rank + reach)?;
                self.tell(words.clone(), rank + reach)?;
            }
        }
        Ok(unpacked(&words))
    }

    /// Every rank's bytes in the order of ranks, on rank 0; nothing on the others.
    pub fn gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        let words = packed(bytes);
        if self.rank() > 0 {
            self.tell(vec![words.len() as u64], 0)?;
            self.tell(words, 0)?;
            return Ok(Vec::new());
        }
        let mut all = vec![bytes.to_vec()];
        for from in 1..self.size() {
            let length = self.hear(1, from)?[0];
            all.push(unpacked(&self.hear(length as usize, from)?));
        }
        Ok(all)
    }

    /// Combines every rank's numbers, element by element in the order of ranks; the same bits on every rank.
    pub fn combine<N: Pod>(&self, numbers: &[N], with: impl Fn(N, N) -> N) -> Result<Vec<N>> {
        let all = self.gather(bytemuck::cast_slice(numbers))?;
        let mut total = numbers.to_vec();
        for other in all.iter().skip(1) {
            total.iter_mut().zip(numbers_of(other)).for_each(|(x, y)| *x = with(*x, y));
        }
        Ok(numbers_of(&self.broadcast(bytemuck::cast_slice(&total))?).collect())
    }

    /// Everybody's success, or on every rank the error of the first that failed, as [`Error::Agreed`].
    ///
    /// # Errors
    /// As said; and interrupted.
    pub fn agree<R>(&self, outcome: Result<R>) -> Result<R> {
        let mine = match &outcome {
            Ok(_) => Vec::new(),
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            Err(error) => [&[error.exit_code()], error.to_string().as_bytes()].concat(),
        };
        let first = self.gather(&mine)?.into_iter().find(|text| !text.is_empty()).unwrap_or_default();
        match self.broadcast(&first)?.split_first() {
            None => outcome,
            Some((&code, text)) => {
                Err(Error::Agreed { text: String::from_utf8_lossy(text).into_owned(), code })
            }
        }
    }
}

/// Bytes as the numbers that they were.
fn numbers_of<N: Pod>(bytes: &[u8]) -> impl Iterator<Item = N> + '_ {
    bytes.chunks_exact(size_of::<N>()).map(bytemuck::pod_read_unaligned)
}

/// Bytes as words: their number, then eight to a word.
fn packed(bytes: &[u8]) -> Vec<u64> {
    let mut words = vec![0; 1 + bytes.len().div_ceil(8)];
    words[0] = bytes.len() as u64;
    bytemuck::cast_slice_mut(&mut words[1..])[..bytes.len()].copy_from_slice(bytes);
    words
}

fn unpacked(words: &[u64]) -> Vec<u8> {
    bytemuck::cast_slice(&words[1..])[..words[0] as usize].to_vec()
}
