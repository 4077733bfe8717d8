"""python3 unequal_cores.py [ROWS]: rows of a picture on unequal cores, a process for each."""

import os
import sys
import time
from multiprocessing import get_context

import apportion
import numpy as np

try:
    from numba import njit
except ImportError:  # The same loops, a hundred times slower.

    def njit(function):
        return function


WIDTH, HEIGHT, DEPTH = 200, 100_000, 60


@njit
def escape(rows):
    """Steps until z * z + c leaves the circle of radius 2, for some rows of the complex plane."""
    steps = np.zeros((len(rows), WIDTH), dtype=np.int32)
    for i in range(len(rows)):
        for j in range(WIDTH):
            c = complex(-2.0 + 2.6 * j / WIDTH, -1.2 + 2.4 * rows[i] / HEIGHT)
            z = 0j
            while steps[i, j] < DEPTH and abs(z) < 2:
                z = z * z + c
                steps[i, j] += 1
    return steps


def some(count):
    """So many rows from all over the picture: those in its middle take longer than those at its edge."""
    return np.random.default_rng(1).permutation(HEIGHT)[:count]


@apportion.measured([5, 20, 80], prepare=some, seconds=0.3, unit="row")
def rows_of(rows):
    return escape(rows)


def part(cores, rows):
    """What one process does, on its own cores."""
    os.sched_setaffinity(0, cores)
    escape(rows[:1])  # numba compiles at the first call.
    begin = time.perf_counter()
    return escape(rows), time.perf_counter() - begin


def main():
    total = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    cores = apportion.processors()
    shares = apportion.shares(total, models=rows_of.measure())
    rows = some(total)
    with get_context("spawn").Pool(len(cores)) as pool:
        jobs = [(own, rows[mine]) for own, mine in zip(cores.values(), shares.slices)]
        parts, seconds = zip(*pool.starmap(part, jobs, chunksize=1))
    assert (np.concatenate(parts) == escape(rows)).all()
    for name, count, forecast, measured in zip(cores, shares, shares.seconds, seconds):
        print(f"{name}: {count} rows, forecast {forecast:.3f} s, measured {measured:.3f} s")


if __name__ == "__main__":
    main()
