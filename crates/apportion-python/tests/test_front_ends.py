"""The same jobs by the command, by the package and by the C library: same plans, results and errors."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sysconfig
from pathlib import Path

import apportion
import pytest

numpy = pytest.importorskip("numpy")
COMMAND = Path(sysconfig.get_path("scripts")) / "apportion"

# Options of the command, and the same arguments of the package.
PRODUCTS = [
    ([], {}),
    (["--speeds", "3 Gflop/s,1 Gflop/s"], {"speeds": ["3 Gflop/s", "1 Gflop/s"]}),
    (["--speeds", "5Gflop/s,2Gflop/s,1Gflop/s"], {"speeds": ["5 Gflop/s", "2 Gflop/s", "1 Gflop/s"]}),
    (["--speeds", "3:1", "--method", "square-corner"], {"speeds": [3, 1], "method": "square-corner"}),
    (["--platform", "p.toml", "--flow", "ring"], {"platform": "p.toml", "flow": "ring"}),
    (
        ["--platform", "p.toml", "--flow", "bulk", "--overlap"],
        {"platform": "p.toml", "flow": "bulk", "overlap": True},
    ),
    (["--platform", "p.toml", "--block", "16"], {"platform": "p.toml", "block": 16}),
    (["--platform", "p.toml", "--alpha", "2"], {"platform": "p.toml", "alpha": 2}),
    (["--platform", "p.toml", "--semiring", "min-plus"], {"platform": "p.toml", "semiring": "min-plus"}),
    (["--platform", "p.toml", "--semiring", "max-plus"], {"platform": "p.toml", "semiring": "max-plus"}),
    (["--speeds", "0:1"], {"speeds": [0, 1]}),
    (["--platform", "p.toml"], {"platform": "p.toml"}),
    (["--platform", "p.toml", "--method", "columns"], {"platform": "p.toml", "method": "columns"}),
]

REFUSED = [
    (["--speeds", "3:1", "--method", "triangle"], {"speeds": [3, 1], "method": "triangle"}),
    (["--speeds", "0:0"], {"speeds": [0, 0]}),
    (
        ["--speeds", "3:1", "--flow", "bulk", "--look-ahead", "2"],
        {"speeds": [3, 1], "flow": "bulk", "look_ahead": 2},
    ),
    (["--speeds", "1:2:3", "--platform", "p.toml"], {"speeds": [1, 2, 3], "platform": "p.toml"}),
    (["--platform", "none.toml"], {"platform": "none.toml"}),
    (["--speeds", "3:1", "--semiring", "or-and"], {"speeds": [3, 1], "semiring": "or-and"}),
]

PLATFORM = """
[[processor]]
name = "new"
speed = "2 Gflop/s"

[[processor]]
name = "old"
speed = "500 Mflop/s"
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.toml").write_text(PLATFORM)
    draw = numpy.random.default_rng(1)
    for name, sizes in (("A", (48, 40)), ("B", (40, 56))):
        numpy.save(tmp_path / f"{name}.npy", draw.integers(-9, 9, sizes).astype(float))
    return tmp_path


def command(options: list[str], operands: str = "A.npy B.npy") -> subprocess.CompletedProcess[str]:
    output = ["-o", "C.npy", "--report", "run.json", "--quiet"]
    line = [str(COMMAND), "matmul", *operands.split(), *output, *options]
    return subprocess.run(line, capture_output=True, text=True)


class Refusal(Exception):
    """An error of the C library: its code and its line."""


def number(x: int) -> ctypes.c_int64:
    return ctypes.c_int64(x)


def doubles(values) -> ctypes.Array:
    return (ctypes.c_double * len(values))(*values)


class InC:
    """Calls the C library as a program in C does."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library

    def call(self, name: str, *arguments) -> None:
        code = getattr(self.library, f"apportion_{name}")(*arguments)
        if code != 0:
            raise Refusal(code, self.library.apportion_last_error().decode())

    def product(self, a, b, arguments):
        """The product and its plan, or without B that with the transpose; the arguments are those of the package."""
        product, length = ctypes.c_void_p(), ctypes.c_int64()
        self.call("product_new", ctypes.byref(product))
        try:
            for name, value in arguments.items():
                self.call("product_set", product, name.encode(), text_of(value).encode())
            name, factors = ("product_syrk", [a]) if b is None else ("product_run", [a, b])
            c = numpy.empty((a.shape[0], a.shape[0] if b is None else b.shape[1]))
            sizes = [number(size) for size in (*a.shape, *(b.shape[1:] if b is not None else ()))]
            pointers = [ctypes.c_void_p(matrix.ctypes.data) for matrix in (*factors, c)]
            self.call(name, product, *sizes, *pointers)
            self.call("product_plan", product, number(0), None, ctypes.byref(length))
            plan = ctypes.create_string_buffer(length.value)
            self.call("product_plan", product, length, plan, ctypes.byref(length))
            return c, json.loads(plan.value)
        finally:
            self.library.apportion_product_free(product)

    def shares(self, units: int, arguments) -> list[int]:
        """Shares by `speeds`, by `seconds` of equal work, or by a file of models."""
        count = len(next(iter(arguments.values()))) if "models" not in arguments else 2
        found, p = (ctypes.c_int64 * count)(), number(count)
        if "speeds" in arguments:
            self.call("shares_from_speeds", number(units), p, doubles(arguments["speeds"]), found)
        elif "seconds" in arguments:
            points = arguments["seconds"]
            work, seconds = doubles([x for ((x, _),) in points]), doubles([t for ((_, t),) in points])
            self.call("shares_from_times", number(units), p, work, seconds, found)
        else:
            models = ctypes.c_void_p()
            self.call("models_read", arguments["models"].encode(), ctypes.byref(models))
            try:
                self.call("shares_from_models", models, number(units), p, found, None)
            finally:
                self.library.apportion_models_free(models)
        return list(found)


def text_of(value) -> str:
    """A value of the package as an option of the C library."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ",".join(map(str, value))
    return str(value)


def wrong(error: Exception) -> str:
    """What is wrong by an error, without the place, which has another name in each front end, and the remedy."""
    text = error.strerror if isinstance(error, OSError) else str(error)
    return text.split(": ")[-1].split(" (")[0]


@pytest.mark.parametrize(("options", "arguments"), PRODUCTS, ids=lambda value: str(value)[:60])
def test_all_front_ends_decide_alike(place, c_library, options, arguments) -> None:
    done = command(options)
    assert done.returncode == 0, done.stderr
    a, b = numpy.load("A.npy"), numpy.load("B.npy")
    c, report = apportion.matmul(a, b, report=True, **arguments)
    assert (c == numpy.load("C.npy")).all()
    ours, theirs = report.to_dict()["plan"], json.loads(Path("run.json").read_text())["plan"]
    in_c, plan = InC(c_library).product(a, b, arguments)
    assert (in_c == c).all()
    assert ours["processors"] == theirs["processors"] == plan["processors"]
    if not options:
        return  # Each has measured the speeds that it divides by.
    assert (ours["shares"], ours["method"]) == (theirs["shares"], theirs["method"])
    assert (plan["processors"], plan["shares"]) == (theirs["processors"], theirs["shares"])
    assert (plan["method"], plan["layout"]) == (theirs["method"], ours["layout"])


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        (["--speeds", "3 Gflop/s,1 Gflop/s"], {"speeds": ["3 Gflop/s", "1 Gflop/s"]}),
        (["--platform", "p.toml", "--semiring", "min-plus"], {"platform": "p.toml", "semiring": "min-plus"}),
        (["--platform", "p.toml", "--alpha", "2"], {"platform": "p.toml", "alpha": 2}),
    ],
    ids=lambda value: str(value)[:60],
)
def test_all_front_ends_multiply_by_the_transpose_alike(place, c_library, options, arguments) -> None:
    done = command(options, "A.npy --syrk")
    assert done.returncode == 0, done.stderr
    a = numpy.load("A.npy")
    c, report = apportion.syrk(a, report=True, **arguments)
    assert (c == numpy.load("C.npy")).all() and (c == c.T).all()
    ours, theirs = report.to_dict()["plan"], json.loads(Path("run.json").read_text())["plan"]
    in_c, plan = InC(c_library).product(a, None, arguments)
    assert (in_c == c).all()
    for other in (ours, plan):
        assert (other["shares"], other["layout"]) == (theirs["shares"], theirs["layout"])


@pytest.mark.parametrize(("options", "arguments"), REFUSED, ids=lambda value: str(value)[:60])
def test_all_front_ends_refuse_alike(place, c_library, options, arguments) -> None:
    done = command(options)
    assert done.returncode == 2
    a, b = numpy.load("A.npy"), numpy.load("B.npy")
    with pytest.raises((ValueError, OSError)) as raised:
        apportion.matmul(a, b, **arguments)
    # The command's line begins with its name, and calls parameters as flags.
    ours = wrong(raised.value)
    assert ours in done.stderr, (ours, done.stderr)
    with pytest.raises(Refusal) as refused:
        InC(c_library).product(a, b, arguments)
    code, line = refused.value.args
    assert code == 2 and ours in line, (ours, line)


MODELS = {
    "format": "apportion-models",
    "version": 1,
    "kernel": "k",
    "unit": "units",
    "parameters": {},
    "models": [
        {
            "processor": "a",
            "interpolation": "piecewise-linear",
            "max_size": 60,
            "points": [{"size": 50, "seconds": 5}, {"size": 100, "seconds": 100}],
        },
        {
            "processor": "b",
            "interpolation": "constant",
            "max_size": 60,
            "points": [{"size": 5, "seconds": 1}],
        },
    ],
}

SHARES = [
    (1000, ["--speeds", "9:1"], {"speeds": [9, 1]}),
    (7, ["--speeds", "1:1:1"], {"speeds": [1, 1, 1]}),
    (1000, ["--speeds", "9:0:1"], {"speeds": [9, 0, 1]}),
    (100, ["--models", "models.json"], {"models": "models.json"}),
    # The command has no times but those of a file.
    (100, ["--speeds", "3:1"], {"seconds": [[(3, 1)], [(1, 1)]]}),
    (10, ["--speeds", "0:0"], {"speeds": [0, 0]}),
    (10, ["--speeds", "1:-1"], {"speeds": [1, -1]}),
    (1 << 60, ["--speeds", "1:1"], {"speeds": [1, 1]}),
    (200, ["--models", "models.json"], {"models": "models.json"}),
]


@pytest.mark.parametrize(("units", "options", "arguments"), SHARES, ids=lambda value: str(value)[:40])
def test_all_front_ends_share_alike(place, c_library, units, options, arguments) -> None:
    (place / "models.json").write_text(json.dumps(MODELS))
    line = [str(COMMAND), "partition", "--units", str(units), "--quiet", "-o", "plan.json", *options]
    done = subprocess.run(line, capture_output=True, text=True)
    if done.returncode == 0:
        theirs = json.loads(Path("plan.json").read_text())["shares"]
        assert list(apportion.shares(units, **arguments)) == theirs
        assert InC(c_library).shares(units, arguments) == theirs
        return
    with pytest.raises((ValueError, RuntimeError)) as raised:
        apportion.shares(units, **arguments)
    ours = wrong(raised.value)
    assert ours in done.stderr, (ours, done.stderr)
    with pytest.raises(Refusal) as refused:
        InC(c_library).shares(units, arguments)
    code, said = refused.value.args
    assert code == done.returncode and ours in said, (ours, said)
