"""The same jobs by the command and by the package: same plans, results and errors."""

from __future__ import annotations

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
    (["--speeds", "3:1"], {"speeds": [3, 1]}),
    (["--speeds", "3 Gflop/s,1 Gflop/s"], {"speeds": ["3 Gflop/s", "1 Gflop/s"]}),
    (["--speeds", "5:2:1"], {"speeds": [5, 2, 1]}),
    (["--speeds", "3:1", "--method", "square-corner"], {"speeds": [3, 1], "method": "square-corner"}),
    (["--speeds", "3:1", "--flow", "ring"], {"speeds": [3, 1], "flow": "ring"}),
    (["--speeds", "3:1", "--flow", "bulk", "--overlap"], {"speeds": [3, 1], "flow": "bulk", "overlap": True}),
    (["--speeds", "3:1", "--block", "16"], {"speeds": [3, 1], "block": 16}),
    (["--speeds", "3:1", "--alpha", "2"], {"speeds": [3, 1], "alpha": 2}),
    (["--speeds", "3:1", "--semiring", "min-plus"], {"speeds": [3, 1], "semiring": "min-plus"}),
    (["--speeds", "3:1", "--semiring", "max-plus"], {"speeds": [3, 1], "semiring": "max-plus"}),
    (["--speeds", "0:1"], {"speeds": [0, 1]}),
    (["--platform", "p.toml"], {"platform": "p.toml"}),
    (["--platform", "p.toml", "--method", "columns"], {"platform": "p.toml", "method": "columns"}),
]

REFUSED = [
    (["--speeds", "3:1", "--method", "triangle"], {"speeds": [3, 1], "method": "triangle"}),
    (["--speeds", "0:0"], {"speeds": [0, 0]}),
    (["--speeds", "3:1", "--flow", "bulk", "--look-ahead", "2"], {"speeds": [3, 1], "flow": "bulk", "look_ahead": 2}),
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
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "p.toml").write_text(PLATFORM)
    draw = numpy.random.default_rng(1)
    for name, sizes in (("A", (48, 40)), ("B", (40, 56))):
        numpy.save(tmp_path / f"{name}.npy", draw.integers(-9, 9, sizes).astype(float))
    return tmp_path


def command(options: list[str]) -> subprocess.CompletedProcess[str]:
    line = [str(COMMAND), "matmul", "A.npy", "B.npy", "-o", "C.npy", "--report", "run.json", "--quiet", *options]
    return subprocess.run(line, capture_output=True, text=True)


@pytest.mark.parametrize(("options", "arguments"), PRODUCTS, ids=lambda value: str(value)[:60])
def test_the_command_and_the_package_decide_alike(place, options, arguments) -> None:
    done = command(options)
    assert done.returncode == 0, done.stderr
    c, report = apportion.matmul(numpy.load("A.npy"), numpy.load("B.npy"), report=True, **arguments)
    assert (c == numpy.load("C.npy")).all()
    ours, theirs = report.to_dict()["plan"], json.loads(Path("run.json").read_text())["plan"]
    # Speeds that are measured differ from one process to the next, unless one remembers the other's.
    assert (ours["processors"], ours["shares"]) == (theirs["processors"], theirs["shares"])
    assert ours["method"] == theirs["method"]


@pytest.mark.parametrize(("options", "arguments"), REFUSED, ids=lambda value: str(value)[:60])
def test_the_command_and_the_package_refuse_alike(place, options, arguments) -> None:
    done = command(options)
    assert done.returncode == 2
    with pytest.raises((ValueError, OSError)) as raised:
        apportion.matmul(numpy.load("A.npy"), numpy.load("B.npy"), **arguments)
    # The command's line begins with its name, and calls parameters as flags.
    theirs = done.stderr.removeprefix("apportion: ").strip()
    ours = raised.value.strerror if isinstance(raised.value, OSError) else str(raised.value)
    assert ours.split(": ")[-1].split(" (")[0] in theirs, (ours, theirs)
