"""Layouts cover C once; their volume is counted element by element; forecasts are formulae by hand."""

from __future__ import annotations

import json
from pathlib import Path

import apportion
import pytest

METHODS = ["rows", "columns", "grid", "nagamochi-abe", "recursive", "square-corner", "auto"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("speeds", [[9, 1], [8, 1, 1]])
def test_rectangles_cover_c_once_and_the_volume_is_theirs(method: str, speeds: list[float]) -> None:
    m, k, n = 30, 7, 20
    found = apportion.layout((m, k, n), speeds, method)
    owners = [[-1] * n for _ in range(m)]
    volume = -m * k - k * n
    for rank in range(len(speeds)):
        rows, cols = set(), set()
        for down, right in found.slices(rank):
            for i in range(m)[down]:
                for j in range(n)[right]:
                    assert owners[i][j] == -1
                    owners[i][j] = rank
                    rows.add(i)
                    cols.add(j)
        volume += k * (len(rows) + len(cols))
    assert [sum(row.count(rank) for row in owners) for rank in range(len(speeds))] == found.counts
    assert found.volume == volume >= found.bound
    table = found.owner_table()
    cells = [
        [
            table.owners[sum(c <= i for c in table.rows) - 1][sum(c <= j for c in table.cols) - 1]
            for j in range(n)
        ]
        for i in range(m)
    ]
    assert cells == owners


def test_a_layout_as_picture_plan_and_file(tmp_path: Path) -> None:
    found = apportion.layout((100, 100), [3, 1])
    assert found._repr_svg_().startswith("<svg") and "p1" in found._repr_svg_()
    found.save(tmp_path / "plan.json")
    again = apportion.Layout.read(tmp_path / "plan.json")
    assert [again.slices(r) for r in range(2)] == [found.slices(r) for r in range(2)]
    assert json.loads((tmp_path / "plan.json").read_text())["problem"]["kind"] == "matmul"
    assert found.shape == (100, 100, 100) and len(found) == 2
    assert "#define APPORTION_C_ROWBLOCKS" in found.export("owners-h")
    with pytest.raises(ValueError, match="export the plan of a matrix product"):
        apportion.shares(10, speeds=[1]).export("owners-h")
    with pytest.raises(IndexError, match="rank 2 is out of range"):
        found.slices(2)


def test_a_forecast_by_hand() -> None:
    # Half of C each; the bulk flow sends 1000 x 500 doubles each way over 1e8 bytes/s, then computes.
    found = apportion.layout((1000, 1000), ["10 Gflop/s", "10 Gflop/s"], "rows", bandwidth=1e8)
    forecast = apportion.simulate(found, flow="bulk")
    assert forecast.compute == pytest.approx([0.1, 0.1])
    assert forecast.seconds == pytest.approx(0.1 + 1000 * 500 * 8 / 1e8)
    assert (forecast.flow, forecast.overlap) == ("bulk", False)
    assert forecast.to_dict()["seconds"] == forecast.seconds
    assert apportion.simulate(found).seconds <= forecast.seconds
    assert "<svg" in forecast._repr_svg_()
    slower = apportion.simulate(found, speeds=["10 Gflop/s", "5 Gflop/s"], bandwidth=1e8, flow="bulk")
    assert slower.compute == pytest.approx([0.1, 0.2])


PAIR = """
[[processor]]
name = "first"
speed = 1
[[processor]]
name = "second"
speed = 1
[network]
bandwidth = "1 Gbit/s"
duplex = {duplex}
"""


@pytest.mark.parametrize(("duplex", "crossover"), [("true", 2), ("false", 3)])
def test_a_sweep_finds_the_crossover(duplex: str, crossover: float) -> None:
    # Of n x n, a straight line moves n n in all, n n r / (1 + r) in one direction; the square corner of side
    # s = n / sqrt(1 + r) moves 2 n s in all, 2 s s in the busier direction. They are equal at 3 and at 2.
    found = apportion.sweep(
        (600, 600),
        "ratio=1..5",
        methods=["straight-line", "square-corner"],
        platform=PAIR.format(duplex=duplex),
        flow="bulk",
    )
    assert found.values == [1, 2, 3, 4, 5] and found.candidates == ["straight-line", "square-corner"]
    [(at, before, after, _)] = found.crossovers
    assert at == pytest.approx(crossover, rel=0.02) and (before, after) == ("straight-line", "square-corner")
    assert found.winners[0] == "straight-line" and found.winners[-1] == "square-corner"
    assert all(len(row) == 2 for row in found.seconds) and found._repr_svg_().startswith("<svg")
    assert found.communication_only
