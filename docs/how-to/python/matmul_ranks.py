"""mpirun -n 3 python3 matmul_ranks.py: a matrix product on the processes of a communicator."""

import apportion
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
generator = np.random.default_rng(1)
A, B = generator.random((300, 200)), generator.random((200, 250))

# Rank r computes the part of processor r; every rank gets the product.
speeds = [3, 2, 1, 1, 1, 1, 1, 1][: comm.size]
C, report = apportion.matmul(A, B, speeds=speeds, comm=comm, report=True)
assert np.allclose(C, A @ B)

# Without gathering, every rank keeps its own blocks.
for rows, cols, block in apportion.matmul(A, B, speeds=speeds, comm=comm, gather=False):
    assert np.allclose(block, (A @ B)[rows, cols])
if comm.rank == 0:
    print(f"{report.counts} elements of C, {report.volume} elements moved")
