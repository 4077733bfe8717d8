//! Every order in which ranks can meet: no message is lost or taken twice, and a failure wakes who waits.

use super::*;
use loom::thread;

fn ranks<const N: usize>() -> [ThreadRank; N] {
    let boxes = (0..N).map(|_| Mailbox::default()).collect();
    let shared = Arc::new(Shared { boxes, failed: AtomicBool::new(false) });
    std::array::from_fn(|rank| ThreadRank { shared: shared.clone(), rank })
}

fn received(rank: &ThreadRank, from: usize) -> u64 {
    let mut transfer = rank.start_receive(vec![0], from, 5);
    while !rank.is_done(&mut transfer).unwrap() {
        rank.wait_for_news(&transfer);
    }
    transfer.into_words()[0]
}

#[test]
fn messages_arrive_once_and_in_order() {
    loom::model(|| {
        let [one, other] = ranks();
        let sender = thread::spawn(move || {
            let _ = other.start_send(vec![10], 0, 5);
            let _ = other.start_send(vec![11], 0, 5);
            received(&other, 0)
        });
        let _ = one.start_send(vec![20], 1, 5);
        assert_eq!((received(&one, 1), received(&one, 1)), (10, 11));
        assert_eq!(sender.join().unwrap(), 20);
    });
}
