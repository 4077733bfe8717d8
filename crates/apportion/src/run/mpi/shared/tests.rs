//! Two ranks in one process: each opens the other's file as another process would.

use super::*;

fn pair() -> [SharedMemory; 2] {
    let files = [Mine::new().unwrap(), Mine::new().unwrap()];
    let addresses = files.each_ref().map(Mine::address);
    files.map(|mine| mine.with(&addresses).unwrap())
}

/// Sends words that begin with `first` to rank 1.
fn sent(from: &SharedMemory, words: usize, first: u64) -> ([u64; NOTICE], Sent) {
    let mut message = from.claim(words).unwrap();
    assert_eq!(message.words().len(), words);
    message.words().iter_mut().zip(first..).for_each(|(word, value)| *word = value);
    message.send()
}

#[test]
fn what_was_packed_arrives_and_its_memory_is_used_again() {
    let [sender, receiver] = pair();
    let mut places = Vec::new();
    for turn in 0..5 {
        let (notice, message) = sent(&sender, 20_000, turn);
        assert!(!message.is_taken());
        let came = receiver.take(0, notice, 20_000).unwrap().unwrap();
        assert!(message.is_taken());
        assert!(came.words().iter().copied().eq(turn..turn + 20_000));
        places.push(notice[0]);
        // While this one is read, the next message has other memory.
        let (other, _) = sent(&sender, 20_000, 7);
        assert_ne!(other[0], notice[0]);
        assert_eq!(came.words()[0], turn);
        drop(receiver.take(0, other, 20_000).unwrap().unwrap());
    }
    assert!(places.iter().all(|place| place < &(10 * GRAIN)), "{places:?}");
    assert_eq!(sender.mine.segments.lock().unwrap().all.len(), 2);
}

#[test]
fn a_longer_message_takes_the_place_of_a_shorter_one() {
    let [sender, receiver] = pair();
    for words in [1, 10_000, 20_000, 40_000, 15_000, 0] {
        let (notice, message) = sent(&sender, words, 3);
        let came = receiver.take(0, notice, words).unwrap().unwrap();
        assert!(came.words().iter().copied().eq(3..3 + words as u64));
        drop(came);
        // Given back and claimed again, it is still taken.
        let next = sender.claim(words).unwrap();
        assert!(message.is_taken());
        let (notice, _) = next.send();
        drop(receiver.take(0, notice, words).unwrap().unwrap());
        assert_eq!(sender.mine.segments.lock().unwrap().all.len(), 1, "{words}");
    }
    // The memory of the shorter ones was returned.
    let blocks = fstat(&sender.mine.file).unwrap().st_blocks as u64 * 512;
    assert!(blocks <= 40_000 * 8 + 2 * GRAIN, "{blocks}");
}

#[test]
fn what_is_reserved_is_there_and_free() {
    let [sender, receiver] = pair();
    sender.reserve(&[30_000, 10, 30_000]).unwrap();
    let blocks = fstat(&sender.mine.file).unwrap().st_blocks as u64 * 512;
    assert!(blocks >= 2 * 30_000 * 8, "{blocks}");
    let (first, _) = sent(&sender, 30_000, 1);
    let (second, _) = sent(&sender, 30_000, 2);
    assert_eq!(sender.mine.segments.lock().unwrap().all.len(), 3);
    for (notice, value) in [(first, 1), (second, 2)] {
        assert_eq!(receiver.take(0, notice, 30_000).unwrap().unwrap().words()[0], value);
    }
    // What was used is not written again.
    sender.reserve(&[30_000]).unwrap();
    assert_eq!(sender.claim(30_000).unwrap().words()[1], 2);
}

#[test]
fn a_notice_of_another_message_takes_nothing() {
    let [sender, receiver] = pair();
    let (notice, message) = sent(&sender, 100, 0);
    let [place, bytes, number] = notice;
    let wrong = [
        [place + GRAIN, bytes, number],
        [place + 8, bytes, number],
        [place, bytes + GRAIN, number],
        [place, 0, number],
        [u64::MAX - GRAIN + 1, GRAIN, number],
        [place, bytes, number + 1],
    ];
    for wrong in wrong {
        assert!(receiver.take(0, wrong, 100).unwrap().is_none(), "{wrong:?}");
    }
    assert!(receiver.take(0, notice, 99).unwrap().is_none());
    assert!(!message.is_taken());
    let came = receiver.take(0, notice, 100).unwrap();
    // Twice is once too often.
    assert!(came.is_some() && receiver.take(0, notice, 100).unwrap().is_none());
}

#[test]
fn only_the_file_of_that_name_is_opened() {
    let mine = Mine::new().unwrap();
    let [process, descriptor, name] = mine.address();
    assert!(Theirs::open([process, descriptor, name]).is_some());
    assert!(Theirs::open([process, descriptor, name ^ 1]).is_none());
    assert!(Theirs::open([process, 0, name]).is_none());
    assert!(Theirs::open([0, descriptor, name]).is_none());
}
