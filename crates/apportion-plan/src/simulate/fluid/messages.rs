//! Messages between posting and arrival: first in, first out per (source, destination, tag).

use std::collections::BTreeMap;

/// No message.
const NONE: u32 = u32::MAX;

/// One message. Unknown times are NaN.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub from: u32,
    pub to: u32,
    pub tag: u64,
    pub(crate) bytes: f64,
    /// Size in units of its path's capacity, without the envelope, and that path; known once it is sent.
    pub(crate) amount: f64,
    pub(crate) path: u32,
    /// Time at which the sender posted it.
    pub(crate) sent: f64,
    /// Time at which the receiver posted it.
    pub(crate) received: f64,
    /// Time at which it started.
    pub(crate) started: f64,
    /// True once it has arrived.
    pub(crate) done: bool,
    /// True if its sender does not wait for it.
    pub(crate) detached: bool,
    /// True if it travels with another message.
    pub(crate) rides: bool,
    /// Number of requests of its two ends that still refer to it.
    pub(crate) holders: u8,
    /// The next message that travels with this one, as a linked list.
    rider: u32,
    next: u32,
}

impl Message {
    /// The next message that travels with this one.
    pub(crate) fn rider(&self) -> Option<u32> {
        (self.rider != NONE).then_some(self.rider)
    }

    /// Sets the next message that travels with this one.
    pub(crate) fn take_along(&mut self, rider: Option<u32>) {
        self.rider = rider.unwrap_or(NONE);
    }

    /// True if the request of this end is complete.
    pub(crate) fn complete(&self, sending: bool) -> bool {
        self.done || (sending && self.detached)
    }
}

/// Messages with one key that only one end has posted.
#[derive(Debug, Clone, Copy)]
struct Queue {
    head: u32,
    tail: u32,
    /// True if the queue holds sends without a receive, false for receives without a send.
    sends: bool,
}

/// A message's sender and tag.
type Key = (u32, u64);

/// The queues of one destination. Most destinations have one at a time: the inline slot avoids a lookup.
#[derive(Debug, Clone, Default)]
struct Unmatched {
    one: Option<(Key, Queue)>,
    more: BTreeMap<Key, Queue>,
}

impl Unmatched {
    fn get(&mut self, key: Key) -> Option<&mut Queue> {
        match &mut self.one {
            Some((known, queue)) if *known == key => Some(queue),
            _ if self.more.is_empty() => None,
            _ => self.more.get_mut(&key),
        }
    }

    fn insert(&mut self, key: Key, queue: Queue) {
        if self.one.is_none() {
            self.one = Some((key, queue));
        } else {
            self.more.insert(key, queue);
        }
    }

    fn remove(&mut self, key: Key) {
        if self.one.is_some_and(|(known, _)| known == key) {
            self.one = None;
        } else {
            self.more.remove(&key);
        }
    }
}

/// All messages, and by destination those that only one end has posted.
#[derive(Debug)]
pub(crate) struct Messages {
    all: Vec<Message>,
    vacant: Vec<u32>,
    unmatched: Vec<Unmatched>,
}

impl Messages {
    pub(crate) fn new(ranks: usize) -> Self {
        Self { all: Vec::new(), vacant: Vec::new(), unmatched: vec![Unmatched::default(); ranks] }
    }

    pub(crate) fn get(&self, id: u32) -> &Message {
        &self.all[id as usize]
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> &mut Message {
        &mut self.all[id as usize]
    }

    /// Every message that has not arrived.
    pub(crate) fn unfinished(&self) -> impl Iterator<Item = &Message> {
        self.all.iter().filter(|m| !m.done)
    }

    /// Posts one end. Returns the oldest message with this key that the other end has posted, or a new one.
    pub(crate) fn post(&mut self, key: (usize, usize, u64), sending: bool) -> u32 {
        let (from, to, tag) = (key.0 as u32, key.1 as u32, key.2);
        let all = &mut self.all;
        let known = self.unmatched[to as usize].get((from, tag));
        if let Some(queue) = known.as_deref().copied().filter(|q| q.sends != sending) {
            let next = all[queue.head as usize].next;
            if next == NONE {
                self.unmatched[to as usize].remove((from, tag));
            } else if let Some(queue) = known {
                queue.head = next;
            }
            return queue.head;
        }
        let message = Message {
            from,
            to,
            tag,
            bytes: 0.0,
            amount: 0.0,
            path: 0,
            sent: f64::NAN,
            received: f64::NAN,
            started: f64::NAN,
            done: false,
            detached: false,
            rides: false,
            holders: 0,
            rider: NONE,
            next: NONE,
        };
        let id = match self.vacant.pop() {
            Some(id) => {
                all[id as usize] = message;
                id
            }
            None => {
                all.push(message);
                all.len() as u32 - 1
            }
        };
        match known {
            Some(queue) => {
                all[queue.tail as usize].next = id;
                queue.tail = id;
            }
            None => {
                let queue = Queue { head: id, tail: id, sends: sending };
                self.unmatched[to as usize].insert((from, tag), queue);
            }
        }
        id
    }

    /// Drops one request's reference to it.
    pub(crate) fn release(&mut self, id: u32) {
        let message = &mut self.all[id as usize];
        message.holders -= 1;
        self.retire(id);
    }

    /// Frees its slot once it has arrived, both ends have posted it and no request refers to it.
    pub(crate) fn retire(&mut self, id: u32) {
        let message = &self.all[id as usize];
        if message.done && message.holders == 0 && !message.received.is_nan() {
            self.vacant.push(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Millions of messages are in flight at once where 10,000 processors exchange all they need.
    #[test]
    fn a_message_takes_72_bytes() {
        assert_eq!(size_of::<Message>(), 72);
    }

    #[test]
    fn first_in_first_out_per_key() {
        let mut messages = Messages::new(2);
        let sent: Vec<u32> = [7, 7, 8].map(|tag| messages.post((0, 1, tag), true)).to_vec();
        assert_eq!(messages.post((0, 1, 8), false), sent[2]);
        assert_eq!(messages.post((0, 1, 7), false), sent[0]);
        assert_eq!(messages.post((0, 1, 7), false), sent[1]);
        let early = messages.post((0, 1, 7), false);
        assert!(!sent.contains(&early));
        assert_eq!(messages.post((0, 1, 7), true), early);
        assert_ne!(messages.post((1, 0, 7), true), early);
    }
}
