"""Products, powers and closures against loops in Python, over every semiring and kind of element."""

from __future__ import annotations

import array
import itertools
import math
import random

import apportion
import pytest

SUMS = {
    "plus-times": (sum, lambda x, y: x * y),
    "max-plus": (max, lambda x, y: x + y),
    "min-plus": (min, lambda x, y: x + y),
    "or-and": (lambda terms: int(any(terms)), lambda x, y: int(x and y)),
}
KINDS = [("plus-times", "d"), ("plus-times", "f"), ("or-and", "B"), ("or-and", "?")] + [
    (semiring, kind) for semiring in ("max-plus", "min-plus") for kind in "dfiq"
]


def matrix(kind: str, rows: int, cols: int, seed: int) -> memoryview:
    draw = random.Random(seed)
    top = 1 if kind in "B?" else 9
    values = [draw.randint(0, top) for _ in range(rows * cols)]
    code = "B" if kind == "?" else kind
    return memoryview(array.array(code, values)).cast("B").cast(kind, [rows, cols])


def by_loops(semiring: str, a: list[list[float]], b: list[list[float]]) -> list[list[float]]:
    add, times = SUMS[semiring]
    return [[add([times(x, y) for x, y in zip(row, column)]) for column in zip(*b)] for row in a]


@pytest.mark.parametrize(("semiring", "kind"), KINDS)
@pytest.mark.parametrize("sizes", [(1, 1, 1), (7, 5, 11), (32, 3, 17)])
def test_products_are_those_of_three_loops(semiring, kind: str, sizes: tuple[int, int, int]) -> None:
    m, k, n = sizes
    a, b = matrix(kind, m, k, 1), matrix(kind, k, n, 2)
    c = apportion.matmul(a, b, semiring=semiring, speeds=[3, 1], block=2)
    assert isinstance(c, memoryview) and (c.format, c.shape) == (kind, (m, n))
    assert [[float(x) for x in row] for row in c.tolist()] == by_loops(semiring, a.tolist(), b.tolist())


def test_scalars_an_initial_matrix_and_a_report() -> None:
    a, b, c = (matrix("d", 6, 6, seed) for seed in (1, 2, 3))
    found, report = apportion.matmul(a, b, C=c, alpha=2, beta=-1, speeds=[2, 1], report=True)
    expected = by_loops("plus-times", a.tolist(), b.tolist())
    assert found.tolist() == [[2 * x - y for x, y in zip(*rows)] for rows in zip(expected, c.tolist())]
    assert report.verified and report.counts == [24, 12] and report.forecast_seconds is None
    assert "verified" in str(report) and "forecast" not in str(report)
    assert report.to_dict()["format"] == "apportion-run" and report.to_dict()["forecast_seconds"] is None
    assert len(report.processors) == len(report.compute) == 2 and "<svg" in report._repr_svg_()


def test_a_forecast_stands_beside_the_time_where_speeds_are_known() -> None:
    a = matrix("d", 8, 8, 1)
    _, report = apportion.matmul(a, a, speeds=["2 Gflop/s", "1 Gflop/s"], report=True)
    assert report.forecast_seconds > 0 and report.ideal_seconds == pytest.approx(2 * 8**3 / 3e9)
    assert "forecast" in str(report)


def test_a_given_layout_is_used() -> None:
    a = matrix("d", 40, 40, 1)
    layout = apportion.layout((40, 40), [9, 1], "square-corner")
    found, report = apportion.matmul(a, a, layout=layout, report=True)
    assert report.to_dict()["plan"]["method"] == "square-corner" and report.counts == layout.counts
    assert report.volume == layout.volume
    assert found.tolist() == by_loops("plus-times", a.tolist(), a.tolist())
    with pytest.raises(ValueError, match="layout: is for a product of 40 x 40 x 40, but this is 8 x 8 x 8"):
        apportion.matmul(matrix("d", 8, 8, 1), matrix("d", 8, 8, 1), layout=layout)


def test_an_adaptive_product_and_measured_speeds() -> None:
    a = matrix("d", 48, 48, 1)
    expected = by_loops("plus-times", a.tolist(), a.tolist())
    found, report = apportion.matmul(a, a, speeds=[1, 1], adaptive=True, segments=3, block=8, report=True)
    assert found.tolist() == expected and report.to_dict()["adaptive"]["segments"] == 3


@pytest.mark.parametrize("exponent", [0, 1, 2, 5])
def test_powers(exponent: int) -> None:
    a = matrix("i", 6, 6, 3)
    expected = [[0 if i == j else 2**31 - 1 for j in range(6)] for i in range(6)]
    for _ in range(exponent):
        expected = by_loops("min-plus", expected, a.tolist())
    assert apportion.power(a, exponent, semiring="min-plus", speeds=[1, 1]).tolist() == expected


def test_shortest_paths_and_their_predecessors() -> None:
    n = 12
    draw = random.Random(4)
    edges = [
        [float(draw.randint(1, 20)) if draw.random() < 0.25 else math.inf for _ in range(n)] for _ in range(n)
    ]
    flat = array.array("d", itertools.chain.from_iterable(edges))
    lengths, before = apportion.closure(
        memoryview(flat).cast("B").cast("d", [n, n]), predecessors=True, speeds=[2, 1]
    )
    best = [[0.0 if i == j else edges[i][j] for j in range(n)] for i in range(n)]
    for via, i, j in itertools.product(range(n), repeat=3):
        best[i][j] = min(best[i][j], best[i][via] + best[via][j])
    assert lengths.tolist() == best
    for i, j in itertools.product(range(n), repeat=2):
        last = before[i, j]
        if i != j and best[i][j] < math.inf:
            assert best[i][last] + edges[last][j] == best[i][j]
        elif i != j:
            assert last == -1


def test_reachability_in_numpy(needs) -> None:
    numpy = needs("numpy")
    draw = numpy.random.default_rng(5)
    edges = draw.random((30, 30)) < 0.05
    found = apportion.closure(edges, semiring="or-and")
    power = edges | numpy.eye(30, dtype=bool)
    for _ in range(5):
        power = (power.astype(int) @ power.astype(int)) > 0
    assert isinstance(found, numpy.ndarray) and found.dtype == bool and (found == power).all()
