//! The reasons for a forecast: waits and their causes, as text and JSON.

use apportion::geometry::Rank;
use apportion::record::CriticalPath;
use apportion::simulate::{Cause, Doing, History, Wait};
use apportion::units::{show_bytes, show_count, show_seconds};
use apportion_report::{pairs, table};
use serde_json::{Value, json};

/// Maximum number of waits, and of links of the chain, in the text.
const SHOWN: usize = 24;

/// One JSON object: the waits of a processor and the chain that ends the run.
pub fn json(history: &History, rank: Rank, names: &[String]) -> Value {
    let wait = |w: &Wait| {
        json!({"step": w.step, "from": names[w.from.0], "to": names[w.to.0], "tag": w.tag, "bytes": w.bytes,
               "since": w.since, "until": w.until, "sent": w.sent, "started": w.started,
               "received": if w.received.is_nan() { Value::Null } else { w.received.into() }})
    };
    let cause = |c: &Cause| {
        let mut object = match &c.what {
            Doing::Work(rank) => json!({"what": "work", "processor": names[rank.0]}),
            Doing::Queue(w) => json!({"what": "queue", "message": wait(w)}),
            Doing::Transfer(w) => json!({"what": "transfer", "message": wait(w)}),
        };
        object["start"] = c.start.into();
        object["end"] = c.end.into();
        object
    };
    let last = history.last();
    json!({"processor": names[rank.0], "ends": history.ends[rank.0],
           "waits": history.waits[rank.0].iter().map(wait).collect::<Vec<_>>(),
           "last": names[last.0], "chain": history.chain(last).iter().map(cause).collect::<Vec<_>>()})
}

/// The same as tables: the longest of many waits, the two ends of a long chain, and the sum by hand. An
/// element has `element` bytes, if messages hold elements.
pub fn text(history: &History, rank: Rank, names: &[String], element: Option<u64>) -> String {
    let waits = &history.waits[rank.0];
    let waited: f64 = waits.iter().map(|w| w.until - w.since).sum();
    let mut shown: Vec<&Wait> = waits.iter().collect();
    if shown.len() > SHOWN {
        shown.sort_by(|a, b| (b.until - b.since).total_cmp(&(a.until - a.since)));
        shown.truncate(SHOWN);
        shown.sort_by(|a, b| a.since.total_cmp(&b.since));
    }
    let mut out = format!(
        "\n{} finishes at {} and waits {} times, {} in total{}\n",
        names[rank.0],
        show_seconds(history.ends[rank.0]),
        waits.len(),
        show_seconds(waited),
        if waits.len() > SHOWN { format!("; the {SHOWN} longest:") } else { String::new() },
    );
    let rows = shown.iter().map(|w| {
        let ends = [w.from, w.to].map(|rank| names[rank.0].clone());
        let times = [w.since, w.until - w.since, w.sent, w.started].map(show_seconds);
        [ends.to_vec(), vec![w.tag.to_string(), show_bytes(w.bytes)], times.to_vec()].concat()
    });
    if !waits.is_empty() {
        out += &table(&["from", "to", "tag", "size", "at", "waits", "sent", "started"], rows);
        out += "(tag: pairs a message's ends; sent: posted by its sender; started: link free)\n";
    }
    let last = history.last();
    let chain = history.chain(last);
    let path = CriticalPath::of_chain(&chain, &names[last.0]);
    let plural = if chain.len() == 1 { "interval leads" } else { "intervals lead" };
    out += &format!(
        "\nCritical path: {} {plural} to the end of {}; a delay of any of them delays the end\n",
        chain.len(),
        names[last.0]
    );
    out += &pairs(&[
        ("work", show_seconds(path.work)),
        ("transfer", show_seconds(path.transfer)),
        ("queue", show_seconds(path.queue)),
    ]);
    out += &by_hand(&path, history.ends[last.0], element);
    let half = if chain.len() > SHOWN { SHOWN / 2 } else { chain.len() };
    let (head, tail) = (&chain[..half], &chain[half.max(chain.len() - half.min(chain.len()))..]);
    let row = |c: &Cause| {
        let what = match &c.what {
            Doing::Work(rank) => format!("{} works", names[rank.0]),
            Doing::Queue(w) => format!("{} waits for its link", message(w, names)),
            Doing::Transfer(w) => format!("{} is transferred", message(w, names)),
        };
        vec![what, show_seconds(c.start), show_seconds(c.end - c.start)]
    };
    let gap = (chain.len() > SHOWN)
        .then(|| vec![format!("… {} more …", chain.len() - 2 * half), String::new(), String::new()]);
    out += "\n";
    out += &table(&["what", "at", "takes"], head.iter().map(row).chain(gap).chain(tail.iter().map(row)));
    out
}

/// The sum of the chain, from sizes and times: what a reader can check with the platform file.
fn by_hand(path: &CriticalPath, end: f64, element: Option<u64>) -> String {
    let CriticalPath { work, queue, transfer, bytes, .. } = *path;
    if transfer <= 0.0 {
        return String::new();
    }
    let size = match element {
        Some(element) if element > 0 && (bytes / element as f64).fract() == 0.0 => {
            format!("{} elements x {element} B", show_count((bytes / element as f64) as u128))
        }
        _ => format!("{} B", show_count(bytes as u128)),
    };
    let speed = show_bytes(bytes / transfer);
    let queued = if queue > 0.0 { format!(" + queue {}", show_seconds(queue)) } else { String::new() };
    let lines = [
        format!("{size} / {speed}/s (latencies included) = {}", show_seconds(transfer)),
        format!(
            "transfer {} + work {}{queued} = {}",
            show_seconds(transfer),
            show_seconds(work),
            show_seconds(end)
        ),
    ];
    pairs(&[("by hand", lines[0].clone()), ("", lines[1].clone())])
}

fn message(w: &Wait, names: &[String]) -> String {
    format!("{} from {} to {}, tag {}", show_bytes(w.bytes), names[w.from.0], names[w.to.0], w.tag)
}
