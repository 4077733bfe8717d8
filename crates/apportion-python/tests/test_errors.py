"""Errors: one line, in Python's terms, of the kind that Python users expect. Panics are exceptions too."""

from __future__ import annotations

import array
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import apportion
import pytest
from apportion import _native

SQUARE = memoryview(array.array("d", range(16))).cast("B").cast("d", [4, 4])

BAD: list[tuple[type[Exception], str, Callable[[], object]]] = [
    (ValueError, "speeds: no speeds are given", lambda: apportion.shares(10)),
    (
        ValueError,
        "seconds: cannot be combined with speeds",
        lambda: apportion.shares(1, speeds=[1], seconds=[1]),
    ),
    (ValueError, "speeds: there are none", lambda: apportion.shares(10, speeds=[])),
    (ValueError, "speeds: all are 0", lambda: apportion.shares(10, speeds=[0, 0])),
    (ValueError, "-1 is not a positive number", lambda: apportion.shares(10, speeds=[-1])),
    (ValueError, "NaN is not a positive number", lambda: apportion.shares(10, speeds=[float("nan")])),
    (ValueError, "speeds", lambda: apportion.shares(10, speeds=["fast"])),
    (TypeError, "speeds: '9:1' is one text", lambda: apportion.shares(10, speeds="9:1")),
    (TypeError, "units: 1.5 is no whole number", lambda: apportion.shares(1.5, speeds=[1])),
    (ValueError, "units: -1 is out of range", lambda: apportion.shares(-1, speeds=[1])),
    (ValueError, "is more than 2\\^53", lambda: apportion.shares(2**60, speeds=[1])),
    (ValueError, 'unknown method "x"', lambda: apportion.shares(1, speeds=[1], method="x")),
    (
        ValueError,
        "min: 1 numbers for 2 processors",
        lambda: apportion.shares(1, speeds=[1, 1], min=[1]),
    ),
    (RuntimeError, "raise max or max_size", lambda: apportion.shares(10, speeds=[1, 1], max=4)),
    (RuntimeError, "the minimum shares add up to 20", lambda: apportion.shares(10, speeds=[1, 1], min=10)),
    (ValueError, "processors", lambda: apportion.shares(10, speeds=[1, 1], processors=["a"])),
    (ValueError, 'format: unknown format "x"', lambda: apportion.shares(10, speeds=[1]).export("x")),
    (FileNotFoundError, "missing.json", lambda: apportion.shares(10, models="missing.json")),
    (ValueError, "models", lambda: apportion.shares(10, models={"format": "other"})),
    (ValueError, 'method: unknown method "x"', lambda: apportion.layout((4, 4), [1], "x")),
    (ValueError, "shape: has 1 sizes", lambda: apportion.layout([4], [1])),
    (ValueError, "shape: m is zero", lambda: apportion.layout((0, 4), [1])),
    (RuntimeError, "square", lambda: apportion.layout((40, 40), [1, 1, 1], "square-corner")),
    (
        ValueError,
        "latency: the platform describes its network",
        lambda: apportion.layout((4, 4), platform="[[processor]]\nname = 'a'\nspeed = 1\n", latency=1e-5),
    ),
    (ValueError, "nothing to forecast", lambda: apportion.simulate(apportion.layout((4, 4), [1, 1]))),
    (
        ValueError,
        'flow: unknown flow "x"',
        lambda: apportion.simulate(apportion.layout((4, 4), [1]), flow="x"),
    ),
    (ValueError, "along: ", lambda: apportion.sweep((4, 4), "size=1..2", [1, 1])),
    (ValueError, "points: is out of range", lambda: apportion.sweep((4, 4), "ratio=1..2", [1, 1], points=1)),
    (ValueError, "unknown name 'x'", lambda: apportion.matmul(SQUARE, SQUARE, semiring="x")),
    (
        ValueError,
        "A: holds f64, but or-and takes bool or u8",
        lambda: apportion.matmul(SQUARE, SQUARE, semiring="or-and"),
    ),
    (ValueError, "block: 0 is out of range", lambda: apportion.matmul(SQUARE, SQUARE, block=0, speeds=[1])),
    (ValueError, "alpha", lambda: apportion.matmul(SQUARE, SQUARE, semiring="min-plus", alpha=float("nan"))),
    (
        ValueError,
        "C: is 4 x 4, but the product is 2 x 2",
        lambda: apportion.matmul(SQUARE[:2], memoryview(bytes(64)).cast("d", [4, 2]), C=SQUARE),
    ),
    (ValueError, "exponent: -1 is out of range", lambda: apportion.power(SQUARE, -1)),
    (ValueError, "A: is 2 x 4, not square", lambda: apportion.power(SQUARE[:2], 2)),
    (ValueError, "plus-times", lambda: apportion.closure(SQUARE, semiring="plus-times", speeds=[1])),
    (
        ValueError,
        "plus-times has no closure by paths",
        lambda: apportion.closure(SQUARE, semiring="plus-times", predecessors=True),
    ),
    (TypeError, "comm: 5 is no communicator", lambda: apportion.matmul(SQUARE, SQUARE, comm=5)),
    (ValueError, "comm: ", lambda: apportion.matmul(SQUARE, SQUARE, comm=SimpleNamespace(handle=-1))),
    (
        ValueError,
        "no MPI that is initialised",
        lambda: apportion.matmul(SQUARE, SQUARE, comm=SimpleNamespace(handle=0x44000000)),
    ),
    (ValueError, "sizes: there are none", lambda: apportion.measured([])(len)),
    (ValueError, "processors", lambda: apportion.Balancer(10, 0)),
    (ValueError, "units: -1 is out of range", lambda: apportion.Balancer(-1, 2)),
    (TypeError, "processors: 2.5 is no whole", lambda: apportion.Balancer(10, 2.5)),
    (ValueError, "warm_up: -1 is out of range", lambda: apportion.Balancer(10, 2, warm_up=-1)),
    (ValueError, f"warm_up: {1 << 40} is out of range", lambda: apportion.Balancer(10, 2, warm_up=1 << 40)),
    (ValueError, "min: -1 is out of range", lambda: apportion.Balancer(10, 2, min=-1)),
    (ValueError, "counts: -1 is out of range", lambda: apportion.Balancer(10, 2).adopt([-1, 11])),
    (ValueError, "points: -1", lambda: apportion.sweep((9, 9), "ratio=1..2", [1, 1], points=-1)),
    (ValueError, "speeds: there are 1 for 2", lambda: apportion.Balancer(10, 2, speeds=[1])),
    (
        ValueError,
        'processors: "a" is listed twice',
        lambda: apportion.shares(10, speeds=[1, 1], processors=["a", "a"]),
    ),
    (ValueError, 'processors: "1" is listed twice', lambda: apportion.shares(10, speeds={1: 1, "1": 2})),
    (
        ValueError,
        'processors: "a" is listed twice',
        lambda: apportion.layout((9, 9), [1, 1], processors=["a", "a"]),
    ),
    (
        ValueError,
        'processors: "a" is listed twice',
        lambda: apportion.sweep((9, 9), "ratio=1..2", [1, 1], processors=["a", "a"]),
    ),
    (
        ValueError,
        'processors: "a" is listed twice',
        lambda: apportion.shares(
            9, platform="[[processor]]\nname='a'\nspeed=1\n", processors=["a", "a"], speeds=[1, 1]
        ),
    ),
    (ValueError, "processors.*is empty", lambda: apportion.shares(10, speeds=[1], processors=[""])),
    (
        ValueError,
        "processors.*control character",
        lambda: apportion.shares(10, speeds=[1], processors=["a\nb"]),
    ),
    (
        ValueError,
        'speeds: "a" is not in both',
        lambda: apportion.shares(10, speeds={"a": 1}, processors=["b"]),
    ),
    (
        ValueError,
        'max: there is no processor "c"',
        lambda: apportion.shares(1, speeds={"a": 1}, max={"c": 1}),
    ),
    (
        TypeError,
        "speeds: <object object at .* is no number",
        lambda: apportion.shares(10, speeds=[object()]),
    ),
    (ValueError, "speeds: an int is too large", lambda: apportion.shares(10, speeds=[10**400])),
    (
        TypeError,
        "units: a list with 1000 entries is no whole",
        lambda: apportion.shares([1] * 1000, speeds=[1]),
    ),
    (TypeError, "seconds: 'a' is no number", lambda: apportion.shares(10, seconds=["a"])),
    (TypeError, "seconds: .* is no list of sizes", lambda: apportion.shares(10, seconds=[[1, 2]])),
    (TypeError, "method: 5 is no name", lambda: apportion.shares(10, speeds=[1], method=5)),
    (TypeError, "models: 5 is no file", lambda: apportion.shares(10, models=5)),
    (TypeError, "shape: 5 is no shape", lambda: apportion.layout(5, [1])),
    (TypeError, "least: is the old name of min", lambda: apportion.shares(9, speeds=[1], min=1, least=1)),
    (
        ValueError,
        'algorithm: unknown algorithm "x"',
        lambda: apportion.closure(SQUARE, algorithm="x", speeds=[1]),
    ),
]


@pytest.mark.parametrize(
    ("kind", "words", "call"), BAD, ids=[words or str(i) for i, (_, words, _) in enumerate(BAD)]
)
def test_bad_arguments_are_told_in_one_line(
    kind: type[Exception], words: str, call: Callable[[], object]
) -> None:
    with pytest.raises(kind, match=words) as caught:
        call()
    line = str(caught.value)
    # Backquotes are for commands; parameters have their names of Python.
    assert "\n" not in line and "--" not in line and "`" not in line.replace("`apportion measure`", ""), line


def test_elements_outside_a_semiring_are_named() -> None:
    odd = memoryview(array.array("d", [0, float("nan")])).cast("B").cast("d", [1, 2])
    with pytest.raises(ValueError, match=r"A: element \(0, 1\), counted from 0, is NaN"):
        apportion.matmul(odd, SQUARE[:2], semiring="max-plus", speeds=[1])


def test_a_cycle_that_improves_forever_is_a_runtime_error() -> None:
    loop = memoryview(array.array("d", [0, -1, -1, 0])).cast("B").cast("d", [2, 2])
    with pytest.raises(RuntimeError, match="cycle of negative weight"):
        apportion.closure(loop, speeds=[1])


def test_a_panic_is_an_exception() -> None:
    with pytest.raises(RuntimeError, match="internal error: a test asked for it"):
        _native._fail(0.0)
    assert apportion.shares(10, speeds=[1, 1]).counts == [5, 5]


def test_other_threads_run_meanwhile() -> None:
    ticks = 0

    def tick() -> None:
        nonlocal ticks
        while not done.is_set():
            ticks += 1
            time.sleep(0.001)

    done = threading.Event()
    thread = threading.Thread(target=tick)
    thread.start()
    with pytest.raises(RuntimeError):
        _native._fail(0.5)
    done.set()
    thread.join()
    assert ticks > 10


SCRIPT = """
import apportion, array, signal, sys
# A process that was started in the background ignores Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
n = 3000
a = memoryview(array.array("d", bytes(8 * n * n))).cast("B").cast("d", [n, n])
try:
    print("begun", flush=True)
    apportion.power(a, 2**60 - 1, speeds=[1, 1])
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(7)
"""


def test_ctrl_c_stops_a_long_call(tmp_path: Path) -> None:
    script = tmp_path / "long.py"
    script.write_text(SCRIPT)
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "begun\n"
        time.sleep(0.3)
        os.kill(process.pid, signal.SIGINT)
        # A product of this power takes seconds, all of them minutes.
        out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (7, "interrupted\n")
