"""Every example of the documentation runs: doctests, pages and their programs."""

from __future__ import annotations

import doctest
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import apportion
import pytest
from conftest import ROOT

PAGES = [
    "README.md",
    "crates/apportion-python/README.md",
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs" / "how-to").glob("python*.md")),
]
SCRIPTS = ROOT / "docs" / "how-to" / "python"


def test_examples_of_docstrings() -> None:
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for test in finder.find(apportion, globs={**vars(apportion)}):
        runner.run(test)
    assert runner.failures == 0 and runner.tries > 15


@pytest.mark.parametrize("page", PAGES)
def test_examples_of_pages(page: str, needs) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    if "import numpy" in text:
        needs("numpy")
    blocks = "\n".join(re.findall(r"```python\n(>>>.*?)```", text, re.S))
    test = doctest.DocTestParser().get_doctest(blocks, {}, page, page, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(test)
    assert runner.failures == 0
    assert runner.tries > 0 or ">>>" not in text


@pytest.mark.parametrize("page", PAGES[2:])
def test_pages_show_lines_of_their_programs(page: str) -> None:
    """Blocks without prompts are parts of a program of the page, or whole programs."""
    text = (ROOT / page).read_text(encoding="utf-8")
    programs = [
        (ROOT / "docs/how-to" / name).read_text() for name in re.findall(r"\((python/\w+\.py)\)", text)
    ]
    known = {line.strip() for program in programs for line in program.splitlines()}
    for block in re.findall(r"```python\n((?!>>>).*?)```", text, re.S):
        if "__main__" in block:
            continue
        lines = [line.strip() for line in block.splitlines() if line.strip() not in ("", "...")]
        shown = [line for line in lines if line in known]
        # A page may shorten a line or two.
        assert len(shown) >= 0.6 * len(lines), sorted(set(lines) - known)


def test_the_job_of_the_tutorial(tmp_path: Path) -> None:
    text = (ROOT / "docs/how-to/python.md").read_text(encoding="utf-8")
    [program] = [block for block in re.findall(r"```python\n(.*?)```", text, re.S) if "__main__" in block]
    (tmp_path / "job.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "job.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0 and "Shares of 1000000 units" in done.stdout, done.stderr
    assert sum(apportion.shares(10**6, models=tmp_path / "models.json")) == 10**6


def test_unequal_cores(needs) -> None:
    needs("numpy")
    # numba is tried where it is there; the program has loops of Python otherwise.
    done = subprocess.run(
        [sys.executable, str(SCRIPTS / "unequal_cores.py"), "60"], capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    counts = [int(count) for count in re.findall(r": (\d+) rows, forecast", done.stdout)]
    assert sum(counts) == 60 and len(counts) == len(apportion.processors())


def train(ranks: int) -> str:
    """The last line that rank 0 of the training prints, without a launcher."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    world = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(ranks)}
    processes = [
        subprocess.Popen(
            [sys.executable, str(SCRIPTS / "ddp_uneven.py")],
            env={**os.environ, **world, "RANK": str(rank), "LOCAL_RANK": str(rank), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(ranks)
    ]
    outs = [process.communicate(timeout=240)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * ranks
    return outs[0].splitlines()[-1]


def test_batches_of_pytorch(needs) -> None:
    needs("torch")
    together = train(2)
    first, second = map(int, re.findall(r"batches of \[(\d+), (\d+)\], mean loss", together)[0])
    assert first + second == 240 and first > second
    # The gradient is that of the whole batch, so the training is that of one process.
    losses = [float(line.split()[-1]) for line in (together, train(1))]
    assert losses[0] == pytest.approx(losses[1], rel=0.02) and losses[0] < 1
