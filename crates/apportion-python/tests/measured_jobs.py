"""Functions for the tests of `measured`: processes import them by name."""

import os
import time

import apportion


@apportion.measured([100, 200], seconds=0.2, unit="tick")
def ticks(count):
    """A thousandth of a millisecond for each tick; the second processor is slower, by its variable."""
    time.sleep(count * 2e-5)
    return count


@apportion.measured([3], prepare=lambda size: [size] * size, seconds=0.05)
def prepared(values):
    assert values == [3, 3, 3]
    time.sleep(1e-3)


@apportion.measured([1], seconds=0.05)
def pinned(_):
    cores = os.sched_getaffinity(0)
    if len(cores) != 1:
        raise RuntimeError(f"runs on cores {cores}")


@apportion.measured([1, 2], seconds=0.05)
def failing(size):
    if size == 2:
        raise ArithmeticError("two\nis too much")


@apportion.measured([1], seconds=0.05)
def dying(_):
    os._exit(3)
