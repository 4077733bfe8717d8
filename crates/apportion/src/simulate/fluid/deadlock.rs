//! Deadlocks: the cycle of ranks that wait for each other.

use super::engine::{Engine, On};
use crate::error::Error;
use std::collections::BTreeMap;

/// Maximum number of links of a cycle in the error text.
const SHOWN: usize = 12;

/// The error of a simulation in which some ranks are blocked forever. It shows the cycle in which they wait,
/// or the chain that leads to a rank that has ended. O(ranks + messages).
pub(super) fn deadlock<R>(engine: &Engine<'_, R>, names: &[String]) -> Option<Error> {
    let mut rank = engine.ranks.iter().position(|r| !r.ended)?;
    let mut seen: BTreeMap<usize, usize> = BTreeMap::new();
    let mut chain: Vec<(usize, String)> = Vec::new();
    let (from, end) = loop {
        if engine.ranks[rank].ended {
            break (0, ", which has ended");
        }
        if let Some(&place) = seen.get(&rank) {
            break (place, "");
        }
        seen.insert(rank, chain.len());
        let (peer, what) = cause(engine, rank);
        chain.push((rank, format!("{what} {}", names[peer])));
        rank = peer;
    };
    let links = &chain[from..];
    let mut parts: Vec<&str> = links.iter().map(|(_, what)| what.as_str()).collect();
    let skipped = format!("waits for … ({} more) …", parts.len().saturating_sub(SHOWN));
    if parts.len() > SHOWN {
        parts.splice(SHOWN / 2..parts.len() - SHOWN / 2, [skipped.as_str()]);
    }
    Some(Error::infeasible(
        format!("deadlock: {} {}{end}", names[links[0].0], parts.join(", which ")),
        "change the order of sends and receives, or let small sends be eager (`eager`)",
    ))
}

/// The rank that a blocked rank waits for, and the reason. A receiver waits for its sender, and a sender for
/// its receiver.
fn cause<R>(engine: &Engine<'_, R>, rank: usize) -> (usize, String) {
    let (_, on) = engine.ranks[rank].blocked.expect("a rank that has not ended is blocked");
    let message = match on {
        On::Message { id, .. } => engine.messages.get(id),
        On::Sends | On::All | On::Work => {
            let sends = |from: u32| from as usize == rank;
            let mine = |m: &&super::messages::Message| {
                (sends(m.from) && !m.sent.is_nan() && !m.detached)
                    || (on == On::All && m.to as usize == rank && !m.received.is_nan())
            };
            engine.messages.unfinished().find(mine).expect("it waits for something that it has posted")
        }
    };
    let (bytes, tag) = (message.bytes, message.tag);
    if message.from as usize == rank {
        (message.to as usize, format!("waits to send {bytes} bytes with tag {tag} to"))
    } else {
        (message.from as usize, format!("waits for tag {tag} from"))
    }
}
