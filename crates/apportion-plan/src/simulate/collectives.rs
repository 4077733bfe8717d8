//! Collective operations as sends and receives, in the orders of SimGrid 3.32's replay (its selector
//! `default`, whose `alltoall` follows Open MPI 4's table).
//!
//! A message of a rank to itself takes no time and is left out.

use super::fluid::{Action, Then};
use crate::geometry::Rank;
use crate::platform::Load;

/// Tags above those that traces may use, one for each pattern of messages.
const TAG: u64 = 1 << 40;
const BROADCAST: u64 = TAG;
const BARRIER: u64 = TAG + 1;
const EXCHANGE: u64 = TAG + 2;
const STEP: u64 = TAG + 3;

/// An irregular reduce-scatter of more elements, of whatever size, exchanges by pairs; a smaller one doubles.
const REDUCE_SCATTER_PAIRS: f64 = 524_288.0;

/// One rank's part of the collective operations of all ranks, appended to its script. Sizes are in bytes.
pub(super) struct Member<'a> {
    pub(crate) rank: usize,
    pub(crate) ranks: usize,
    pub(crate) script: &'a mut Vec<Action>,
}

impl Member<'_> {
    /// A broadcast along a binomial tree. Numbers count from the root. The rank receives from the rank whose
    /// number is its own without the lowest set bit, then sends to the ranks whose numbers have one of the
    /// bits below it added. O(log ranks) actions.
    pub(crate) fn broadcast(&mut self, root: usize, bytes: f64) {
        let ranks = self.ranks;
        let place = (self.rank + ranks - root) % ranks;
        let at = |place: usize| (place + root) % ranks;
        let mut bit = 1;
        while bit < ranks && place & bit == 0 {
            bit <<= 1;
        }
        if bit < ranks {
            self.receive(at(place - bit), BROADCAST, Then::Wait);
        }
        while bit > 1 {
            bit >>= 1;
            if place + bit < ranks {
                self.send(at(place + bit), BROADCAST, bytes, Then::Wait);
            }
        }
    }

    /// A barrier: every rank sends to rank 0, which then answers all. O(ranks) actions at rank 0.
    pub(crate) fn barrier(&mut self) {
        if self.rank > 0 {
            self.send(0, BARRIER, 0.0, Then::Wait);
            self.receive(0, BARRIER, Then::Wait);
            return;
        }
        let others = 1..self.ranks;
        others.clone().for_each(|from| self.receive(from, BARRIER, Then::Remember));
        others.clone().for_each(|from| self.await_from(from, BARRIER));
        others.clone().for_each(|to| self.send(to, BARRIER, 0.0, Then::Remember));
        others.for_each(|to| self.await_to(to, BARRIER));
    }

    /// A gather, and a reduction: the root receives the bytes of all others at once.
    pub(crate) fn gather(&mut self, root: usize, bytes: f64) {
        let me = self.rank;
        self.exchange(|from| me == root && from != root, |to| (me != root && to == root).then_some(bytes));
    }

    /// A scatter: the root sends each other rank its bytes at once.
    pub(crate) fn scatter(&mut self, root: usize, bytes: impl Fn(usize) -> f64) {
        let me = self.rank;
        self.exchange(|from| from == root, |to| (me == root).then(|| bytes(to)));
    }

    /// Every rank sends each other rank its bytes, all at once (allgather, alltoallv, linear alltoall).
    pub(crate) fn exchange_all(&mut self, bytes: impl Fn(usize) -> f64) {
        self.exchange(|_| true, |to| Some(bytes(to)));
    }

    /// Partial sums: every rank sends to all higher ranks at once.
    pub(crate) fn scan(&mut self, bytes: f64) {
        let me = self.rank;
        self.exchange(|from| from < me, |to| (to > me).then_some(bytes));
    }

    /// A reduction to rank 0, which then broadcasts the result.
    pub(crate) fn allreduce(&mut self, bytes: f64) {
        self.gather(0, bytes);
        self.broadcast(0, bytes);
    }

    /// An exchange of `bytes` with each rank, by the algorithm that Open MPI's table has for this number of
    /// ranks and bytes.
    pub(crate) fn alltoall(&mut self, bytes: f64) {
        match alltoall_of(self.ranks, bytes) {
            AllToAll::Linear => self.exchange_all(|_| bytes),
            AllToAll::Pairs => self.alltoall_by_pairs(bytes),
            AllToAll::Bruck => self.alltoall_of_bruck(bytes),
        }
    }

    /// In each step, ranks whose numbers differ in the same bits exchange. SimGrid refuses numbers of ranks
    /// that are not powers of two; here each rank then sends to the next but i and receives from the
    /// previous but i.
    fn alltoall_by_pairs(&mut self, bytes: f64) {
        let (me, ranks) = (self.rank, self.ranks);
        for i in 1..ranks {
            match ranks.is_power_of_two() {
                true => self.send_and_receive(me ^ i, bytes, me ^ i, STEP),
                false => self.send_and_receive((me + i) % ranks, bytes, (me + ranks - i) % ranks, STEP),
            }
        }
    }

    /// In step k, a rank passes on all blocks whose numbers have bit k set.
    fn alltoall_of_bruck(&mut self, bytes: f64) {
        let (me, ranks) = (self.rank, self.ranks);
        let mut bit = 1;
        while bit < ranks {
            let blocks = (1..ranks).filter(|block| block & bit != 0).count();
            let (to, from) = ((me + bit) % ranks, (me + ranks - bit) % ranks);
            self.send_and_receive(to, blocks as f64 * bytes, from, STEP);
            bit <<= 1;
        }
    }

    /// A reduction whose result is scattered, `counts[r]` elements of `element` bytes to rank r. Equal parts:
    /// a reduction to rank 0, then a scatter.
    pub(crate) fn reduce_scatter(&mut self, counts: &[f64], element: f64) {
        let bytes: &[f64] = &counts.iter().map(|count| count * element).collect::<Vec<_>>();
        let total: f64 = bytes.iter().sum();
        if bytes.iter().all(|part| *part == bytes[0]) {
            self.gather(0, total);
            self.scatter(0, |to| bytes[to]);
        } else if counts.iter().sum::<f64>() > REDUCE_SCATTER_PAIRS {
            for i in 1..self.ranks {
                let (to, from) = ((self.rank + i) % self.ranks, (self.rank + self.ranks - i) % self.ranks);
                self.send_and_receive(to, bytes[to], from, STEP);
            }
        } else {
            self.reduce_scatter_by_doubling(bytes, total);
        }
    }

    /// In step k, the groups of 2^k ranks exchange with their neighbour group all that the neighbour does not
    /// have yet. Where there is no such rank in an incomplete group, a rank gets the data within its own.
    fn reduce_scatter_by_doubling(&mut self, bytes: &[f64], total: f64) {
        let (me, ranks) = (self.rank, self.ranks);
        let without = |root: usize, mask: usize| {
            let own: f64 = bytes[root.min(ranks)..(root + mask).min(ranks)].iter().sum();
            total - own
        };
        let mut mask = 1;
        while mask < ranks {
            let peer = me ^ mask;
            let (my_root, peer_root) = (me & !(mask - 1), peer & !(mask - 1));
            if peer < ranks {
                self.send_and_receive(peer, without(my_root, mask), peer, STEP);
            }
            if peer_root + mask > ranks {
                let complete = ranks.saturating_sub(my_root + mask);
                let mut inner = mask >> 1;
                while inner > 0 {
                    let other = me ^ inner;
                    let first_without = (me & !(2 * inner - 1)) + complete;
                    if other > me && me < first_without && other >= first_without && other < ranks {
                        self.send(other, STEP, without(peer_root, mask), Then::Wait);
                    } else if other < me && other < first_without && me >= first_without {
                        self.receive(other, STEP, Then::Wait);
                    }
                    inner >>= 1;
                }
            }
            mask <<= 1;
        }
    }

    /// Sends to a rank and receives from a rank at once, as `MPI_Sendrecv`.
    pub(crate) fn send_and_receive(&mut self, to: usize, bytes: f64, from: usize, tag: u64) {
        if to == self.rank && from == self.rank {
            return;
        }
        self.send(to, tag, bytes, Then::Remember);
        self.receive(from, tag, Then::Remember);
        self.await_to(to, tag);
        self.await_from(from, tag);
    }

    /// Posts receives from the ranks that `from` accepts and sends of the bytes of `to`, and waits for all.
    fn exchange(&mut self, from: impl Fn(usize) -> bool, to: impl Fn(usize) -> Option<f64>) {
        let me = self.rank;
        let others = (0..self.ranks).filter(|other| *other != me);
        let sources = others.clone().filter(|other| from(*other));
        let sends = others.filter_map(|other| to(other).map(|bytes| (other, bytes)));
        sources.clone().for_each(|from| self.receive(from, EXCHANGE, Then::Remember));
        sends.clone().for_each(|(to, bytes)| self.send(to, EXCHANGE, bytes, Then::Remember));
        sources.for_each(|from| self.await_from(from, EXCHANGE));
        sends.for_each(|(to, _)| self.await_to(to, EXCHANGE));
    }

    fn send(&mut self, to: usize, tag: u64, bytes: f64, then: Then) {
        let load = Load { horizontal: bytes, vertical: 0.0 };
        self.script.push(Action::Send { to: Rank(to), tag, load, then });
    }

    fn receive(&mut self, from: usize, tag: u64, then: Then) {
        self.script.push(Action::Receive { from: Rank(from), tag, then });
    }

    fn await_from(&mut self, from: usize, tag: u64) {
        self.script.push(Action::Await { from: Rank(from), to: Rank(self.rank), tag });
    }

    fn await_to(&mut self, to: usize, tag: u64) {
        self.script.push(Action::Await { from: Rank(self.rank), to: Rank(to), tag });
    }
}

/// The algorithms of `alltoall`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AllToAll {
    Linear,
    Pairs,
    Bruck,
}

/// The algorithm for this number of ranks and bytes to each of them: the table of Open MPI 4 as of 2022, in
/// which SimGrid has one algorithm for "linear", "linear with synchronisation" and "two processes".
fn alltoall_of(ranks: usize, bytes: f64) -> AllToAll {
    use AllToAll::{Bruck, Linear, Pairs};
    /// From this number of ranks on: by the first limit that the bytes are below; then the last.
    type Row = (usize, &'static [(f64, AllToAll)], AllToAll);
    const TABLE: [Row; 9] = [
        (0, &[], Linear),
        (
            2,
            &[
                (2.0, Pairs),
                (4.0, Linear),
                (16.0, Pairs),
                (64.0, Linear),
                (256.0, Pairs),
                (4096.0, Linear),
                (32_768.0, Pairs),
                (1_048_576.0, Linear),
            ],
            Pairs,
        ),
        (3, &[(524_288.0, Linear), (1_048_576.0, Pairs)], Linear),
        (8, &[], Linear),
        (16, &[(4.0, Linear), (512.0, Bruck)], Linear),
        (32, &[(512.0, Bruck)], Linear),
        (64, &[(1024.0, Bruck), (262_144.0, Linear)], Pairs),
        (256, &[(1024.0, Bruck), (32_768.0, Linear)], Pairs),
        (512, &[(512.0, Bruck), (262_144.0, Linear)], Pairs),
    ];
    const LARGE: [Row; 3] = [
        (1024, &[(512.0, Bruck)], Linear),
        (2048, &[(1024.0, Bruck)], Linear),
        (4096, &[(2048.0, Bruck)], Linear),
    ];
    let rows = TABLE.iter().chain(&LARGE);
    let (_, limits, beyond) = rows.take_while(|row| row.0 <= ranks).last().unwrap_or(&TABLE[0]);
    limits.iter().find(|(limit, _)| bytes < *limit).map_or(*beyond, |(_, algorithm)| *algorithm)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// The bytes that each rank sends to each other, where every message that is sent is received.
    fn sent(ranks: usize, part: impl Fn(&mut Member<'_>)) -> BTreeMap<(usize, usize), Vec<f64>> {
        let mut sent: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
        let mut received: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        for rank in 0..ranks {
            let mut script = Vec::new();
            part(&mut Member { rank, ranks, script: &mut script });
            for action in script {
                match action {
                    Action::Send { to, load, .. } => {
                        sent.entry((rank, to.0)).or_default().push(load.horizontal);
                    }
                    Action::Receive { from, .. } => *received.entry((from.0, rank)).or_default() += 1,
                    _ => {}
                }
            }
        }
        let counts: BTreeMap<_, _> = sent.iter().map(|(pair, bytes)| (*pair, bytes.len())).collect();
        assert_eq!(counts, received, "{ranks} ranks");
        assert!(sent.keys().all(|(from, to)| from != to), "{ranks} ranks");
        sent
    }

    /// Every rank but the root receives once, from a rank that sends to it.
    #[test]
    fn a_tree_reaches_everybody_once() {
        for ranks in 1..20 {
            for root in 0..ranks {
                let sent = sent(ranks, |member| member.broadcast(root, 7.0));
                let mut reached: Vec<usize> = sent.keys().map(|(_, to)| *to).chain([root]).collect();
                reached.sort_unstable();
                assert_eq!(reached, (0..ranks).collect::<Vec<_>>(), "{ranks} from {root}");
            }
        }
    }

    /// Every pattern carries what its operation has to carry, and each message has both its ends.
    #[test]
    fn every_rank_gets_its_bytes() {
        for ranks in 1..12 {
            let pairs = ranks * (ranks - 1);
            for bytes in [1.0, 100.0, 600_000.0, 2e6] {
                let sent = sent(ranks, |member| member.alltoall(bytes));
                assert!(sent.values().all(|list| list[..] == [bytes]), "{ranks} ranks, {bytes} bytes");
                assert_eq!(sent.len(), pairs);
            }
            assert_eq!(sent(ranks, |member| member.scan(8.0)).len(), pairs / 2);
            assert_eq!(sent(ranks, |member| member.barrier()).len(), 2 * (ranks - 1));
            let gathered = sent(ranks, |member| member.gather(ranks - 1, 8.0));
            assert!(gathered.keys().all(|(_, to)| *to == ranks - 1) && gathered.len() == ranks - 1);
            for scale in [1.0, 1e6] {
                let parts: Vec<f64> = (0..ranks).map(|r| scale * (1 + r % 3) as f64).collect();
                sent(ranks, |member| member.reduce_scatter(&parts, 8.0));
            }
        }
        // Each rank of 16 sends 8 of the 16 blocks four times.
        let passed = sent(16, |member| member.alltoall(100.0));
        assert_eq!(passed.len(), 64);
        assert!(passed.values().all(|list| list[..] == [800.0]));
    }

    #[test]
    fn alltoall_changes_where_the_table_says() {
        for (ranks, bytes, algorithm) in [
            (2, 1.0, AllToAll::Pairs),
            (2, 2.0, AllToAll::Linear),
            (2, 1_048_575.0, AllToAll::Linear),
            (2, 1_048_576.0, AllToAll::Pairs),
            (7, 524_288.0, AllToAll::Pairs),
            (8, 600_000.0, AllToAll::Linear),
            (16, 4.0, AllToAll::Bruck),
            (31, 512.0, AllToAll::Linear),
            (511, 32_768.0, AllToAll::Pairs),
            (1023, 32_768.0, AllToAll::Linear),
            (1024, 1e9, AllToAll::Linear),
            (5000, 2047.0, AllToAll::Bruck),
        ] {
            assert_eq!(alltoall_of(ranks, bytes), algorithm, "{ranks} ranks, {bytes} bytes");
        }
    }
}
