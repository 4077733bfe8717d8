"""Divides a computation among unequal processors so that all finish together.

>>> import apportion
>>> apportion.shares(1000, speeds=[9, 1]).counts
[900, 100]

Shares of independent units come from `shares`, and from `Balancer` in a loop. `layout` divides a matrix
product; `matmul`, `syrk`, `power` and `closure` compute one on the cores of this machine; `simulate` and `sweep`
forecast it. `cholesky`, `lu` and `solve` factor matrices and solve linear systems, and `advect` carries a field.
`graph` divides graphs and sparse matrices, and `spmv` multiplies vectors by the latter. `map` applies a function to
data in unequal processes, and `measured` measures the speed of a function on each processor. The command `apportion`
is installed too.
"""

from _collections_abc import Sequence as _Sequence

from . import _native
from ._arguments import elimination as _elimination
from ._arguments import limit as _limit
from ._arguments import order as _order
from ._arguments import renamed as _renamed
from ._arguments import row as _row
from ._arguments import shown as _shown
from ._arguments import sources as _sources
from ._arguments import task as _task
from ._arguments import whole as _whole
from ._arguments import word as _word
from ._native import (
    Array,
    Balancer,
    Decision,
    Forecast,
    GraphParts,
    Layout,
    Models,
    Report,
    Shares,
    Sweep,
    __version__,
)

# Without `map`, which would hide Python's own.
__all__ = [
    "Array",
    "Balancer",
    "Decision",
    "Forecast",
    "GraphParts",
    "Layout",
    "Models",
    "OwnerTable",
    "Report",
    "Results",
    "Shares",
    "Sweep",
    "__version__",
    "advect",
    "cholesky",
    "closure",
    "graph",
    "layout",
    "lu",
    "matmul",
    "measured",
    "power",
    "processors",
    "shares",
    "simulate",
    "solve",
    "spmv",
    "sweep",
    "syrk",
]

_Sequence.register(Shares)


def shares(
    units=None,
    *,
    speeds=None,
    seconds=None,
    models=None,
    platform=None,
    processors=None,
    method="auto",
    min=None,
    max=None,
    multiple_of=None,
    least=None,
    most=None,
    costs=None,
    memory=None,
    any_order=False,
    objective=None,
):
    """Divide `units` among processors so that all finish together.

    One of these says how fast the processors are:

    - `speeds`: a number for each. Only the ratios count. Text with a unit, "200 units/s", gives times too.
    - `seconds`: for each, the seconds of one unit, or measured times as {units: seconds}.
    - `models`: a file of `apportion measure`, its content as a dictionary, or `Models`.
    - `platform`: a platform file with speeds, or its content as a dictionary.

    `processors` are their names (default: p0, p1, …); `speeds` and `seconds` may be dictionaries or pandas
    Series by name instead. `min`, `max` and `multiple_of` limit the shares: one number for all, one for
    each, where None is no limit, or a dictionary by name. `method` is "auto", "even", "proportional" or
    "largest-remainder" (both nearest to the proportion of the speeds), "fpm" (speed functions), "exact" (any
    time function) or "robust" (bands of speeds). A processor of speed 0 gets no share. `least` and `most`
    are the old names of `min` and `max`.

    `costs` has a number for each unit, and `units` may be left out: parts are then contiguous, and a unit of cost 2
    takes as long as two of cost 1. `memory` has the bytes of each unit; the `memory` of the platform's processors caps
    their parts. With `any_order` processors may change places: `order` has the ranks in the order of their parts. The
    `objective` is "makespan", the longest time, or "latency", the sum of the times.

    The result is a sequence of whole numbers that pickles, and that `Shares.read` reads from a plan file.

    >>> found = shares(1000, speeds={"fast": 9, "slow": 1}, min=150)
    >>> found.counts, found.offsets, found.slices
    ([850, 150], [0, 850], [slice(0, 850, 1), slice(850, 1000, 1)])
    >>> found.processors, list(found)
    (['fast', 'slow'], [850, 150])
    >>> shares(100, seconds=[{10: 1.0, 100: 10.0}, {10: 2.0, 100: 80.0}]).counts
    [71, 29]
    >>> print(found.export("llama.cpp"), end="")
    --tensor-split 850,151
    >>> row = shares(costs=[1, 1, 1, 1, 4], speeds=[3, 1], any_order=True)
    >>> row.counts, row.order, row.slices
    ([3, 2], [1, 0], [slice(2, 5, 1), slice(0, 2, 1)])
    """
    row = _row(costs, memory, any_order, objective)
    if units is None:
        counts = [len(numbers) for numbers in (row["costs"], row["memory"]) if numbers is not None]
        if not counts:
            raise TypeError("units: is missing (pass a number of units, or their costs)")
        units = counts[0]
    units = _whole("units", units)
    given = _sources(speeds, seconds, models, platform, processors)
    least, most = _renamed("min", min, "least", least), _renamed("max", max, "most", most)
    limits = _limit("min", least), _limit("max", most), _limit("multiple_of", multiple_of)
    return _native.shares(units, given, _word("method", method), *limits, row)


def layout(
    shape,
    speeds=None,
    method="auto",
    *,
    models=None,
    platform=None,
    processors=None,
    latency=None,
    bandwidth=None,
    flow=None,
    block=None,
    overlap=False,
    look_ahead=1,
    element=8,
):
    """Divide the product C = A B: which rectangles of C each processor computes.

    `shape` is (m, n), where the inner dimension is n, or (m, k, n). Speeds are given as for `shares`; text
    has the unit flop/s. `method` is a method of `apportion partition --shape`; "auto" forecasts all of them.
    `latency` and `bandwidth` describe a network that is the same for all pairs, as seconds and bytes per
    second or as text ("50 us", "1 Gbit/s"); `platform` describes any other. `element` is the number of bytes
    of an element.

    >>> found = layout((1000, 1000), [9, 1], "square-corner")
    >>> found.slices(1)
    [(slice(684, 1000, 1), slice(684, 1000, 1))]
    >>> found.volume, found.bound
    (632000, 442518)
    >>> found.owner_table()
    OwnerTable(rows=[0, 684, 1000], cols=[0, 684, 1000], owners=[[0, 0], [0, 1]])
    """
    given = _sources(speeds, None, models, platform, processors, latency, bandwidth)
    sizes = _sizes(shape)
    how = _order(method, flow, block, overlap, look_ahead)
    return _native.layout(sizes, given, how, _whole("element", element))


def _sizes(shape):
    """The sizes of a shape."""
    if not hasattr(shape, "__iter__") or isinstance(shape, str) or getattr(shape, "ndim", 1) != 1:
        raise TypeError(f"shape: {_shown(shape)} is no shape (pass (m, n) or (m, k, n))")
    return [_whole("shape", size) for size in shape]


def matmul(
    A,
    B,
    *,
    semiring="plus-times",
    C=None,
    alpha=None,
    beta=None,
    speeds=None,
    models=None,
    platform=None,
    layout=None,
    method="auto",
    flow=None,
    block=None,
    overlap=False,
    look_ahead=1,
    adaptive=False,
    segments=64,
    remeasure=False,
    seed=1,
    report=False,
    comm=None,
    gather=True,
    measure=None,
):
    """Multiply two matrices on the cores of this machine, and verify the product.

    The product is alpha A B + beta C over a semiring: "plus-times", "max-plus", "min-plus" or "or-and". A and
    B are NumPy arrays, 2-D memoryviews, torch or jax tensors of the CPU, lists of rows, or data frames; the
    result is of A's kind, or a NumPy array for lists and data frames.
    Elements are float64 or float32, for max-plus and min-plus also int64 or int32, for or-and bool or uint8.
    Arguments whose rows are consecutive in memory are not copied, and neither is the result.

    The cores' speeds are measured before the first product of a machine, and remembered, as by the command
    `apportion matmul`; `remeasure=True` measures them again. `speeds`, `models`, `platform` and `layout` say
    it otherwise. `adaptive` repartitions in mid-run, after some of `segments` parts of the inner dimension,
    where a processor has become slower or faster. With `report=True` the result is a pair: the product and a
    `Report`.

    `comm` is a communicator of mpi4py: rank r computes the part of processor r. All its processes pass the
    same arguments, whose every element is compared before the product begins (a process that differs raises
    the same error on all), and all get the product, or with `gather=False` the list of their own blocks, each
    as the slices of its rows and columns and an array. mpi4py must have initialised MPI with
    MPI_THREAD_SERIALIZED or higher, as it does by default, and no other thread may use MPI meanwhile.

    Other Python threads run meanwhile; they must not change A, B or C. Ctrl-C stops the product.

    >>> a = memoryview(bytes([1, 0, 1, 1])).cast("B", [2, 2])
    >>> matmul(a, a, semiring="or-and").tolist()
    [[1, 0], [1, 1]]
    """
    given = _sources(speeds, None, models, platform)
    how = _order(method, flow, block, overlap, look_ahead)
    scalars = {"alpha": alpha, "beta": beta}
    options = {"adaptive": adaptive, "segments": segments, "seed": seed, **_measuring(remeasure, measure)}
    what = _task("product", semiring, **scalars, **options)
    if comm is not None:
        return _computed_on(what, (A, B, C), given, how, layout, report, comm, gather)
    return _computed(what, (A, B, C), given, how, layout, report)


def syrk(
    A,
    *,
    semiring="plus-times",
    C=None,
    alpha=None,
    beta=None,
    speeds=None,
    models=None,
    platform=None,
    layout=None,
    flow=None,
    block=None,
    overlap=False,
    look_ahead=1,
    remeasure=False,
    seed=1,
    report=False,
    comm=None,
    gather=True,
):
    """Multiply a matrix by its transpose: alpha A Aᵀ + beta C, in half of the work of `matmul(A, A.T)`.

    The lower triangle of A Aᵀ is computed, as by BLAS's syrk, and copied to the upper one: the result is whole.
    `syrk(A.T)` is Aᵀ A. All elements of C count, whether or not it is symmetric. The triangle is divided into strips
    of rows, so that there is no `method`; `layout` is one that `Layout.read` finds in the report of such a product.
    The other arguments are those of `matmul`.

    >>> a = memoryview(bytes([0, 1, 1, 1])).cast("B", [2, 2])
    >>> syrk(a, semiring="or-and").tolist()
    [[1, 1], [1, 1]]
    """
    given = _sources(speeds, None, models, platform)
    how = _order(None, flow, block, overlap, look_ahead)
    what = _task("syrk", semiring, alpha=alpha, beta=beta, seed=seed, remeasure=remeasure)
    if comm is not None:
        return _computed_on(what, (A, None, C), given, how, layout, report, comm, gather)
    return _computed(what, (A, None, C), given, how, layout, report)


def power(
    A,
    exponent,
    *,
    semiring="plus-times",
    speeds=None,
    models=None,
    platform=None,
    layout=None,
    method="auto",
    block=None,
    remeasure=False,
    seed=1,
    report=False,
    measure=None,
):
    """Raise a square matrix to a power, by repeated squaring. The arguments are those of `matmul`.

    >>> step = memoryview(bytes([0, 1, 0, 0])).cast("B", [2, 2])
    >>> power(step, 2, semiring="or-and").tolist()
    [[0, 0], [0, 0]]
    """
    given = _sources(speeds, None, models, platform)
    what = _task("power", semiring, exponent=exponent, seed=seed, **_measuring(remeasure, measure))
    return _computed(what, (A, None, None), given, _order(method, None, block, False, 1), layout, report)


def closure(
    A,
    *,
    semiring="min-plus",
    predecessors=False,
    speeds=None,
    models=None,
    platform=None,
    layout=None,
    method="auto",
    block=None,
    algorithm="auto",
    remeasure=False,
    seed=1,
    report=False,
    measure=None,
):
    """The closure of a square matrix: lengths of shortest paths over min-plus, reachability over or-and.

    Element (i, j) of A is the length of the edge from i to j; infinity (for integers the type's maximum)
    means that there is none. `predecessors=True` returns a second matrix: the vertex before j on the best
    path from i, or -1. `algorithm` is "squaring" (products of the whole matrix, one for each doubling of the
    number of edges), "elimination" (Floyd and Warshall's algorithm on blocks) or "auto", the one of less
    forecast time, as `apportion closure` chooses it. The other arguments are those of `matmul`.

    >>> reach = memoryview(bytes([0, 1, 0, 0, 0, 1, 0, 0, 0])).cast("B", [3, 3])
    >>> closure(reach, semiring="or-and").tolist()
    [[1, 1, 1], [0, 1, 1], [0, 0, 1]]
    """
    given = _sources(speeds, None, models, platform)
    options = {"algorithm": _word("algorithm", algorithm) or "auto", **_measuring(remeasure, measure)}
    what = _task("paths" if predecessors else "closure", semiring, seed=seed, **options)
    return _computed(what, (A, None, None), given, _order(method, None, block, False, 1), layout, report)


def _measuring(remeasure, measure):
    """Whether speeds that nothing describes are measured again. `measure` has no effect: they are always measured."""
    if measure is None:
        return {"remeasure": remeasure}
    import warnings

    warnings.warn("measure is now called remeasure", DeprecationWarning, stacklevel=3)
    return {"remeasure": remeasure}


def _views(what, operands):
    """The operands as objects that export their memory, and an array of the kind of the result."""
    from ._arrays import matrix, view

    operands = [
        operand if operand is None else matrix(operand, name, what["semiring"])
        for operand, name in zip(operands, "ABC")
    ]
    return [
        operand if operand is None else view(operand, name) for operand, name in zip(operands, "ABC")
    ], operands[0]


def _computed(what, operands, given, how, layout, report):
    """Run a task; results are of A's kind."""
    from ._arrays import result

    views, like = _views(what, operands)
    made, more, told = _native.product(what, *views, given, how, layout)
    answer = tuple(result(array, like) for array in (made, more) if array is not None)
    answer = _with_report(answer, told, report)
    return answer if len(answer) > 1 else answer[0]


def _computed_on(what, operands, given, how, layout, report, comm, gather):
    """Run a product on the processes of a communicator."""
    from ._arrays import result

    views, like = _views(what, operands)
    handle = getattr(comm, "handle", None)
    if handle is None:
        raise TypeError(
            f"comm: {_shown(comm)} is no communicator (pass one of mpi4py, such as MPI.COMM_WORLD)"
        )
    blocks, told = _native.product_on(
        what, tuple(views), given, how, layout, _whole("comm", handle), bool(gather)
    )
    if gather:
        answer = result(blocks[0][2], like)
    else:
        answer = [(slice(*rows), slice(*cols), result(block, like)) for rows, cols, block in blocks]
    return (answer, told) if report else answer


def cholesky(
    A,
    *,
    speeds=None,
    models=None,
    platform=None,
    method="auto",
    block=None,
    remeasure=False,
    seed=1,
    report=False,
):
    """The Cholesky factor of a symmetric positive definite matrix: L, lower triangular, with A = L Lᵀ.

    It is what `numpy.linalg.cholesky` returns, up to rounding. Only the lower triangle of A is read. Elements are
    float64 or float32; whole numbers and truth values become float64. The block columns of A are divided among the
    cores of this machine by their speeds, as by the command `apportion factor`: `method` is "greedy",
    "grid", "ratio", "cyclic", "alone", or "auto", the one of least forecast time, and `block` the number
    of columns of a block, by forecast unless it is given. The factor is verified by the residual of LAPACK's tests. A matrix that is not positive definite is a `RuntimeError`
    with the order of its first leading minor that is not positive.

    A may be all that `matmul` takes, and `speeds`, `models`, `platform`, `remeasure`, `seed` and `report` are as
    there. Other Python threads run meanwhile; they must not change A. Ctrl-C stops the factorisation.

    >>> a = memoryview(bytes([4, 2, 2, 5])).cast("B", [2, 2])
    >>> cholesky(a, speeds=[2, 1]).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    given = _sources(speeds, None, models, platform)
    answer = _factors(_elimination("cholesky", method, block, remeasure, seed), A, given, report)
    return answer if report else answer[0]


def lu(
    A,
    *,
    speeds=None,
    models=None,
    platform=None,
    method="auto",
    block=None,
    remeasure=False,
    seed=1,
    report=False,
):
    """The LU factors of a square matrix, with partial pivoting: P A = L U.

    The result is a pair, as `scipy.linalg.lu_factor` returns it and `scipy.linalg.lu_solve` takes it: a matrix with U,
    and below its diagonal L without its ones; and the pivots, int64: row i was exchanged with row piv[i], one after
    the other. With `report=True` a `Report` is the third. A singular matrix is a `RuntimeError` with the index of the
    pivot that is zero. The arguments are those of `cholesky`.

    >>> a = memoryview(bytes([1, 2, 4, 4])).cast("B", [2, 2])
    >>> factors, pivots = lu(a, speeds=[1])
    >>> factors.tolist(), pivots.tolist()
    ([[4.0, 4.0], [0.25, 1.0]], [1, 1])
    """
    given = _sources(speeds, None, models, platform)
    return _factors(_elimination("lu", method, block, remeasure, seed), A, given, report)


def solve(
    A,
    B,
    *,
    kind="lu",
    mixed=False,
    speeds=None,
    models=None,
    platform=None,
    method="auto",
    block=None,
    remeasure=False,
    seed=1,
    report=False,
):
    """Solve the linear system A X = B, refine X, and verify it.

    B has one right-hand side, of one dimension, or one in each column; X has its shape, and is of A's kind. `kind`
    says by which factors: "lu", "cholesky" for a symmetric positive definite A, or "ldlt" for another symmetric one, of
    which only the lower triangle is read. `mixed=True` factors in float32 and refines X to float64, which is faster
    where A is large and well conditioned; where that fails, A is factored again in float64. X is float32 if both A and B
    are, and float64 otherwise. `report=True` returns a `Report` besides, which has the residual and an estimate of the
    condition number (`report.to_dict()["solution"]`). The other arguments are those of `cholesky`.

    >>> a = memoryview(bytes([2, 0, 0, 4])).cast("B", [2, 2])
    >>> solve(a, bytes([1, 2]), speeds=[1, 1]).tolist()
    [0.5, 0.5]
    """
    from ._arrays import matrix, result, view

    given = _sources(speeds, None, models, platform)
    what = _elimination(_word("kind", kind) or "lu", method, block, remeasure, seed)
    like, B = matrix(A, "A", "plus-times"), matrix(B, "B", "plus-times")
    found, told = _native.solve(what, view(like, "A"), view(B, "B", True), given, bool(mixed))
    return _with_report((result(found, like),), told, report) if report else result(found, like)


def advect(
    psi,
    courant,
    steps,
    *,
    iterations=2,
    nonoscillatory=False,
    infinite_gauge=False,
    third_order=False,
    boundary="periodic",
    speeds=None,
    models=None,
    platform=None,
    method="auto",
    remeasure=False,
    report=False,
):
    """The field `psi` after some steps of MPDATA, the advection scheme of Smolarkiewicz, as `apportion advect` makes them.

    `psi` has one to three dimensions. `courant` has a Courant number for each axis, or an array of those on the faces of
    the cells, which is one longer than `psi` along that axis; one entry may stand alone for a field of one dimension.
    `iterations` (1 to 4) is the number of passes of a step, `nonoscillatory` lets no new extremes appear,
    `infinite_gauge` is for fields of both signs, `third_order` corrects one more error. `boundary` says what is beyond
    the ends: "periodic", "zero" or "extrapolated", for all axes or a list with one for each. The grid is divided among
    the cores of this machine by their speeds. The result has psi's shape and kind; its elements are float64, or float32 if
    those of psi are, and arrays of Courant numbers then have them too. The other arguments are those of `matmul`. Ctrl-C
    stops it.

    >>> psi = memoryview(bytes([0, 8, 0, 0]))
    >>> advect(psi, 0.25, 1, iterations=1, speeds=[1, 1]).tolist()
    [0.0, 6.0, 2.0, 0.0]
    """
    from ._arrays import grid, result

    given = _sources(speeds, None, models, platform)
    what = {
        "steps": _whole("steps", steps),
        "iterations": _whole("iterations", iterations),
        "nonoscillatory": bool(nonoscillatory),
        "infinite_gauge": bool(infinite_gauge),
        "third_order": bool(third_order),
        "boundary": [boundary] if isinstance(boundary, str) else list(boundary),
        "method": _word("method", method) or "auto",
        "remeasure": bool(remeasure),
    }
    like, field = grid(psi, "psi")
    alone = len(field[1]) == 1 and (not isinstance(courant, (list, tuple)) or len(courant) != 1)
    entries = [courant] if alone else list(courant)
    found, told = _native.advect(what, field, [_along(entry) for entry in entries], given)
    answer = result(found, like, field[1])
    return (answer, told) if report else answer


def graph(
    graph,
    speeds=None,
    *,
    models=None,
    platform=None,
    method=None,
    coordinates=None,
    weights=None,
    values=False,
):
    """Divide the vertices of a graph among processors, so that all finish together and little crosses between parts.

    `graph` is one of these:

    - A square matrix or array of scipy.sparse: an edge wherever A + Aᵀ has an entry off the diagonal. With `values=True`
      edges weigh as much as these entries.
    - An undirected graph of NetworkX: vertices are its nodes in their order, and the attribute `weight` of nodes and edges
      counts, where it is there.
    - A tuple (indptr, indices) or (indptr, indices, weights of edges) of adjacency lists, each edge at both of its ends.

    Speeds are given as for `shares`, and `models` and `platform` too; a unit is one of weight. `weights` has a positive
    whole number for each vertex, or several in columns, each of which is balanced; without it, the vertices of a matrix
    weigh the entries of their rows, and others 1. `coordinates` has one to three numbers for each vertex. Both may be
    dictionaries by node of a NetworkX graph.

    `method` is "metis", or one of its two, "metis-recursive" and "metis-kway", "scotch", "coordinates" (cuts across the
    longer side) or "contiguous" (consecutive vertices). By default it is the best by forecast: METIS or Scotch must be
    installed to be among them.

    The result's `parts` has the rank of each vertex, an array of NumPy where NumPy is imported and otherwise a
    memoryview; `shares` and `weights` are by processor, `volume` is the number of values that processors send in a step.
    `forecast_seconds` is None where only ratios of speeds are known.

    >>> path = [0, 1, 3, 5, 6], [1, 0, 2, 1, 3, 2]
    >>> found = graph(path, [3, 1], method="contiguous")
    >>> found.parts.tolist(), found.shares, found.edge_cut, found.volume
    ([0, 0, 0, 1], [3, 1], 1, 2)
    """
    from ._graphs import lists

    given = _sources(speeds, None, models, platform)
    found = lists(graph, bool(values), weights, coordinates)
    return _native.graph(*found, bool(values), _word("method", method), given)


def spmv(
    matrix,
    x,
    steps=1,
    *,
    method="product",
    tolerance=1e-8,
    speeds=None,
    models=None,
    platform=None,
    parts_method=None,
    remeasure=False,
    report=False,
):
    """Multiply a vector by a sparse matrix `steps` times, or solve a system by such products, as `apportion spmv` does.

    `matrix` is a square matrix or array of scipy.sparse, or a tuple (indptr, indices, values) of its rows. `method` is
    "product", where x becomes A x in each step; or "jacobi" or "cg" (conjugate gradients, for a symmetric positive
    definite A), which find the solution of A X = x in at most `steps` steps: its residual is at most `tolerance` times the
    norm of x. The rows are divided among the cores of this machine as `graph` does it by `parts_method`. The result is
    float64, verified, and the same for all divisions, bit for bit; it has x's shape and kind. The other arguments are
    those of `matmul`. Ctrl-C stops it.

    >>> cycle = [0, 1, 2, 3], [1, 2, 0], [1.0, 1.0, 2.0]
    >>> spmv(cycle, memoryview(bytes([1, 2, 3])), speeds=[1, 1]).tolist()
    [2.0, 3.0, 2.0]
    """
    from ._arrays import matrix as array
    from ._arrays import result, view
    from ._graphs import rows

    given = _sources(speeds, None, models, platform)
    what = {
        "steps": _whole("steps", steps),
        "method": _word("method", method) or "product",
        "tolerance": float(tolerance),
        "parts_method": _word("parts_method", parts_method),
        "remeasure": bool(remeasure),
    }
    like = array(x, "x", "plus-times")
    found, told = _native.spmv(what, rows(matrix, "matrix"), view(like, "x", True), given)
    answer = result(found, like)
    return (answer, told) if report else answer


def _along(courant):
    """Courant numbers along an axis: a number, or an array on the faces."""
    from ._arrays import grid

    if hasattr(courant, "__float__") and not getattr(courant, "shape", ()):
        return float(courant)
    return grid(courant, "courant")[1]


def _factors(what, A, given, report):
    """The factors of a matrix and their pivots, of A's kind."""
    from ._arrays import matrix, result, view

    like = matrix(A, "A", "plus-times")
    found, pivots, told = _native.factor(what, view(like, "A"), given)
    answer = tuple(result(array, like) for array in (found, pivots) if array is not None)
    return _with_report(answer, told, report)


def _with_report(answer, told, report):
    """The answer, and the report if it is wanted."""
    if not report:
        return answer
    if told is None:
        raise ValueError("report: the result has no elements, so nothing runs (leave it out)")
    return (*answer, told)


def simulate(
    layout,
    *,
    speeds=None,
    models=None,
    platform=None,
    processors=None,
    latency=None,
    bandwidth=None,
    flow=None,
    block=None,
    overlap=False,
    look_ahead=1,
    element=8,
):
    """Forecast the product of a layout, by default with the speeds and network for which it was made.

    `flow` is "one-to-all", "ring", "bulk" or "broadcast"; None takes the one of least time, with or without
    overlap.

    >>> found = layout((1000, 1000), ["90 Gflop/s", "10 Gflop/s"], "square-corner", bandwidth="1 Gbit/s")
    >>> forecast = simulate(found, flow="bulk")
    >>> f"{forecast.seconds:.4f}", f"{forecast.compute[0]:.4f}"
    ('0.0477', '0.0200')
    """
    given = _sources(speeds, None, models, platform, processors, latency, bandwidth)
    how = _order(None, flow, block, overlap, look_ahead)
    return _native.simulate(layout, given, how, _whole("element", element))


def sweep(
    shape,
    along,
    speeds=None,
    methods=None,
    *,
    models=None,
    platform=None,
    processors=None,
    latency=None,
    bandwidth=None,
    flow=None,
    block=None,
    overlap=False,
    look_ahead=1,
    points=None,
    margin=0.0,
    element=8,
):
    """Forecast methods along one parameter of the machine, and find where the fastest changes.

    `along` is "bandwidth=100Mbit/s..10Gbit/s", "latency=1us..1ms", "ratio=1..25" or "processors=2..64". One
    method alone is compared by its flows. A candidate must be faster by the fraction `margin` to win over one
    that moves less.

    >>> methods = ["square-corner", "straight-line"]
    >>> found = sweep((1000, 1000), "ratio=1..25", [1, 1], methods, bandwidth="1 Gbit/s", flow="bulk")
    >>> [(round(at, 2), to) for at, _, to, _ in found.crossovers]
    [(2.0, 'square-corner')]
    """
    given = _sources(speeds, None, models, platform, processors, latency, bandwidth)
    how = _order(None, flow, block, overlap, look_ahead)
    sizes = _sizes(shape)
    names = None if methods is None else list(methods)
    points = None if points is None else _whole("points", points)
    return _native.sweep(sizes, along, given, how, names, points, margin, _whole("element", element))


def processors():
    """This machine's processors, as {name: [numbers of its cores]}.

    >>> len(processors()) >= 1
    True
    """
    return dict(_native.processors())


def map(f, data, workers=None, *, costs=None, verbose=False):
    """Apply `f` to each item of `data` in processes, each of which takes as many items as it is fast.

    Returns the results in the order of the data, as a list that knows how the work was divided: `seconds`,
    `processors`, `counts` and `compute` (by worker), and `gain` against the better of an even split and a
    plain loop. `summary()` says it in words, and so does `verbose=True`, on stderr.

    `workers` is one of these:

    - None: a process for each core of this machine, pinned to it if the cores are of several kinds.
    - A number: so many processes, which the system places.
    - A dictionary such as {"big": [0, 1], "small": [2]}: processes pinned to these cores.
    - An executor of `concurrent.futures`, joblib (`joblib.externals.loky.get_reusable_executor()`) or Dask
      (`client.get_executor()`), or a client of Dask.

    The first items measure the workers; no item is computed twice. What is left is divided by these measures,
    and again while it becomes less, as by `apportion run`, so that a worker that becomes slower gets fewer
    items. `costs` has a number for each item, such as its size, where items take unequal times. Iterators are
    read to their end before the work begins; arrays are sent in slices.

    Processes stay for the next call, up to a minute, so modules and what `f` leaves in them stay as well. They
    start anew after an error, and if new ones would be others: when the number or the cores of workers, the
    environment, the working directory, `sys.path`, `sys.argv`, the standard streams or the file of a loaded
    module (but for installed packages) has changed. A function of a notebook is sent as it is at each call.

    An exception of `f` arrives as it is, with a note that names the item. It ends all processes, as Ctrl-C
    does; of a given executor it cancels what has not begun. Functions and data are pickled. Functions of a
    notebook, lambdas and functions within functions need the package cloudpickle. A script guards its own
    actions, but not `f`, with `if __name__ == "__main__":`, as with `multiprocessing`.

    >>> found = map(abs, range(-3, 3), workers=2)
    >>> found, sum(found.counts)
    ([3, 2, 1, 0, 1, 2], 6)
    """
    from ._map import run

    return run(f, data, workers, costs, bool(verbose))


def measured(
    sizes,
    *,
    processors=None,
    prepare=None,
    tolerance=0.025,
    seconds=2.0,
    repetitions=200,
    unit="unit of work",
):
    """Decorate a function of a size, so that its speed can be measured on each processor.

    The decorated function works as before. Its method `measure()` starts one process for each processor,
    pinned to its cores, and runs the function in all of them at the same time, for each of the `sizes`. The
    result, `Models`, is what `shares(models=…)` takes. Threads of one process would measure Python's lock.

    `processors` maps names to lists of core numbers; by default each core of this machine is one.
    `prepare(size)` makes the function's argument outside of the measured time; without it the argument is the
    size. Each size is repeated until the 95 % interval of the mean is within the fraction `tolerance`, for at
    most `seconds`, and at most `repetitions` times.

    The processes find the function by its name, so it is at the top level of a module or script. A function
    of a notebook, or one inside another function, is sent to them by the package cloudpickle if that is
    installed. A script must guard its own actions, but not the function, with `if __name__ == "__main__":`,
    as with `multiprocessing`.
    """
    from ._measured import Measured

    options = (list(sizes), processors, prepare, tolerance, seconds, repetitions, unit)
    return lambda function: Measured(function, *options)


def __getattr__(name):
    """Import what few programs use when it is asked for."""
    if name == "OwnerTable":
        from ._tables import OwnerTable

        return OwnerTable
    if name == "Results":
        from ._map import Results

        return Results
    raise AttributeError(f"module 'apportion' has no attribute {name!r}")
