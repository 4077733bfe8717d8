"""Division of graphs and products of sparse matrices: by hand, against SciPy, and from every kind of graph."""

from __future__ import annotations

import array
import pickle
import re
import subprocess
import sys
import threading
import time
from typing import Any

import apportion
import pytest
from conftest import skip

# A path of six vertices; its last edge is heavy.
PATH = ([0, 1, 3, 5, 7, 9, 10], [1, 0, 2, 1, 3, 2, 4, 3, 5, 4])
HEAVY = [1, 1, 1, 1, 1, 1, 1, 1, 9, 9]


def grid(scipy: Any, n: int) -> Any:
    """The five-point stencil of n x n points."""
    from scipy import sparse

    return sparse.diags_array([-1.0, -1, 5, -1, -1], offsets=[-n, -1, 0, 1, n], shape=(n * n, n * n))


@pytest.fixture
def metis(request: pytest.FixtureRequest) -> None:
    """The partitioner, without which a test is skipped."""
    try:
        apportion.graph(PATH, [1, 1], method="metis")
    except ValueError as error:
        skip(request, "metis", str(error))


def test_a_path_by_hand() -> None:
    found = apportion.graph(PATH, [2, 1], method="contiguous")
    assert found.parts.tolist() == [0, 0, 0, 0, 1, 1] and len(found) == 6
    assert (found.shares, found.weights, found.edge_cut, found.volume) == ([4, 2], [4, 2], 1, 2)
    assert found.imbalance == 1 and found.forecast_seconds is None and found.processors == ["p0", "p1"]
    assert found.method == "contiguous" == found.plan["method"]
    assert repr(found) == "<GraphParts of 6 vertices: [4, 2], edge cut 1, volume 2, method contiguous>"
    assert found._repr_svg_().startswith("<svg")
    heavy = apportion.graph((*PATH, HEAVY), [5, 1], method="contiguous")
    assert heavy.edge_cut == 9
    timed = apportion.graph(PATH, ["2 units/s", "1 units/s"], method="contiguous", weights=[4, 1, 1, 2, 2, 2])
    assert timed.parts.tolist() == [0, 0, 0, 0, 1, 1] and timed.weights == [8, 4]
    assert timed.forecast_seconds == pytest.approx(4)


def test_lists_are_read_wherever_they_are(needs) -> None:
    numpy = needs("numpy")
    wanted = apportion.graph((*PATH, HEAVY), [2, 1], method="contiguous")
    for kind in ("int32", "int64", "uint16", ">i4"):
        lists = tuple(numpy.array(numbers, kind) for numbers in (*PATH, HEAVY))
        assert apportion.graph(lists, [2, 1], method="contiguous") == wanted
    assert apportion.graph(tuple(array.array("i", one) for one in (*PATH, HEAVY)), [2, 1], method="contiguous") == wanted
    parts = wanted.parts
    assert isinstance(parts, numpy.ndarray) and parts.dtype == "int32" and not parts.flags.writeable
    assert parts is wanted.parts


def test_without_numpy_parts_are_a_memoryview(tmp_path) -> None:
    script = (
        f"import apportion, sys\nfound = apportion.graph({PATH}, [2, 1], method='contiguous').parts\n"
        "assert type(found) is memoryview and found.tolist() == [0, 0, 0, 0, 1, 1] and found.readonly\n"
        "assert not {'numpy', 'scipy', 'networkx'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=tmp_path)


def test_divisions_pickle_and_are_saved(tmp_path) -> None:
    found = apportion.graph(PATH, ["3 units/s", "0.7 units/s"])
    again = pickle.loads(pickle.dumps(found))
    assert again == found and hash(again) == hash(found) and again.parts.tolist() == found.parts.tolist()
    assert found != apportion.graph(PATH, [1, 1])
    with pytest.raises(ValueError, match="state"):
        apportion._native._restore("GraphParts", "{}")
    found.save(tmp_path / "plan.json")
    assert '"graph"' in (tmp_path / "plan.json").read_text()


def test_every_sparse_matrix(needs) -> None:
    needs("numpy")
    scipy = needs("scipy")
    from scipy import sparse

    a = grid(scipy, 12)
    wanted = apportion.graph(a, [3, 1], method="contiguous")
    assert sum(wanted.weights) == a.nnz and len(wanted) == 144
    for kind in ("csr", "csc", "coo", "lil", "dok", "bsr"):
        assert apportion.graph(a.asformat(kind), [3, 1], method="contiguous") == wanted, kind
    assert apportion.graph(sparse.csr_matrix(a), [3, 1], method="contiguous") == wanted
    wide = a.tocsr()
    wide.indptr, wide.indices = wide.indptr.astype("int64"), wide.indices.astype("int64")
    assert apportion.graph(wide, [3, 1], method="contiguous") == wanted
    # Rows out of order, with an entry twice: the caller's rows stay as they are.
    odd = sparse.csr_array(([1.0, 1, 1, 1], [1, 0, 1, 0], [0, 3, 4]), shape=(2, 2))
    assert apportion.graph(odd, [1, 1], method="contiguous").edge_cut == 1 and odd.indices.tolist() == [1, 0, 1, 0]
    # A pattern that is not symmetric, of any elements: the graph of A + A^T.
    upper = sparse.triu(a).astype(complex)
    found = apportion.graph(upper, [3, 1], method="contiguous", weights=[1] * 144)
    assert found.edge_cut == apportion.graph(a, [3, 1], method="contiguous", weights=[1] * 144).edge_cut
    values = sparse.coo_array(([9.0, 1.0, 1.0, 1.0], ([0, 1, 2, 2], [1, 2, 1, 2])), shape=(3, 3))
    assert apportion.graph(values, [2, 1], method="contiguous", weights=[1] * 3).edge_cut == 1
    assert apportion.graph(values, [1, 2], method="contiguous", weights=[1] * 3, values=True).edge_cut == 9
    with pytest.raises(ValueError, match="graph: a matrix of 5 x 144 has no graph"):
        apportion.graph(a.tocsr()[:5], [1, 1])


def test_graphs_of_networkx(needs) -> None:
    networkx = needs("networkx")
    path = networkx.path_graph(["f", "e", "d", "c", "b", "a"])
    found = apportion.graph(path, [2, 1], method="contiguous")
    assert found == apportion.graph(PATH, [2, 1], method="contiguous")
    path.add_edge("a", "a")
    path.edges["a", "b"]["weight"] = 9.0
    assert apportion.graph(path, [5, 1], method="contiguous").edge_cut == 9
    path.nodes["f"]["weight"] = 4
    assert apportion.graph(path, [7, 2], method="contiguous").weights == [7, 2]
    of_node = {node: 1 for node in path}
    assert apportion.graph(path, [5, 1], method="contiguous", weights=of_node).weights == [5, 1]
    plane = networkx.grid_2d_graph(8, 4)
    found = apportion.graph(plane, [3, 1], method="coordinates", coordinates={node: node for node in plane})
    assert found.edge_cut == 4 and found.shares == [24, 8]
    assert found == apportion.graph(plane, [3, 1], method="coordinates", coordinates=list(plane))
    for wrong, says in (
        (networkx.DiGraph([(1, 2)]), "is directed (pass graph.to_undirected())"),
        (networkx.MultiGraph([(1, 2)]), "several edges"),
        (networkx.Graph(), "there is no vertex"),
    ):
        with pytest.raises(ValueError, match=re.escape(says)):
            apportion.graph(wrong, [1, 1])
    with pytest.raises(ValueError, match="weights: has no entry for the node 'e'"):
        apportion.graph(path, [1, 1], weights={"f": 1})


def test_partitioners_cut_less(needs, metis) -> None:
    needs("numpy")
    scipy = needs("scipy")
    a = grid(scipy, 40)
    best, plain = (apportion.graph(a, [5, 2, 1], method=method) for method in (None, "contiguous"))
    assert best.volume < plain.volume and best.imbalance < 1.04
    both = [apportion.graph(a, [5, 2, 1], method=f"metis-{name}") for name in ("recursive", "kway")]
    assert apportion.graph(a, [5, 2, 1], method="metis") in both
    # Two weights: half of the vertices have all of the second.
    weights = [[1, int(i < 800)] for i in range(1600)]
    parts = apportion.graph(a, [1, 1], weights=weights).parts.tolist()
    assert sum(parts[:800]) == pytest.approx(400, abs=20) and sum(parts) == pytest.approx(800, abs=20)
    # Several threads at once.
    found: list[apportion.GraphParts] = []
    threads = [threading.Thread(target=lambda: found.append(apportion.graph(a, [5, 2, 1]))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and all(one.imbalance < 1.04 and one.volume < plain.volume for one in found)


def test_other_threads_run_meanwhile(needs) -> None:
    """A thread that sleeps for a millisecond wakes up many times while a large graph is divided."""
    needs("numpy")
    scipy = needs("scipy")
    a = grid(scipy, 500)
    done, ticks = threading.Event(), list[float]()

    def tick() -> None:
        while not done.wait(0.001):
            ticks.append(time.perf_counter())

    thread = threading.Thread(target=tick)
    thread.start()
    begin = time.perf_counter()
    apportion.graph(a, [2, 1])
    end = time.perf_counter()
    done.set()
    thread.join()
    inside = sum(begin < tick < end for tick in ticks)
    assert inside > 10, (inside, end - begin)


@pytest.mark.parametrize(
    ("arguments", "options", "kind", "says"),
    [
        ((PATH,), {}, ValueError, "speeds: no speeds are given"),
        ((PATH, [1, 1]), {"method": "spiral"}, ValueError, "use auto, metis, metis-recursive, metis-kway, scotch, coordinates"),
        ((PATH, [1, 1]), {"method": "coordinates"}, ValueError, "give coordinates"),
        ((PATH, [1, 1]), {"coordinates": [1.0, 2.0]}, ValueError, "coordinates: there are 2 points for 6 vertices"),
        ((PATH, [1, 1]), {"coordinates": [[1.0, 2.0], [1.0]]}, ValueError, "coordinates: the rows differ"),
        ((PATH, [1, 1]), {"weights": [1, 2]}, ValueError, "weights: there are 2 weights for 6 vertices"),
        ((PATH, [1, 1]), {"weights": [0] * 6}, ValueError, "weights: the weights of all vertices are 0"),
        ((PATH, [1, 1]), {"weights": [1, -1] * 3}, ValueError, "weights: -1 is out of range"),
        ((PATH, [1, 1]), {"weights": [1.5] * 6}, TypeError, "weights: 1.5 is no whole number"),
        ((PATH, [1, 1]), {"weights": array.array("d", [1] * 6)}, ValueError, "weights: has elements of float64"),
        ((PATH, [1, 1]), {"weights": "six"}, TypeError, "weights: 'six' is no list"),
        ((PATH, [1, 1]), {"values": True}, ValueError, "values: only a matrix has values"),
        (("path", [1, 1]), {}, TypeError, "graph: 'path' is no graph (pass a matrix of scipy.sparse"),
        ((([0, 1, 1], [1]), [1, 1]), {}, ValueError, "graph: vertex 0 has the neighbour 1, but 1 lacks 0"),
        ((([0, 1, 2], [1, -1]), [1, 1]), {}, ValueError, "graph: -1 is out of range"),
        ((([0, 1, 2], [1, 0], [1, 2]), [1, 1]), {}, ValueError, "weight 1, but 2 back"),
        ((PATH, [1, 1]), {"method": "scotch", "weights": [[1, 2]] * 6}, ValueError, "scotch: divides by one weight"),
    ],
)
def test_what_is_wrong_is_said(arguments, options, kind, says: str) -> None:
    with pytest.raises(kind) as error:
        apportion.graph(*arguments, **options)
    assert says in str(error.value) and "`" not in str(error.value) and "--" not in str(error.value)


def test_products_are_those_of_scipy(needs) -> None:
    numpy = needs("numpy")
    scipy = needs("scipy")
    a = grid(scipy, 20)
    x = numpy.random.default_rng(1).random(400)
    found, report = apportion.spmv(a, x, 3, speeds=[2, 1], report=True)
    assert isinstance(found, numpy.ndarray) and found.dtype == float and found.shape == (400,)
    assert numpy.allclose(found, a @ (a @ (a @ x)), rtol=1e-13)
    assert report.verified and sum(report.counts) == 400 and report.to_dict()["steps"] == 3
    assert pickle.loads(pickle.dumps(report)) == report and str(report)
    for speeds in ([1], [1, 1, 5]):
        for method in ("contiguous", None):
            assert (apportion.spmv(a, x, 3, speeds=speeds, parts_method=method) == found).all()
    rows = a.tocsr()
    lists = (rows.indptr, rows.indices, rows.data)
    assert (apportion.spmv(lists, x, 3, speeds=[1]) == found).all()
    assert (apportion.spmv(a, x.tolist(), 3, speeds=[1]) == found).all()
    assert apportion.spmv(a, x.reshape(-1, 1), 3, speeds=[1]).shape == (400, 1)
    whole = apportion.spmv(a.astype(int), numpy.ones(400, int), speeds=[1])
    assert (whole == a @ numpy.ones(400)).all()
    for method in ("cg", "jacobi"):
        solution = apportion.spmv(a, x, 500, method=method, tolerance=1e-10, speeds=[2, 1])
        assert numpy.linalg.norm(a @ solution - x) <= 2e-10 * numpy.linalg.norm(x), method


CYCLE = ([0, 1, 2], [1, 0], [1.0, 1.0])


@pytest.mark.parametrize(
    ("arguments", "options", "kind", "says"),
    [
        ((CYCLE, b"ab", 0), {}, ValueError, "steps: 0 steps change nothing"),
        ((CYCLE, b"abc"), {}, ValueError, "x: has 3 elements for 2 rows"),
        ((CYCLE, array.array("d", [1, float("inf")])), {}, ValueError, "x: element 1 is inf"),
        ((CYCLE, memoryview(bytes(4)).cast("B", [2, 2])), {}, ValueError, "x: is 2 x 2 (pass a vector)"),
        ((CYCLE, "ab"), {}, TypeError, "x: a 'str' is no array in memory"),
        ((CYCLE, b"ab"), {"method": "gauss"}, ValueError, "use product, jacobi or cg"),
        ((CYCLE, b"ab"), {"method": "jacobi"}, ValueError, "has no element on the diagonal"),
        ((([0, 1], [0], [-1.0]), b"a"), {"method": "cg"}, RuntimeError, "not positive definite"),
        ((CYCLE, b"ab"), {"method": "cg"}, RuntimeError, "use more steps"),
        ((CYCLE, b"ab"), {"tolerance": 0}, ValueError, "tolerance: 0 is no tolerance"),
        ((CYCLE, b"ab"), {"parts_method": "coordinates"}, ValueError, "parts_method: there is no method"),
        ((([0, 1], [1], [1.0]), b"a"), {}, ValueError, "matrix: row 0 has column 1 of 1"),
        ((5, b"ab"), {}, TypeError, "matrix: 5 is no sparse matrix"),
    ],
)
def test_what_is_wrong_with_products_is_said(arguments, options, kind, says: str) -> None:
    with pytest.raises(kind) as error:
        apportion.spmv(*arguments, speeds=[1], **options)
    assert says in str(error.value) and "`" not in str(error.value) and "--" not in str(error.value)
