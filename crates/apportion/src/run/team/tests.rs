//! Every number is done once, by threads that stay; a panic on any of them is the worker's.

use super::*;
use crate::matrix::Matrix;
use std::sync::Barrier;
use std::thread::ThreadId;

fn cores(threads: usize) -> Vec<usize> {
    vec![0; threads]
}

#[test]
fn every_number_is_done_once_however_many_threads_there_are() {
    for threads in [1, 2, 3, 7] {
        let _thread = WorkerThread::on(&cores(threads));
        with_team(threads, |team| {
            assert_eq!(team.threads(), threads);
            for count in [0, 1, 2, 5, 100, 1000] {
                let done: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
                team.share(count, &|numbers| {
                    numbers.for_each(|i| {
                        done[i].fetch_add(1, Ordering::Relaxed);
                    });
                });
                assert!(done.iter().all(|count| count.load(Ordering::Relaxed) == 1), "{threads}: {count}");
            }
        })
        .unwrap();
    }
}

/// The helpers of a team, found by a job in which all of its threads meet.
fn threads_of(team: &ThreadTeam) -> BTreeSet<String> {
    let (all, ids) = (Barrier::new(team.threads()), Mutex::new(BTreeSet::new()));
    let name = |id: ThreadId| format!("{id:?}");
    team.share(team.threads(), &|numbers| {
        for _ in numbers {
            locked(&ids).insert(name(std::thread::current().id()));
            all.wait();
        }
    });
    let mut ids = std::mem::take(&mut *locked(&ids));
    ids.remove(&name(std::thread::current().id()));
    ids
}

/// Helpers stay from run to run, and with them what the worker packs into. Their cores are of this test alone.
#[test]
fn helpers_outlive_the_worker() {
    let cores = [0, 0, 1 << 20];
    let run = || {
        std::thread::scope(|scope| {
            let worker = scope.spawn(|| {
                let _thread = WorkerThread::on(&cores);
                with_team(3, threads_of).unwrap()
            });
            worker.join().unwrap()
        })
    };
    let first = run();
    assert_eq!(first.len(), 2);
    // Other tests may have had the place of the idle team in the meantime.
    assert!((0..20).any(|_| run() == first || run() == run()));
}

#[test]
fn two_workers_on_the_same_cores_have_a_team_each() {
    let both = Barrier::new(2);
    let run = || {
        let _thread = WorkerThread::on(&cores(2));
        with_team(2, |team| {
            both.wait();
            threads_of(team)
        })
        .unwrap()
    };
    let teams = std::thread::scope(|scope| {
        let workers = [scope.spawn(run), scope.spawn(run)];
        workers.map(|worker| worker.join().unwrap())
    });
    assert!(teams[0].is_disjoint(&teams[1]));
}

#[test]
fn a_panic_of_any_thread_is_the_workers() {
    for threads in [1, 2, 3] {
        let _thread = WorkerThread::on(&cores(threads));
        for bad in [0, 57, 99] {
            let panic = with_team(threads, |team| {
                catch_unwind(AssertUnwindSafe(|| {
                    team.share(100, &|numbers| {
                        assert!(!numbers.clone().contains(&bad), "number {bad} is bad");
                    });
                }))
                .unwrap_err()
            });
            let text = panic.unwrap().downcast::<String>().unwrap();
            assert_eq!(*text, format!("number {bad} is bad"));
            // The team is as good as before.
            let sum = AtomicUsize::new(0);
            let add = |numbers: Range<usize>| {
                sum.fetch_add(numbers.sum::<usize>(), Ordering::Relaxed);
            };
            with_team(threads, |team| team.share(100, &add)).unwrap();
            assert_eq!(sum.into_inner(), 4950);
        }
    }
}

#[test]
fn work_that_shares_work_does_so_alone() {
    let _thread = WorkerThread::on(&cores(2));
    let sum = AtomicUsize::new(0);
    with_team(2, |team| {
        let here = std::thread::current().id();
        team.share(10, &|numbers| {
            for i in numbers {
                // A team belongs to one thread.
                if std::thread::current().id() == here {
                    WORKER.with_borrow(|worker| assert!(worker.is_some()));
                }
                sum.fetch_add(i, Ordering::Relaxed);
            }
        });
        let inner = AtomicUsize::new(0);
        let outer: &(dyn Fn(Range<usize>) + Sync) = &|numbers| {
            inner.fetch_add(numbers.len(), Ordering::Relaxed);
        };
        assert!(!team.is_busy.replace(true));
        team.share(10, outer);
        team.is_busy.set(false);
        assert_eq!(inner.into_inner(), 10);
    })
    .unwrap();
    assert_eq!(sum.into_inner(), 45);
}

/// The worker's clock counts the mean thread, also of one that did nothing.
#[test]
fn the_clock_counts_the_mean_thread() {
    let busy = |milliseconds: u64| {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(milliseconds) {
            std::hint::spin_loop();
        }
    };
    let _thread = WorkerThread::on(&cores(2));
    let (begin, wall) = (clock::worker_cpu_seconds(), Instant::now());
    // Two threads on one core: each gets half of it.
    with_team(2, |team| {
        let both = Barrier::new(2);
        team.timed(|team| {
            team.share(2, &|numbers| {
                both.wait();
                numbers.for_each(|_| busy(60));
            });
        });
    })
    .unwrap();
    let (cpu, wall) = (clock::worker_cpu_seconds() - begin, wall.elapsed().as_secs_f64());
    assert!(cpu < 0.95 * wall, "{cpu} of {wall}");
    assert!(cpu > 0.0);
}

/// A team of the engine computes what one thread does.
#[test]
fn a_kernel_has_the_bytes_of_one_thread() {
    let fill = |rows: usize, cols: usize| -> Matrix<f64> {
        let value = |i: usize| (i as f64 * 0.618_033_988_75).fract() - 0.5;
        Matrix::new(rows, cols, (0..rows * cols).map(value).collect())
    };
    let (a, b) = (fill(131, 401), fill(401, 89));
    let product = |threads: usize| {
        let (m, k, n) = (a.rows(), a.cols(), b.cols());
        let mut c = vec![0.25; m * n];
        let (a, b) = (kernels::View::dense(a.as_slice(), m, k), kernels::View::dense(b.as_slice(), k, n));
        let _thread = WorkerThread::on(&cores(threads));
        let kernel = kernels::Kernel::<f64>::plus_times();
        crate::run::parallel::update(kernel, threads, a, b, ViewMut::dense(&mut c, m, n)).unwrap();
        c.into_iter().map(f64::to_bits).collect::<Vec<u64>>()
    };
    let right = product(1);
    assert!([2, 3, 7].into_iter().all(|threads| product(threads) == right));
}
