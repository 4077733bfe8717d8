"""Shares of units: against three lines of arithmetic, and every way to say how fast processors are."""

from __future__ import annotations

import itertools
import json
import warnings
from collections.abc import Sequence
from pathlib import Path

import apportion
import pytest


def longest(times: list[float], counts: tuple[int, ...] | list[int]) -> float:
    return max(time * count for time, count in zip(times, counts))


@pytest.mark.parametrize("units", [0, 1, 2, 7, 12])
@pytest.mark.parametrize("times", [[1.0], [1.0, 3.0], [2.0, 1.0, 5.0]])
def test_shares_finish_as_early_as_any(units: int, times: list[float]) -> None:
    found = apportion.shares(units, seconds=times)
    assert sum(found.counts) == units
    every = (c for c in itertools.product(range(units + 1), repeat=len(times)) if sum(c) == units)
    assert longest(times, found.counts) == pytest.approx(min(longest(times, c) for c in every))
    assert found.seconds == pytest.approx([t * c for t, c in zip(times, found.counts)])


def test_counts_offsets_and_slices_agree() -> None:
    found = apportion.shares(100, speeds=[5, 3, 2], processors=["a", "b", "c"])
    assert found.counts == [50, 30, 20] == list(found)
    assert found.offsets == [0, 50, 80]
    units = list(range(100))
    assert [x for part in found.slices for x in units[part]] == units
    assert [len(units[part]) for part in found.slices] == found.counts
    assert (len(found), found[0], found[-1], found.processors) == (3, 50, 20, ["a", "b", "c"])
    with pytest.raises(IndexError, match="rank 3 is out of range"):
        found[3]


def test_ratios_have_no_seconds_and_units_have() -> None:
    assert apportion.shares(10, speeds=[1, 1]).seconds is None
    assert apportion.shares(10, speeds=["5 units/s", "5 units/s"]).seconds == [1.0, 1.0]
    assert apportion.shares(10, speeds=[1, 1]).imbalance == 1.0


def test_limits_for_all_and_for_each() -> None:
    assert apportion.shares(1000, speeds=[9, 1], min=150).counts == [850, 150]
    assert apportion.shares(1000, speeds=[9, 1], max=[600, None]).counts == [600, 400]
    assert apportion.shares(1024, speeds=[9, 1], multiple_of=64).counts == [960, 64]
    assert apportion.shares(1000, speeds=[9, 1], method="even").counts == [500, 500]


def test_models_from_a_file_a_dictionary_and_an_object(tmp_path: Path) -> None:
    def model(name: str, seconds: float) -> dict[str, object]:
        return {
            "processor": name,
            "interpolation": "piecewise-linear",
            "max_size": None,
            "points": [{"size": 10, "seconds": seconds, "ci": None, "repetitions": 1}],
        }

    value = {
        "format": "apportion-models",
        "version": 1,
        "kernel": "work",
        "unit": "unit",
        "parameters": {},
        "models": [model("a", 1.0), model("b", 3.0)],
    }
    path = tmp_path / "models.json"
    path.write_text(json.dumps(value))
    for given in (path, str(path), value, apportion.Models.read(path), json.dumps(value, indent=1)):
        found = apportion.shares(100, models=given)
        assert (found.counts, found.processors) == ([75, 25], ["a", "b"])
    assert apportion.shares(100, models=path, processors=["b", "a"]).counts == [25, 75]


def test_shares_are_a_sequence(needs) -> None:
    numpy = needs("numpy")
    found = apportion.shares(100, speeds=[5, 3, 2])
    counts = [50, 30, 20]
    assert isinstance(found, Sequence)
    assert numpy.array(found).tolist() == counts and numpy.array(found).dtype.kind == "i"
    assert numpy.cumsum(found).tolist() == [50, 80, 100] and numpy.asarray(found, float).sum() == 100
    for index in (0, -1, 2, numpy.int64(1), slice(0, 1), slice(None, None, -1), slice(-2, None), slice(5, 9)):
        assert found[index] == counts[index]
    assert list(reversed(found)) == counts[::-1] and 30 in found and 31 not in found and "x" not in found
    assert (found.index(20), found.count(30), found.count(1)) == (2, 1, 0)
    assert (max(found), sorted(found), sum(found), (*found,)) == (50, [20, 30, 50], 100, (50, 30, 20))
    with pytest.raises(ValueError):
        found.index(30, 2)
    for index in (3, -4):
        with pytest.raises(IndexError, match=f"rank {index} is out of range: there are 3 processors"):
            found[index]
    with pytest.raises(TypeError):
        found["fast"]
    same = apportion.shares(100, speeds=[5, 3, 2])
    assert same == found and hash(same) == hash(found) and len({same, found}) == 1
    assert found != apportion.shares(100, speeds=[5, 3, 2], processors=["a", "b", "c"])
    assert (
        found == [50, 30, 20] == found
        and found == (50, 30, 20)
        and found != [50, 30]
        and found != (50, 30, 21)
    )
    assert hash(found) == hash((50, 30, 20)) and found != {50, 30, 20} and found != "503020"
    with pytest.raises(TypeError):
        found < [50, 30, 20]


def test_shares_compare_with_arrays(needs) -> None:
    numpy = needs("numpy")
    found = apportion.shares(100, speeds=[5, 3, 2])
    assert (found == numpy.array([50, 31, 20])).tolist() == [True, False, True]
    assert (numpy.array([50, 30, 20]) == found).all()


def test_a_platform_may_be_a_dictionary(needs) -> None:
    numpy = needs("numpy")
    one, two = {"name": 'a "fast" \\ o\u00efe', "speed": numpy.float64(3)}, {"name": "b", "speed": 1}
    found = apportion.shares(10, platform={"processor": [one, two], "name": None})
    assert found == [8, 2] and found.processors[1] == "b"
    platform = {
        "processor": [
            {"name": n, "speed": s, "cores": numpy.arange(2)}
            for n, s in (("a", "3 Gflop/s"), ("b", "1 Gflop/s"))
        ],
        "network": {
            "latency": "50 us",
            "bandwidth": 1e8,
            "duplex": False,
            "link": [{"between": ("a", "b"), "bandwidth": {"horizontal": "1 MB/s", "vertical": "2 MB/s"}}],
        },
    }
    layout = apportion.layout((100, 100), platform=platform)
    assert apportion.simulate(layout, platform=platform).seconds > 0
    assert apportion.matmul(
        numpy.eye(40), numpy.eye(40), platform={"processor": [{"name": "a", "speed": 3}]}
    ).shape == (40, 40)
    for wrong, error, words in [
        ({"processor": [{"name": "a", "speed": {1}}]}, ValueError, "platform"),
        ({"processor": object}, TypeError, "platform: processor: .* cannot be in a platform file"),
        ({"processors": []}, ValueError, "platform.*processors"),
        ({"processor": [{"name": "a\n\x7f", "speed": 1}]}, ValueError, "platform.*control character"),
    ]:
        with pytest.raises(error, match=words):
            apportion.shares(10, platform=wrong)


def test_names_come_from_dictionaries() -> None:
    found = apportion.shares(1000, speeds={"fast": 9, "slow": 1})
    assert (found.counts, found.processors) == ([900, 100], ["fast", "slow"])
    found = apportion.shares(1000, speeds={"fast": 9, "slow": 1}, processors=["slow", "fast"])
    assert (found.counts, found.processors) == ([100, 900], ["slow", "fast"])
    found = apportion.shares(
        100, seconds={"a": {10: 1.0, 100: 10.0}, "b": [(10, 2.0), (100, 80.0)], "c": 0.1}
    )
    assert found.processors == ["a", "b", "c"] and sum(found) == 100
    assert apportion.shares(100, speeds={"a": "3 units/s", "b": "1 units/s"}).seconds == [25.0, 25.0]
    # Numbers from 0 on are ranks, not names.
    assert apportion.shares(1000, speeds={0: 9, 1: 1}).processors == ["p0", "p1"]
    assert apportion.layout((10, 10), {"a": 9, "b": 1}, "rows").processors == ["a", "b"]
    assert apportion.Balancer(100, 2, speeds={"a": 3, "b": 1}, max={"a": 60}).counts == [60, 40]
    assert apportion.shares(100, speeds={"a": 1, "b": 1}, min={"b": 70}).counts == [30, 70]


def test_names_come_from_a_series(needs) -> None:
    pandas = needs("pandas")
    named = pandas.Series({"fast": 9.0, "slow": 1.0})
    assert apportion.shares(1000, speeds=named).processors == ["fast", "slow"]
    assert apportion.shares(1000, speeds=pandas.Series([9, 1])).processors == ["p0", "p1"]
    assert apportion.shares(1000, speeds=named, max=pandas.Series({"fast": 600})).counts == [600, 400]
    frame = pandas.DataFrame({"a": range(40)})
    for call in (
        lambda: apportion.shares(frame, speeds=[1]),
        lambda: apportion.shares(10, speeds=frame),
        lambda: apportion.shares(10, speeds=[frame]),
        lambda: apportion.shares(10, speeds=[1], max=frame),
        lambda: apportion.shares(10, models=frame),
        lambda: apportion.shares(10, speeds=[1], method=frame),
    ):
        with pytest.raises(TypeError, match="a DataFrame of 40 x 1 is no") as caught:
            call()
        assert "\n" not in str(caught.value)


def test_old_names_of_arguments_still_work() -> None:
    with pytest.warns(DeprecationWarning, match="least is now called min") as caught:
        assert apportion.shares(1000, speeds=[9, 1], least=150).counts == [850, 150]
    assert caught[0].filename == __file__
    with pytest.warns(DeprecationWarning, match="most is now called max"):
        assert apportion.shares(1000, speeds=[9, 1], most=[600, None]).counts == [600, 400]
    with pytest.warns(DeprecationWarning, match="cost_per_move is now called cost_per_change") as caught:
        old = apportion.Balancer(10, 2, cost_per_move=3.0)
    assert caught[0].filename == __file__ and old == apportion.Balancer(10, 2, cost_per_change=3.0)
    with pytest.warns(DeprecationWarning, match="least is now called min"):
        assert apportion.Balancer(10, 2, least=1) == apportion.Balancer(10, 2, min=1)


def test_numbers_of_other_types(needs) -> None:
    numpy = needs("numpy")
    speeds = numpy.array([9, 1], dtype=numpy.float32)
    assert apportion.shares(numpy.int64(100), speeds=speeds).counts == [90, 10]


def test_exports_and_files(tmp_path: Path) -> None:
    found = apportion.shares(10, speeds=[4, 1, 0.0001])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert found.export("vllm").endswith("\n")
    assert caught and "left out" in str(caught[0].message)
    found.save(tmp_path / "plan.json")
    assert json.loads((tmp_path / "plan.json").read_text()) == found.to_dict()
    assert found.to_dict()["shares"] == found.counts
    assert found._repr_svg_().startswith("<svg")
    assert found == apportion.shares(10, speeds=[4, 1, 0.0001]) != apportion.shares(10, speeds=[1, 1])


def test_units_of_different_cost_have_contiguous_parts(needs) -> None:
    costs = [1, 1, 1, 1, 4]
    found = apportion.shares(costs=costs, speeds=[1, 1])
    assert (found.counts, found.order, found.costs, found.imbalance) == ([4, 1], [0, 1], [4.0, 4.0], 1.0)
    assert apportion.shares(5, costs=costs, speeds=[3, 1]).counts == [5, 0]
    moved = apportion.shares(costs=iter(costs), speeds=[3, 1], any_order=True)
    assert (moved.counts, moved.order, moved.offsets) == ([3, 2], [1, 0], [2, 0])
    assert moved.slices == [slice(2, 5, 1), slice(0, 2, 1)]
    assert apportion.shares(5, speeds=[3, 1]).costs is None
    machine = {
        "processor": [{"name": "a", "speed": 3, "memory": 20}, {"name": "b", "speed": 1, "memory": 99}]
    }
    capped = apportion.shares(costs=costs, memory=[10] * 5, platform=machine)
    assert capped.counts == [2, 3]
    timed = apportion.shares(costs=costs, seconds=[1.0, 2.0], objective="latency")
    assert (timed.counts, timed.seconds) == ([5, 0], [8.0, 0.0])
    numpy = needs("numpy")
    assert apportion.shares(costs=numpy.array(costs, "f4"), speeds=[1, 1]).counts == [4, 1]


@pytest.mark.parametrize(
    ("arguments", "kind", "word"),
    [
        ({}, TypeError, "units"),
        ({"costs": []}, ValueError, "costs"),
        ({"costs": "1 2"}, TypeError, "costs"),
        ({"costs": 3}, TypeError, "costs"),
        ({"costs": [1, "x"]}, TypeError, "costs"),
        ({"costs": [1, -1]}, ValueError, "costs"),
        ({"costs": [1, float("nan")]}, ValueError, "costs"),
        ({"costs": [0, 0]}, ValueError, "costs"),
        ({"costs": [1, 2], "units": 3}, ValueError, "costs"),
        ({"costs": [1, 2], "memory": [1]}, ValueError, "memory"),
        ({"costs": [1, 2], "memory": [1, 1]}, ValueError, "memory"),
        ({"costs": [1, 2], "objective": "speed"}, ValueError, "objective"),
        ({"costs": [1, 2], "method": "even"}, ValueError, "method"),
    ],
)
def test_costs_that_are_none_are_refused(arguments, kind, word) -> None:
    with pytest.raises(kind, match=word):
        apportion.shares(**arguments, speeds=[1, 1])
