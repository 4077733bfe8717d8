//! Collective operations made of messages. They use binomial trees in a fixed order, so that the same numbers
//! give the same bits on every engine, and no rank receives more than log2(p) times the data that it needs.

use super::World;
use crate::error::{Error, Result};
use bytemuck::Pod;
use serde::Serialize;
use serde::de::DeserializeOwned;

impl World {
    /// Returns once all ranks have called it, in ceil(log2 p) rounds (Hensgen, Finkel and Manber 1988).
    ///
    /// # Errors
    /// Interrupted; another rank failed.
    pub fn barrier(&self) -> Result<()> {
        let (rank, size) = (self.rank(), self.size());
        let mut distance = 1;
        while distance < size {
            self.exchange(Vec::new(), (rank + distance) % size, 0, (rank + size - distance) % size)?;
            distance *= 2;
        }
        Ok(())
    }

    /// Returns rank 0's bytes on every rank; the argument of other ranks is ignored.
    ///
    /// # Errors
    /// Interrupted; another rank failed.
    pub fn broadcast(&self, bytes: &[u8]) -> Result<Vec<u8>> {
        if self.size() == 1 {
            return Ok(bytes.to_vec());
        }
        let mut words = if self.rank() == 0 { packed(bytes) } else { Vec::new() };
        if let Some(parent) = self.parent() {
            let length = self.recv(1, parent)?[0];
            words = self.recv(length as usize, parent)?;
        }
        for child in self.children() {
            self.send(vec![words.len() as u64], child)?;
            self.send(words.clone(), child)?;
        }
        Ok(unpacked(&words))
    }

    /// Returns every rank's bytes in the order of ranks on rank 0, and nothing on the others. The bytes
    /// travel directly to rank 0, since no other rank needs them.
    ///
    /// # Errors
    /// Interrupted; another rank failed.
    pub(super) fn gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        if self.rank() > 0 {
            let words = packed(bytes);
            self.send(vec![words.len() as u64], 0)?;
            self.send(words, 0)?;
            return Ok(Vec::new());
        }
        let mut all = vec![bytes.to_vec()];
        for from in 1..self.size() {
            let length = self.recv(1, from)?[0];
            all.push(unpacked(&self.recv(length as usize, from)?));
        }
        Ok(all)
    }

    /// Returns every rank's bytes in the order of ranks, on all ranks.
    ///
    /// # Errors
    /// Interrupted; another rank failed.
    pub fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        let all = self.gather(bytes)?;
        let text: Vec<u8> = all
            .iter()
            .flat_map(|one| (one.len() as u64).to_le_bytes().into_iter().chain(one.iter().copied()))
            .collect();
        let text = self.broadcast(&text)?;
        let mut rest = &text[..];
        let mut parts = Vec::with_capacity(self.size());
        while let Some((length, after)) = rest.split_first_chunk::<8>() {
            let (one, after) = after.split_at(u64::from_le_bytes(*length) as usize);
            parts.push(one.to_vec());
            rest = after;
        }
        Ok(parts)
    }

    /// Returns rank 0's numbers on every rank, as [`broadcast`](Self::broadcast).
    ///
    /// # Errors
    /// Interrupted; another rank failed.
    pub(crate) fn broadcast_numbers<N: Pod>(&self, numbers: &[N]) -> Result<Vec<N>> {
        Ok(numbers_of(&self.broadcast(bytemuck::cast_slice(numbers))?).collect())
    }

    /// Returns every rank's numbers in the order of ranks, on all ranks.
    ///
    /// # Errors
    /// Interrupted; another rank failed.
    pub(crate) fn all_gather_numbers<N: Pod>(&self, numbers: &[N]) -> Result<Vec<Vec<N>>> {
        let all = self.all_gather(bytemuck::cast_slice(numbers))?;
        Ok(all.iter().map(|bytes| numbers_of(bytes).collect()).collect())
    }

    /// Returns every rank's text in the order of ranks, on all ranks.
    ///
    /// # Errors
    /// Interrupted; another rank failed.
    pub(crate) fn all_gather_texts(&self, text: &str) -> Result<Vec<String>> {
        let all = self.all_gather(text.as_bytes())?;
        Ok(all.iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect())
    }

    /// Returns every rank's value in the order of ranks, on all ranks; values travel as JSON.
    ///
    /// # Errors
    /// Interrupted; another rank failed.
    pub(crate) fn all_gather_values<V: Serialize + DeserializeOwned>(&self, value: &V) -> Result<Vec<V>> {
        self.all_gather(&to_json(value))?.iter().map(|text| from_json(text)).collect()
    }

    /// Combines every rank's numbers, element by element, along a binomial tree. The result has the same bits
    /// on every rank. A rank receives at most ceil(log2 p) times as many numbers as it contributes.
    ///
    /// # Errors
    /// Interrupted; another rank failed.
    pub fn all_reduce<N: Pod>(&self, numbers: &[N], with: impl Fn(N, N) -> N) -> Result<Vec<N>> {
        self.reduced(numbers, &with)
    }

    /// Compiled once for a type of numbers.
    fn reduced<N: Pod>(&self, numbers: &[N], with: &dyn Fn(N, N) -> N) -> Result<Vec<N>> {
        let mut total = numbers.to_vec();
        // The nearest subtrees first: they are the smallest.
        for child in self.children().into_iter().rev() {
            let words = packed_length(size_of_val(numbers));
            let theirs = unpacked(&self.recv(words, child)?);
            total.iter_mut().zip(numbers_of(&theirs)).for_each(|(x, y)| *x = with(*x, y));
        }
        if let Some(parent) = self.parent() {
            self.send(packed(bytemuck::cast_slice(&total)), parent)?;
        }
        if self.size() == 1 {
            return Ok(total);
        }
        self.broadcast_numbers(&total)
    }

    /// Returns this rank's value if all ranks succeeded. Otherwise every rank gets the error of the lowest
    /// rank that failed, as [`Error::Agreed`], with the rank and its host in front: `rank 1 (beta): …`. An
    /// error that all ranks met, or that is about the request and not about a rank, stands alone.
    ///
    /// # Errors
    /// The agreed error; interrupted.
    pub fn all_ok<R>(&self, outcome: Result<R>) -> Result<R> {
        if self.size() == 1 { outcome } else { self.agree(outcome.as_ref().err()).and(outcome) }
    }

    /// Does work on rank 0 only. Returns its value there, and `None` on the other ranks.
    ///
    /// # Errors
    /// The error of the work, on all ranks; interrupted.
    pub fn on_root<R>(&self, work: impl FnOnce() -> Result<R>) -> Result<Option<R>> {
        self.all_ok(if self.rank() == 0 { work().map(Some) } else { Ok(None) })
    }

    /// Makes a decision on rank 0. Returns it on every rank, to which it travels as JSON.
    ///
    /// # Errors
    /// The error of the decision, on all ranks; interrupted.
    pub(crate) fn decide_on_root<V: Serialize + DeserializeOwned>(
        &self,
        decide: impl FnOnce() -> Result<V>,
    ) -> Result<V> {
        let decision = self.on_root(decide)?;
        self.from_root(decision)
    }

    /// The value that rank 0 has, on every rank; it travels as JSON.
    ///
    /// # Errors
    /// A lost rank; interrupted.
    pub fn from_root<V: Serialize + DeserializeOwned>(&self, mine: Option<V>) -> Result<V> {
        let text = self.broadcast(&mine.as_ref().map_or_else(Vec::new, to_json))?;
        mine.map_or_else(|| from_json(&text), Ok)
    }

    /// Makes decisions on rank 0, the best first; there is at least one. Rank 0 gets all of them, the other ranks the
    /// best, which travels as JSON.
    ///
    /// # Errors
    /// The error of the decision, on all ranks; interrupted.
    pub fn best_on_root<V: Serialize + DeserializeOwned + Clone>(
        &self,
        decide: impl FnOnce() -> Result<Vec<V>>,
    ) -> Result<Vec<V>> {
        if self.size() == 1 {
            return decide();
        }
        let decisions = self.on_root(decide)?;
        let best = self.from_root(decisions.as_ref().map(|all| all[0].clone()))?;
        Ok(decisions.unwrap_or_else(|| vec![best]))
    }

    /// The error of the lowest rank that has one.
    fn agree(&self, mine: Option<&Error>) -> Result<()> {
        let mut first = match mine {
            None => None,
            Some(Error::Interrupted) => return Err(Error::Interrupted),
            Some(error) => Some(Failure {
                code: error.exit_code(),
                is_of_rank: is_of_rank(error, self.rank()),
                rank: self.rank() as u64,
                count: 1,
                text: error.to_string(),
            }),
        };
        for child in self.children().into_iter().rev() {
            let length = self.recv(1, child)?[0];
            let theirs = Failure::parse(&unpacked(&self.recv(length as usize, child)?));
            // Subtrees hold ranks in ascending order.
            match (&mut first, theirs) {
                (None, theirs) => first = theirs,
                (Some(first), Some(theirs)) if first.text == theirs.text => first.count += theirs.count,
                _ => {}
            }
        }
        let bytes = first.as_ref().map_or_else(Vec::new, Failure::to_bytes);
        if let Some(parent) = self.parent() {
            let words = packed(&bytes);
            self.send(vec![words.len() as u64], parent)?;
            self.send(words, parent)?;
        }
        let Some(first) = Failure::parse(&self.broadcast(&bytes)?) else { return Ok(()) };
        let text = match first.count == self.size() as u64 || !first.is_of_rank {
            true => first.text,
            false => self.with_rank(first.rank as usize, &first.text),
        };
        Err(Error::Agreed { text, code: first.code })
    }

    /// This rank's parent in the binomial tree: the rank without the lowest bit set.
    fn parent(&self) -> Option<usize> {
        let rank = self.rank();
        (rank > 0).then(|| rank - (1 << rank.trailing_zeros()))
    }

    /// Its children, the farthest first.
    fn children(&self) -> Vec<usize> {
        let (rank, size) = (self.rank(), self.size());
        let mut reach = if rank == 0 { size.next_power_of_two() } else { 1 << rank.trailing_zeros() };
        let mut children = Vec::new();
        while reach > 1 {
            reach /= 2;
            if rank + reach < size {
                children.push(rank + reach);
            }
        }
        children
    }
}

/// The first error of a subtree's ranks.
struct Failure {
    code: u8,
    /// True if the reader needs to know which rank met it.
    is_of_rank: bool,
    rank: u64,
    /// Number of ranks that met the same.
    count: u64,
    text: String,
}

impl Failure {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![self.code, u8::from(self.is_of_rank)];
        bytes.extend(self.rank.to_le_bytes());
        bytes.extend(self.count.to_le_bytes());
        bytes.extend(self.text.as_bytes());
        bytes
    }

    /// `None` for no bytes.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let ([code, is_of_rank], rest) = bytes.split_first_chunk::<2>()?;
        let (rank, rest) = rest.split_first_chunk()?;
        let (count, text) = rest.split_first_chunk()?;
        Some(Self {
            code: *code,
            is_of_rank: *is_of_rank != 0,
            rank: u64::from_le_bytes(*rank),
            count: u64::from_le_bytes(*count),
            text: String::from_utf8_lossy(text).into_owned(),
        })
    }
}

/// False for an error about the request: a parameter, or what rank 0 has decided for all.
fn is_of_rank(error: &Error, rank: usize) -> bool {
    match error {
        Error::Input { place, .. } => !place.starts_with(['`', '-']),
        Error::Infeasible { .. } => rank > 0,
        _ => true,
    }
}

pub(super) fn to_json<V: Serialize>(value: &V) -> Vec<u8> {
    serde_json::to_vec(value).expect("what travels is plain data")
}

pub(super) fn from_json<V: DeserializeOwned>(text: &[u8]) -> Result<V> {
    serde_json::from_slice(text).map_err(|error| {
        let what = format!("another rank sent a value that cannot be read: {error}");
        Error::infeasible(what, "run the same version on all ranks")
    })
}

/// Converts bytes back to numbers.
fn numbers_of<N: Pod>(bytes: &[u8]) -> impl Iterator<Item = N> + '_ {
    bytes.chunks_exact(size_of::<N>()).map(bytemuck::pod_read_unaligned)
}

/// Number of words that hold this many bytes when packed.
fn packed_length(bytes: usize) -> usize {
    1 + bytes.div_ceil(8)
}

/// Packs bytes into words: first the number of bytes, then eight bytes per word.
pub(super) fn packed(bytes: &[u8]) -> Vec<u64> {
    let mut words = vec![0; packed_length(bytes.len())];
    words[0] = bytes.len() as u64;
    bytemuck::cast_slice_mut(&mut words[1..])[..bytes.len()].copy_from_slice(bytes);
    words
}

/// Unpacks bytes from words.
pub(super) fn unpacked(words: &[u64]) -> Vec<u8> {
    bytemuck::cast_slice(&words[1..])[..words[0] as usize].to_vec()
}
