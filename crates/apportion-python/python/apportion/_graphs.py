"""Graphs and sparse matrices of other packages as adjacency lists; none of these packages is imported."""

from __future__ import annotations

import array
from _collections_abc import Mapping
from typing import Any

from ._arguments import shown, whole
from ._arrays import _has_buffer, view


def lists(graph: Any, values: bool, weights: Any, coordinates: Any) -> tuple[dict[str, Any], Any, Any]:
    """The adjacency lists of a graph, or the rows of a matrix; and the weights and places of its vertices."""
    nodes = None
    if hasattr(graph, "tocsr"):
        found = rows(graph, "graph", "magnitudes" if values else "pattern")
    elif values:
        raise ValueError("values: only a matrix has values (leave it out, and give edges weights)")
    elif hasattr(graph, "adjacency") and hasattr(graph, "nodes"):
        nodes = dict(graph.nodes(data=True))
        found = _network(graph, nodes)
        if weights is None and any("weight" in attributes for attributes in nodes.values()):
            weights = [attributes.get("weight", 1) for attributes in nodes.values()]
    elif isinstance(graph, tuple) and len(graph) in (2, 3):
        found = _lists("graph", None, *graph)
    else:
        raise TypeError(
            f"graph: {shown(graph)} is no graph (pass a matrix of scipy.sparse, a graph of NetworkX, or a tuple of "
            "indptr and indices)"
        )
    if weights is not None:
        weights = _table("weights", weights, "q", nodes)
    if coordinates is not None:
        coordinates = _table("coordinates", coordinates, "d", nodes)
    return found, weights, coordinates


def rows(matrix: Any, name: str, wanted: str = "values") -> dict[str, Any]:
    """The rows of a sparse matrix, with its values, their magnitudes, or the places of its entries only."""
    if isinstance(matrix, tuple) and len(matrix) == 3:
        return _lists(name, len(matrix[0]) - 1, *matrix, kind="d")
    if not hasattr(matrix, "tocsr"):
        raise TypeError(
            f"{name}: {shown(matrix)} is no sparse matrix (pass one of scipy.sparse, or a tuple of indptr, indices and "
            "values)"
        )
    found = matrix.tocsr()
    if not getattr(found, "has_canonical_format", True):
        # Of the caller's own rows, which stay as they are.
        found = found.copy()
        found.sum_duplicates()
    values = None
    if wanted != "pattern":
        values = abs(found.data) if wanted == "magnitudes" else found.data
        if values.dtype.kind not in "biuf":
            raise ValueError(f"{name}: has elements of {values.dtype} (pass real numbers)")
        values = values.astype("float64", copy=False)
    return _lists(name, int(found.shape[-1]), found.indptr, found.indices, values, kind="d")


def _lists(
    name: str, columns: int | None, offsets: Any, neighbours: Any, values: Any = None, kind: str = "q"
) -> dict[str, Any]:
    return {
        "columns": columns,
        "offsets": _table(name, offsets, "q"),
        "neighbours": _table(name, neighbours, "q"),
        "values": None if values is None else _table(name, values, kind),
    }


def _network(graph: Any, nodes: Mapping[Any, Any]) -> dict[str, Any]:
    """The lists of a graph of NetworkX; loops do not count."""
    if graph.is_directed():
        raise ValueError("graph: is directed (pass graph.to_undirected())")
    if graph.is_multigraph():
        raise ValueError("graph: may have several edges between two nodes (pass networkx.Graph(graph))")
    number = {node: i for i, node in enumerate(nodes)}
    offsets, neighbours, weights = [0], [], []
    for node, around in graph.adjacency():
        for other, attributes in around.items():
            if other != node:
                neighbours.append(number[other])
                weights.append(attributes.get("weight", 1))
        offsets.append(len(neighbours))
    return _lists("graph", None, offsets, neighbours, weights)


def _table(name: str, given: Any, kind: str, nodes: Mapping[Any, Any] | None = None) -> Any:
    """Numbers in memory, one or several for each vertex. Those of a NetworkX graph may be given by node."""
    if nodes is not None and isinstance(given, Mapping):
        for node in nodes:
            if node not in given:
                raise ValueError(f"{name}: has no entry for the node {shown(node)} (give each node one)")
        given = [given[node] for node in nodes]
    if hasattr(given, "to_numpy"):
        given = given.to_numpy()
    dtype = getattr(given, "dtype", None)
    if kind == "q" and getattr(dtype, "kind", "") in ("i", "u") and str(dtype) not in ("int32", "int64"):
        given = given.astype("int64")
    if _has_buffer(given) or hasattr(given, "__dlpack__"):
        return view(given, name, True)
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise TypeError(f"{name}: {shown(given)} is no list (pass an array of numbers)")
    entries = list(given)
    columns = 1
    if entries and hasattr(entries[0], "__len__"):
        columns = len(entries[0])
        if any(not hasattr(row, "__len__") or len(row) != columns for row in entries):
            raise ValueError(f"{name}: the rows differ in length (pass as many numbers for each vertex)")
        entries = [number for row in entries for number in row]
    numbers = array.array(kind, [_number(name, number, kind) for number in entries])
    if columns < 2:
        return memoryview(numbers)
    return memoryview(numbers).cast("B").cast(kind, [len(numbers) // columns, columns])  # type: ignore[call-overload]


def _number(name: str, number: Any, kind: str) -> Any:
    if kind == "d":
        try:
            return float(number)
        except (TypeError, ValueError):
            raise TypeError(f"{name}: {shown(number)} is no number (pass a float)") from None
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    found = whole(name, number)
    if found >> 32:
        raise ValueError(f"{name}: {found} is out of range (pass whole numbers below 2^32)")
    return found
