"""Shares of units: against three lines of arithmetic, and every way to say how fast processors are."""

from __future__ import annotations

import itertools
import json
import warnings
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
    assert apportion.shares(1000, speeds=[9, 1], least=150).counts == [850, 150]
    assert apportion.shares(1000, speeds=[9, 1], most=[600, None]).counts == [600, 400]
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
