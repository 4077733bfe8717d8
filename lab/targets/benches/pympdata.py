"""Points per second of PyMPDATA, in millions, on one thread: `SCHEME POINTS` for each scheme.

`python pympdata.py SIDE` is run by the bench `advection`. PyMPDATA keeps one cross term per axis and so does
about half of the work of a corrective pass.
"""
import os
import sys
import time

os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import numpy as np
from PyMPDATA import Options, ScalarField, Solver, Stepper, VectorField
from PyMPDATA.boundary_conditions import Periodic

LEVELS, STEPS, RUNS = 64, 3, 3


def speed(options, side):
    shape = (side, side, LEVELS)
    ends = (Periodic(),) * 3
    field = (1 + (np.arange(np.prod(shape)) % 97) / 97.0).reshape(shape)
    faces = [tuple(n + (axis == d) for axis, n in enumerate(shape)) for d in range(3)]
    courant = tuple(np.full(f, c) for f, c in zip(faces, (0.25, 0.125, 0.1875)))
    solver = Solver(
        stepper=Stepper(options=options, grid=shape),
        advectee=ScalarField(data=field, halo=options.n_halo, boundary_conditions=ends),
        advector=VectorField(data=courant, halo=options.n_halo, boundary_conditions=ends),
    )
    solver.advance(1)  # compiles
    fastest = float("inf")
    for _ in range(RUNS):
        begin = time.perf_counter()
        solver.advance(STEPS)
        fastest = min(fastest, time.perf_counter() - begin)
    return field.size * STEPS / fastest / 1e6


for passes, limited in ((1, False), (2, False), (2, True)):
    options = Options(n_iters=passes, nonoscillatory=limited)
    print(passes, int(limited), speed(options, int(sys.argv[1])), flush=True)
