"""Products, powers and closures against loops in Python, over every semiring and kind of element."""

from __future__ import annotations

import array
import itertools
import json
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
    assert report.verified and report.counts == [24, 12] and report.forecast_seconds > 0
    assert "verified" in str(report) and "forecast" in str(report)
    assert report.to_dict()["format"] == "apportion-run"
    assert len(report.processors) == len(report.compute) == 2 and "<svg" in report._repr_svg_()


@pytest.mark.parametrize(("semiring", "kind"), KINDS)
@pytest.mark.parametrize("sizes", [(1, 1), (7, 5), (13, 1), (120, 2)])
def test_products_with_the_transpose(semiring, kind: str, sizes: tuple[int, int]) -> None:
    n, k = sizes
    a = matrix(kind, n, k, 1)
    c, report = apportion.syrk(a, semiring=semiring, speeds=[3, 1], block=2, report=True)
    assert isinstance(c, memoryview) and (c.format, c.shape) == (kind, (n, n))
    turned = [list(column) for column in zip(*a.tolist())]
    assert [[float(x) for x in row] for row in c.tolist()] == by_loops(semiring, a.tolist(), turned)
    assert report.to_dict()["plan"]["problem"] == {"kind": "syrk", "n": n, "k": k}


def test_all_arguments_of_a_product_with_the_transpose(tmp_path) -> None:
    a, c = matrix("d", 30, 4, 1), matrix("d", 30, 30, 2)
    turned = [list(column) for column in zip(*a.tolist())]
    product = by_loops("plus-times", a.tolist(), turned)
    expected = [[2 * x - y for x, y in zip(*rows)] for rows in zip(product, c.tolist())]
    found, report = apportion.syrk(a, C=c, alpha=2, beta=-1, speeds=[2, 1], flow="ring", report=True)
    assert found.tolist() == expected and report.verified
    (tmp_path / "plan.json").write_text(json.dumps(report.to_dict()["plan"]))
    layout = apportion.Layout.read(tmp_path / "plan.json")
    found, again = apportion.syrk(a, C=c, alpha=2, beta=-1, layout=layout, report=True)
    assert found.tolist() == expected and again.counts == report.counts
    with pytest.raises(ValueError, match="plan of a symmetric product"):
        apportion.matmul(a, memoryview(bytes(30 * 4 * 8)).cast("d", [4, 30]), layout=layout)
    with pytest.raises(ValueError, match="symmetric product"):
        apportion.syrk(a, layout=apportion.layout((30, 4, 30), [2, 1]))


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
    with pytest.raises(ValueError, match="layout: is not a plan of 8 x 8 x 8, the sizes of the matrices"):
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


def roads(numpy, n: int):
    draw = numpy.random.default_rng(1)
    edges = numpy.where(draw.random((n, n)) < 6 / n, draw.integers(1, 99, (n, n)), numpy.inf)
    numpy.fill_diagonal(edges, 0)
    best = edges.copy()
    for via in range(n):
        best = numpy.minimum(best, best[:, via : via + 1] + best[via])
    return edges, best


@pytest.mark.parametrize("before", [False, True])
def test_closures_are_eliminated_where_that_takes_less_time(before: bool, needs) -> None:
    # Few vertices are squared; from 256 on the forecast decides.
    for n, algorithm in ((60, "squaring"), (256, "elimination")):
        edges, best = roads(needs("numpy"), n)
        speeds = ["2 Gflop/s", "1 Gflop/s"]
        found = apportion.closure(edges, predecessors=before, speeds=speeds, report=True)
        assert found[-1].to_dict()["algorithm"] == algorithm and (found[0] == best).all()


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("algorithm", ["squaring", "elimination"])
def test_closures_by_each_algorithm(algorithm: str, before: bool, needs) -> None:
    edges, best = roads(needs("numpy"), 130)
    found = apportion.closure(edges, algorithm=algorithm, predecessors=before, speeds=[2, 1], report=True)
    assert found[-1].to_dict()["algorithm"] == algorithm and (found[0] == best).all()


def test_lists_and_frames(needs) -> None:
    numpy = needs("numpy")
    rows = [[1, 2], [3, 4]]
    wanted = numpy.array(rows, float) @ numpy.array(rows, float)
    for operand in (rows, tuple(map(tuple, rows))):
        found = apportion.matmul(operand, operand)
        assert isinstance(found, numpy.ndarray) and found.dtype == float and (found == wanted).all()
    assert apportion.matmul(rows, rows, semiring="min-plus").tolist() == [[2, 3], [4, 5]]
    assert apportion.closure([[0, 1], [0, 0]], semiring="or-and").tolist() == [[True, True], [False, True]]
    assert apportion.power([[1.0, 1.0], [0.0, 1.0]], 3).tolist() == [[1, 3], [0, 1]]
    assert (apportion.matmul(numpy.eye(2), rows) == rows).all()
    with pytest.raises(ValueError, match="A: .*equal length"):
        apportion.matmul([[1.0], [1.0, 2.0]], rows)
    with pytest.raises(ValueError, match="A: has elements of .* .pass numbers"):
        apportion.matmul([["a"]], [[1.0]])
    with pytest.raises(TypeError, match="A: is a masked array"):
        apportion.matmul(numpy.ma.masked_array(numpy.eye(2), mask=True), rows)
    with pytest.raises(ValueError, match=r"B: has 1 dimension, not 2 \(pass a matrix: x.reshape"):
        apportion.matmul(numpy.eye(2), numpy.ones(2))


def test_data_frames(needs) -> None:
    pandas, numpy = needs("pandas"), needs("numpy")
    frame = pandas.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    found = apportion.matmul(frame, frame)
    assert isinstance(found, numpy.ndarray) and (found == frame.to_numpy() @ frame.to_numpy()).all()
    with pytest.raises(ValueError, match="A: has elements of object"):
        apportion.matmul(pandas.DataFrame({"a": ["x"]}), frame)


@pytest.mark.parametrize("sizes", [(0, 3, 2), (2, 3, 0), (2, 0, 3), (0, 0, 0), (1, 0, 1)])
def test_empty_matrices_give_what_numpy_gives(sizes: tuple[int, int, int], needs) -> None:
    numpy = needs("numpy")
    m, k, n = sizes
    for kind in (numpy.float64, numpy.float32):
        a, b = numpy.ones((m, k), kind), numpy.ones((k, n), kind)
        found = apportion.matmul(a, b, speeds=[2, 1])
        assert found.dtype == kind and found.shape == (m, n) and (found == a @ b).all()
    a, b = numpy.ones((m, k), numpy.int64), numpy.ones((k, n), numpy.int64)
    least = apportion.matmul(a, b, semiring="min-plus")
    assert least.shape == (m, n) and (least == numpy.iinfo(numpy.int64).max).all()
    found = apportion.syrk(a.astype(float), C=numpy.ones((m, m)), speeds=[2, 1])
    assert found.shape == (m, m) and (found == k + 1).all()
    c = numpy.full((m, n), 3.0)
    found = apportion.matmul(a.astype(float), b.astype(float), C=c, beta=2.0)
    assert found.shape == (m, n) and (found == 6.0).all()
    if m == 0 and n == 0:
        assert (
            apportion.closure(numpy.ones((0, 0))).shape
            == apportion.power(numpy.ones((0, 0)), 3).shape
            == (0, 0)
        )
        lengths, before = apportion.closure(numpy.ones((0, 0)), predecessors=True)
        assert before.shape == (0, 0) and before.dtype == numpy.int32
        with pytest.raises(ValueError, match="report: the result has no elements"):
            apportion.matmul(numpy.ones((0, 0)), numpy.ones((0, 0)), report=True)


def test_reachability_in_numpy(needs) -> None:
    numpy = needs("numpy")
    draw = numpy.random.default_rng(5)
    edges = draw.random((30, 30)) < 0.05
    found = apportion.closure(edges, semiring="or-and")
    power = edges | numpy.eye(30, dtype=bool)
    for _ in range(5):
        power = (power.astype(int) @ power.astype(int)) > 0
    assert isinstance(found, numpy.ndarray) and found.dtype == bool and (found == power).all()
