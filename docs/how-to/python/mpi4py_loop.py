"""mpirun -n 4 python3 mpi4py_loop.py: rows on unequal ranks, moved until all finish together."""

import time

import apportion
import numpy as np
from mpi4py import MPI

ROWS, COLS, STEPS = 1200, 64, 12
comm = MPI.COMM_WORLD


def step(rows):
    """The work of one step. Here rank r stands for a node that is 1 + r times slower."""
    time.sleep(1e-4 * len(rows) * (1 + comm.rank))
    return rows + 1


def move(rows, before, after):
    """The rows of the new shares, sent by their owners in the old ones. Both are lists of slices, by rank."""
    old = before[comm.rank]
    parts = []
    for new in after:
        first, end = max(old.start, new.start), min(old.stop, new.stop)
        parts.append(rows[first - old.start : max(first, end) - old.start])
    return np.concatenate(comm.alltoall(parts))


balancer = apportion.Balancer(ROWS, comm.size)
rows = np.arange(ROWS)[balancer.slices[comm.rank], None] * np.ones(COLS)
for number in range(STEPS):
    begin = time.perf_counter()
    rows = step(rows)
    times = comm.allgather(time.perf_counter() - begin)
    if comm.rank == 0:
        print(f"step {number}: {balancer.counts}, {max(times) / min(times):.2f}")
    # The same times lead to the same decision on every rank: nobody has to be asked.
    before = balancer.slices
    if balancer.observe(times):
        rows = move(rows, before, balancer.slices)

whole = comm.gather(rows)
if comm.rank == 0:
    assert (np.concatenate(whole)[:, 0] == np.arange(ROWS) + STEPS).all()
    print("every row took every step")
