"""Tables as tuples with names."""

from typing import NamedTuple


class OwnerTable(NamedTuple):
    """The owners of a matrix that is cut into cells.

    `rows` and `cols` are the cuts, from 0 to the number of rows or columns. `owners[i][j]` is the rank that
    has rows `rows[i]:rows[i + 1]` of columns `cols[j]:cols[j + 1]`.
    """

    rows: list[int]
    cols: list[int]
    owners: list[list[int]]
