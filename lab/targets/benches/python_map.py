"""`apportion.map` beside `concurrent.futures` and joblib: `python python_map.py [ROUNDS [CASE…]]`.

Each case is run by all rivals in turn, as often as ROUNDS says (7), on processes that stay; the table has the median
seconds of each, and those of ours relative to the best rival. In `sleep` cases an item sleeps, so that other programs
do not matter; in others it computes. `unequal` is two workers of which one takes four times as long; `busy` has a
program beside them that takes a core. It needs the packages apportion and joblib.
"""

import itertools
import math
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import apportion
import joblib

WORKERS = 2
CHUNKS = (1, 4, 16, 64)
SLOWER = 4


def sleep(item):
    time.sleep(item)


def spin(item):
    end = time.thread_time() + item
    while time.thread_time() < end:
        math.sqrt(item)


def unequal(item):
    """The first process that finds this place is slow."""
    place, seconds = item
    own = f"{place}-{os.getpid()}"
    if not os.path.exists(place):
        Path(own).write_text(str(os.getpid()))
        try:
            os.link(own, place)
        except FileExistsError:
            pass
    slow = Path(place).read_text() == str(os.getpid())
    time.sleep(seconds * (SLOWER if slow else 1))


def trivial(item):
    return item + 1


def occupy():
    while True:
        math.sqrt(2)


CASES = {
    "30 x 50 ms, sleep": (sleep, [0.05] * 30),
    "400 x 4 ms, sleep": (sleep, [0.004] * 400),
    "4000 x 0.4 ms, sleep": (sleep, [0.0004] * 4000),
    "100 x 1 to 20 ms, sleep": (sleep, [0.001 * (1 + i % 20) for i in range(100)]),
    "30 x 50 ms, unequal": (unequal, [0.05] * 30),
    "400 x 4 ms, unequal": (unequal, [0.004] * 400),
    "4000 x 0.4 ms, unequal": (unequal, [0.0004] * 4000),
    "30 x 50 ms": (spin, [0.05] * 30),
    "400 x 4 ms": (spin, [0.004] * 400),
    "100,000 trivial": (trivial, range(100_000)),
    "30 x 50 ms, busy": (spin, [0.05] * 30),
    "400 x 4 ms, busy": (spin, [0.004] * 400),
}


def rivals(executor):
    """The ways to map, by name."""
    yield "apportion", lambda f, data: apportion.map(f, data, WORKERS)
    for chunk in CHUNKS:
        yield f"futures {chunk}", lambda f, data, chunk=chunk: list(executor.map(f, data, chunksize=chunk))
    yield "joblib", lambda f, data: joblib.Parallel(WORKERS)(map(joblib.delayed(f), data))


def main(rounds, wanted):
    with ProcessPoolExecutor(WORKERS) as executor, tempfile.TemporaryDirectory() as folder:
        ways = dict(rivals(executor))
        for way in ways.values():
            way(sleep, [0.3] * WORKERS)  # starts the processes
        print(f"| case | {' | '.join(ways)} | ours / best of futures | ours / best |")
        print("| --- " * (len(ways) + 3) + "|")
        for case, (f, data) in CASES.items():
            if wanted and case not in wanted:
                continue
            times = {name: [] for name in ways}
            neighbour = multiprocessing.get_context("fork").Process(target=occupy, daemon=True)
            if "busy" in case:
                neighbour.start()
            for turn in range(rounds):
                order = list(ways)[turn % len(ways) :] + list(ways)[: turn % len(ways)]
                for name in order:
                    if case == "100,000 trivial" and name in ("futures 1", "futures 4") and turn:
                        continue  # They take a minute.
                    items = data
                    if f is unequal:
                        place = os.path.join(folder, f"{case} {name} {turn}")
                        items = list(zip(itertools.repeat(place), data))
                    begin = time.perf_counter()
                    ways[name](f, items)
                    times[name].append(time.perf_counter() - begin)
            if "busy" in case:
                neighbour.terminate()
                neighbour.join()
            medians = {name: statistics.median(all_times) for name, all_times in times.items()}
            futures = min(medians[name] for name in medians if name.startswith("futures"))
            best = min(futures, medians["joblib"])
            cells = " | ".join(f"{seconds:.3f}" for seconds in medians.values())
            ours = medians["apportion"]
            print(f"| {case} | {cells} | {ours / futures:.2f} | {ours / best:.2f} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7, sys.argv[2:])
