"""The package in programs of mpi4py, under a real mpirun."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import ROOT

SCRIPTS = ROOT / "docs" / "how-to" / "python"


def test_the_loop_of_the_documentation_balances(mpirun) -> None:
    out = mpirun(4, str(SCRIPTS / "mpi4py_loop.py")).stdout
    assert "every row took every step" in out
    steps = re.findall(r"step \d+: \[(.*)\], (.*)", out)
    assert len(steps) == 12 and steps[0][0] == "300, 300, 300, 300"
    every = [[int(count) for count in step.split(", ")] for step, _ in steps]
    assert all(sum(counts) == 1200 for counts in every)
    # How near the shares come to those of speeds 1, 1/2, 1/3 and 1/4 depends on what else the machine does.
    assert every[-1][0] > every[-1][3], out


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_product_on_a_communicator(mpirun, count: int) -> None:
    out = mpirun(count, str(SCRIPTS / "matmul_ranks.py")).stdout
    counts = re.findall(r"\d+", out.split("elements")[0])
    assert sum(map(int, counts)) == 300 * 250 and len(counts) == count and "elements moved" in out


KINDS = """
import numpy as np, apportion
from mpi4py import MPI
comm = MPI.COMM_WORLD.Split(MPI.COMM_WORLD.rank % 2)
draw = np.random.default_rng(2)
kinds = {"max-plus": "int64", "min-plus": "float32", "or-and": "bool", "plus-times": "float64"}
for semiring, kind in kinds.items():
    a = draw.integers(0, 2 if kind == "bool" else 9, (20, 20)).astype(kind)
    alone = apportion.matmul(a, a, semiring=semiring, speeds=[1])
    here = apportion.matmul(a, a, semiring=semiring, comm=comm, method="columns", flow="ring", block=4)
    assert here.dtype == alone.dtype and (here == alone).all()
c = apportion.matmul(np.eye(4), np.eye(4), C=np.ones((4, 4)), alpha=2.0, comm=comm)
assert (c == 2 * np.eye(4) + 1).all()
print("right", flush=True)
"""


def test_every_kind_on_a_part_of_the_world(mpirun, tmp_path: Path) -> None:
    script = tmp_path / "kinds.py"
    script.write_text(KINDS)
    assert mpirun(4, str(script)).stdout.count("right") == 4


BAD = """
import numpy as np, apportion
from mpi4py import MPI
from types import SimpleNamespace
comm = MPI.COMM_WORLD
def refused(**given):
    try:
        apportion.matmul(np.eye(8), np.eye(8), **given)
    except (ValueError, RuntimeError) as error:
        return str(error)
assert "has 2 processes, but there are 3 processors" in refused(comm=comm, speeds=[1, 2, 3])
text = refused(comm=comm, speeds=[1, 1 + comm.rank])
assert text.startswith("arguments: rank 1 (") and '"speeds=[1.0, 2.0]"' in text and '"speeds=[1.0, 1.0]"' in text
assert '"gather=true"' in refused(comm=comm, gather=comm.rank == 1)
assert "seed=2" in refused(comm=comm, seed=1 + comm.rank)
assert "communicator" in refused(comm=MPI.COMM_NULL) and "communicator" in refused(comm=SimpleNamespace(handle=0x12345))
assert "C: element (0, 0)" in refused(comm=comm, semiring="max-plus", C=np.full((8, 8), np.nan))
assert (apportion.matmul(np.eye(8), np.eye(8), comm=comm) == np.eye(8)).all()
print("told", flush=True)
"""


def test_errors_leave_every_process_in_order(mpirun, tmp_path: Path) -> None:
    script = tmp_path / "bad.py"
    script.write_text(BAD)
    assert mpirun(2, str(script)).stdout.count("told") == 2


OTHER = """
import numpy as np, apportion
from mpi4py import MPI
comm = MPI.COMM_WORLD
draw = np.random.default_rng(comm.rank)
common = np.random.default_rng(9).random((60, 60))
other = common.copy()
if comm.rank == 1:
    other[59, 58] += 1e-16
def refused(A, B, **given):
    try:
        apportion.matmul(A, B, comm=comm, **given)
    except (ValueError, TypeError) as error:
        return str(error)
texts = [
    refused(draw.random((60, 60)), common),
    refused(common, other),
    refused(other.T, common),
    refused(common, common, C=other),
    refused(common, common.astype("float32") if comm.rank == 1 else common),
    refused(common, common[: 60 - comm.rank]),
    refused(common[:, ::2] if comm.rank == 1 else common[:, :30], common[:30]),
]
assert all(text == comm.bcast(text) for text in texts), texts
for text, argument in zip(texts, ["A: ", "B: ", "A: ", "C: ", "rank 1 (", "rank 1 (", "A: "]):
    assert text.startswith(argument) and "rank 1 (" in text, texts
assert np.allclose(apportion.matmul(common, common, comm=comm), common @ common)
print("named", flush=True)
"""


def test_processes_with_other_arrays_are_named(mpirun, tmp_path: Path) -> None:
    script = tmp_path / "other.py"
    script.write_text(OTHER)
    assert mpirun(2, str(script)).stdout.count("named") == 2


BROADCAST = """
import apportion
from mpi4py import MPI
comm = MPI.COMM_WORLD
shares, layout = apportion.shares(100, speeds=[2, 1]), apportion.layout((60, 60), [2, 1])
found = comm.bcast([shares, layout] if comm.rank == 0 else None)
assert found == [shares, layout] and comm.allgather(shares) == [shares] * comm.size
print("right", flush=True)
"""


def test_values_are_broadcast(mpirun, tmp_path: Path) -> None:
    script = tmp_path / "broadcast.py"
    script.write_text(BROADCAST)
    assert mpirun(2, str(script)).stdout.count("right") == 2
