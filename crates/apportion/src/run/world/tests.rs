//! Every collective operation against the obvious result, with ranks as threads.

use super::*;
use crate::geometry::{Rect, Span};
use crate::matrix::LocalBlocks;
use proptest::prelude::*;
use std::sync::atomic::AtomicUsize;

const SIZES: [usize; 6] = [1, 2, 3, 5, 8, 17];

fn on<R: Send>(size: usize, work: impl Fn(&World) -> Result<R> + Sync) -> Vec<R> {
    World::threads(size, &Monitor::new(), work).unwrap()
}

/// A few bytes that distinguish ranks; none at every fourth rank.
fn bytes_of(rank: usize) -> Vec<u8> {
    (0..rank % 4 * 5).map(|i| (rank * 31 + i) as u8).collect()
}

#[test]
fn a_broadcast_brings_what_rank_0_gives() {
    for (size, length) in
        SIZES.into_iter().flat_map(|size| [0, 1, 7, 8, 9, 1000].map(|length| (size, length)))
    {
        let wanted: Vec<u8> = (0..length).map(|i| i as u8).collect();
        let given = |rank: usize| if rank == 0 { wanted.clone() } else { bytes_of(rank) };
        for got in on(size, |world| world.broadcast(&given(world.rank()))) {
            assert_eq!(got, wanted, "{size} ranks");
        }
    }
}

#[test]
fn gathered_bytes_are_in_the_order_of_ranks() {
    for size in SIZES {
        let wanted: Vec<Vec<u8>> = (0..size).map(bytes_of).collect();
        let got = on(size, |world| world.gather(&bytes_of(world.rank())));
        assert_eq!(got[0], wanted);
        assert!(got[1..].iter().all(Vec::is_empty));
        for got in on(size, |world| world.all_gather(&bytes_of(world.rank()))) {
            assert_eq!(got, wanted);
        }
    }
}

#[test]
fn numbers_are_combined_element_by_element() {
    for size in SIZES {
        let n = size as u64;
        let found = on(size, |world| {
            let rank = world.rank() as u64;
            let sums = world.all_reduce(&[rank, 1, rank * rank], |x, y| x + y)?;
            let least = world.all_reduce(&[rank as i8 - 3], i8::min)?;
            let none = world.all_reduce(&[] as &[f64], f64::max)?;
            let most = world.all_reduce(&[-(rank as f32), rank as f32], f32::max)?;
            Ok((sums, least, none, most))
        });
        let sums = vec![n * (n - 1) / 2, n, (0..n).map(|rank| rank * rank).sum()];
        for got in found {
            assert_eq!(got, (sums.clone(), vec![-3], vec![], vec![0.0, (size - 1) as f32]));
        }
    }
}

/// Sums of floating-point numbers depend on their order: the order is fixed.
#[test]
fn sums_have_the_same_bits_on_all_ranks_and_each_time() {
    for size in SIZES {
        let run = || -> Vec<Vec<u64>> {
            on(size, |world| {
                let mine = [0.1, 1e16, -3.7e-9]
                    .map(|x| x * (world.rank() as f64 + 0.3) * (-1f64).powi(world.rank() as i32));
                Ok(world.all_reduce(&mine, |x, y| x + y)?.into_iter().map(f64::to_bits).collect())
            })
        };
        let first = run();
        assert!(first.iter().all(|bits| *bits == first[0]), "{size} ranks");
        for _ in 0..10 {
            assert_eq!(run(), first, "{size} ranks");
        }
    }
}

#[test]
fn nobody_leaves_a_barrier_before_all_have_come() {
    for size in SIZES {
        let come = AtomicUsize::new(0);
        on(size, |world| {
            for round in 1..=5 {
                if world.rank() == round % size {
                    std::thread::sleep(Duration::from_millis(3));
                }
                come.fetch_add(1, Ordering::SeqCst);
                world.barrier()?;
                assert!(come.load(Ordering::SeqCst) >= round * size);
            }
            Ok(())
        });
    }
}

/// Messages of one pair and tag arrive in the order of sending, whichever is waited for first.
#[test]
fn words_come_in_order() {
    for size in SIZES.into_iter().skip(1) {
        let found = on(size, |world| {
            let (rank, size) = (world.rank(), world.size());
            let (next, last) = ((rank + 1) % size, (rank + size - 1) % size);
            for i in 0..4 {
                world.send(vec![(rank * 10 + i) as u64; i], next)?;
            }
            let mut early = world.start_receive(vec![0; 0], last, COLLECTIVE);
            let mut late = world.start_receive(vec![0; 1], last, COLLECTIVE);
            world.wait(&mut late)?;
            world.wait(&mut early)?;
            let rest = [world.recv(2, last)?, world.recv(3, last)?];
            Ok((world.exchange(vec![rank as u64], next, 1, last)?, late.into_words(), rest))
        });
        for (rank, (exchanged, late, rest)) in found.into_iter().enumerate() {
            let last = ((rank + size - 1) % size) as u64;
            assert_eq!((exchanged, late), (vec![last], vec![last * 10 + 1]));
            assert_eq!(rest, [vec![last * 10 + 2; 2], vec![last * 10 + 3; 3]]);
        }
    }
}

#[test]
fn one_process_alone_is_a_world_of_one_rank() {
    let world = World::solo(&Monitor::new());
    assert_eq!((world.rank(), world.size(), world.is_solo(), world.processors_here(3)), (0, 1, true, 0..3));
    world.barrier().unwrap();
    assert_eq!(world.broadcast(b"x").unwrap(), b"x");
    assert_eq!(world.gather(b"x").unwrap(), [b"x"]);
    assert_eq!(world.all_gather(b"x").unwrap(), [b"x"]);
    assert_eq!(world.all_reduce(&[2.5], |x, y| x + y).unwrap(), [2.5]);
    let own = Error::infeasible("a", "b").to_string();
    assert_eq!(world.all_ok::<()>(Err(Error::infeasible("a", "b"))).unwrap_err().to_string(), own);
}

/// An error of one rank says which; what all met, or what is about the request, stands alone.
#[test]
fn an_error_of_one_rank_names_it() {
    let said = |failing: &[usize], error: &(dyn Fn(usize) -> Error + Sync)| {
        let outcome = on(3, |world| {
            let rank = world.rank();
            let mine = if failing.contains(&rank) { Err(error(rank)) } else { Ok(()) };
            Ok(world.all_ok(mine).unwrap_err().to_string())
        });
        assert!(outcome.iter().all(|text| *text == outcome[0]), "{outcome:?}");
        outcome[0].clone()
    };
    let missing = |_| Error::input("a.npy", "is not here", "copy it");
    assert_eq!(said(&[1, 2], &missing), "rank 1: a.npy: is not here (copy it)");
    assert_eq!(said(&[0], &missing), "rank 0: a.npy: is not here (copy it)");
    assert_eq!(said(&[0, 1, 2], &missing), "a.npy: is not here (copy it)");
    let each = |rank| Error::input(format!("a-{rank}.npy"), "is damaged", "copy it");
    assert_eq!(said(&[0, 1, 2], &each), "rank 0: a-0.npy: is damaged (copy it)");
    let infeasible = |_| Error::infeasible("no plan fits", "use less");
    assert_eq!(said(&[0], &infeasible), "no plan fits (use less)");
    assert_eq!(said(&[2], &infeasible), "rank 2: no plan fits (use less)");
    assert_eq!(said(&[0], &|_| Error::input("`block`", "is 0", "give more")), "`block`: is 0 (give more)");
}

fn failure(rank: usize) -> Error {
    if rank.is_multiple_of(2) {
        Error::infeasible(format!("rank {rank} failed"), "help it")
    } else {
        Error::input(format!("rank {rank}"), "failed", "help it")
    }
}

#[test]
fn all_ranks_learn_what_the_lowest_failing_one_says() {
    for size in SIZES {
        for failing in [vec![], vec![0], vec![size - 1], vec![size / 2, size - 1], (0..size).collect()] {
            let found = on(size, |world| {
                let rank = world.rank();
                let mine = if failing.contains(&rank) { Err(failure(rank)) } else { Ok(rank) };
                let outcome = world.all_ok(mine).map_err(|e| (e.to_string(), e.exit_code()));
                // The world can still be used.
                assert_eq!(world.all_reduce(&[1usize], |x, y| x + y)?, [size]);
                Ok(outcome)
            });
            for (rank, outcome) in found.into_iter().enumerate() {
                let wanted = match failing.first() {
                    None => Ok(rank),
                    Some(&first) => Err((failure(first).to_string(), failure(first).exit_code())),
                };
                assert_eq!(outcome, wanted, "{failing:?} of {size}");
            }
        }
    }
}

/// The other ranks wait for messages that will not come.
#[test]
fn one_failing_rank_ends_all_with_its_own_error() {
    for (size, culprit) in [(1, 0), (2, 0), (2, 1), (5, 3), (17, 0), (17, 16)] {
        let fail = |world: &World, panics: bool| -> Result<()> {
            if world.rank() == culprit {
                assert!(!panics, "rank {culprit} has had enough");
                return Err(failure(culprit));
            }
            world.recv(1, culprit).map(drop)
        };
        let error = World::threads(size, &Monitor::new(), |world| fail(world, false)).unwrap_err();
        assert_eq!(error.to_string(), failure(culprit).to_string());
        let error = World::threads(size, &Monitor::new(), |world| fail(world, true)).unwrap_err();
        assert!(matches!(error, Error::WorkerLost { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(&format!("rank {culprit}")) && text.contains("has had enough"), "{text}");
    }
}

#[test]
fn a_stop_from_outside_ends_all_waiting() {
    let monitor = Monitor::new();
    let error = std::thread::scope(|scope| {
        let waiting =
            scope.spawn(|| World::threads(3, &monitor, |world| world.recv(1, (world.rank() + 1) % 3)));
        std::thread::sleep(Duration::from_millis(20));
        monitor.stop();
        waiting.join().unwrap().unwrap_err()
    });
    assert!(matches!(error, Error::Interrupted), "{error}");
}

/// At most ceil(log2 p) times the data that a rank needs: k words of payload and two of length.
fn check_received(size: usize, k: usize) {
    let most = u64::from(size.next_power_of_two().ilog2());
    let needs = k as u64 + 2;
    on(size, |world| {
        let counted = |what: &str, needs: u64, job: &dyn Fn() -> Result<()>| {
            let before = world.received_words();
            job()?;
            let received = world.received_words() - before;
            assert!(received <= most * needs, "{what}: rank {} received {received} words", world.rank());
            Ok::<(), Error>(())
        };
        let mine = vec![world.rank() as u64; k];
        counted("broadcast", needs, &|| {
            let got = world.broadcast(bytemuck::cast_slice(&mine))?;
            assert!(got.len() == 8 * k && got.iter().all(|&byte| byte == 0));
            Ok(())
        })?;
        counted("all_reduce", needs, &|| {
            let greatest = world.all_reduce(&mine, u64::max)?;
            assert!(greatest.len() == k && greatest.iter().all(|&x| x == size as u64 - 1));
            Ok(())
        })?;
        counted("barrier", 1, &|| world.barrier())?;
        counted("all_ok", 2, &|| world.all_ok(Ok(())))?;
        // A code and a text of k words.
        counted("all_ok of a failure", needs + 10, &|| {
            let text = "x".repeat(8 * k);
            let mine = if world.rank() > 1 { Err(Error::infeasible(text, "")) } else { Ok(()) };
            assert_eq!(world.all_ok(mine).is_err(), size > 2);
            Ok(())
        })
    });
}

/// Both limits of the measurement at once, a thousand ranks with 100,000 words each, would take more than 3
/// GiB: a thousand ranks have 10,000 words, and 100 ranks 100,000.
#[test]
fn nobody_receives_more_than_log_p_times_what_it_needs() {
    check_received(1000, 10_000);
    check_received(100, 100_000);
    for size in SIZES {
        check_received(size, 100);
    }
}

/// The value that a rank holds at an index.
fn value(rank: usize, i: u64, j: u64) -> i64 {
    (rank as i64 + 1) * 10_000 + (i * 100 + j) as i64
}

fn elements(rect: Rect) -> impl Iterator<Item = (u64, u64)> {
    (rect.rows.start..rect.rows.end).flat_map(move |i| (rect.cols.start..rect.cols.end).map(move |j| (i, j)))
}

fn rects() -> impl Strategy<Value = Vec<Rect>> {
    let span = |most: u64| (0..=most, 0..=most).prop_map(|(x, y)| Span::new(x.min(y), x.max(y)));
    prop::collection::vec((span(9), span(7)).prop_map(|(rows, cols)| Rect::new(rows, cols)), 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    /// Layouts with overlaps and gaps, including empty rectangles: a rank's own elements stay, others come
    /// from the lowest rank that holds them, and elements that no rank holds are zero.
    #[test]
    fn redistribution_is_right_whoever_holds_and_wants_what(
        layouts in prop::collection::vec((rects(), rects()), 1..6),
    ) {
        let holds = |rank: usize, i, j| layouts[rank].0.iter().any(|rect| elements(*rect).any(|at| at == (i, j)));
        let found = on(layouts.len(), |world| {
            let (held, wanted) = &layouts[world.rank()];
            let mine: LocalBlocks<i64> =
                held.iter().map(|rect| (*rect, elements(*rect).map(|(i, j)| value(world.rank(), i, j)).collect())).collect();
            redistribute(world, &mine, wanted)
        });
        for (rank, blocks) in found.into_iter().enumerate() {
            let rects: Vec<Rect> = blocks.iter().map(|(rect, _)| *rect).collect();
            prop_assert_eq!(&rects, &layouts[rank].1);
            for (rect, block) in blocks {
                let expected: Vec<i64> = elements(rect)
                    .map(|(i, j)| {
                        let holder = if holds(rank, i, j) { Some(rank) } else { (0..layouts.len()).find(|&r| holds(r, i, j)) };
                        holder.map_or(0, |holder| value(holder, i, j))
                    })
                    .collect();
                prop_assert_eq!(block, expected, "rank {}", rank);
            }
        }
    }
}

/// From rows to columns, every element that changes its rank travels once. In addition there is a word of
/// length per message, and the exchange of all ranks' rectangles.
#[test]
fn redistribution_moves_each_element_once() {
    let (size, n) = (5, 40);
    on(size, |world| {
        let spans: Vec<Span> = Span::new(0, n).blocks(n / size as u64).collect();
        let (span, all) = (spans[world.rank()], Span::new(0, n));
        let mine = vec![(Rect::new(span, all), vec![1.0f64; (span.len() * n) as usize])];
        let before = world.received_words();
        let got = redistribute(world, &mine, &[Rect::new(all, span)])?;
        assert!(got[0].1.iter().all(|&x| x == 1.0));
        let received = world.received_words() - before;
        let comes = (n - span.len()) * span.len();
        // Twice 4 words for each of 5 rectangles, gathered and broadcast with their lengths.
        assert!((comes..comes + 200).contains(&received), "{received} words for {comes} elements");
        Ok(())
    });
}
