"""Every result is a value: it pickles, copies and crosses processes, bit for bit."""

from __future__ import annotations

import copy
import json
import multiprocessing
import pickle
import subprocess
import sysconfig
from pathlib import Path

import apportion
import pytest

TWO = """
name = "two"
[[processor]]
name = "a"
cluster = "left/one"
speed = "2.1 Gflop/s"
[[processor]]
name = "b"
speed = "0.7 Gflop/s"
[network]
latency = "31 us"
bandwidth = { horizontal = "56.39 MB/s", vertical = "61 MB/s" }
duplex = false
"""


def models() -> apportion.Models:
    points = {
        "a": [(10.0, 1 / 3, 0.01, 5, (0.3, 0.4)), (20.0, 1.0, None, 1, None)],
        "b": [(7.0, 0.1, None, 1, None)],
    }
    return apportion.Models._measured("k", "unit", list(points.items()))


def balancer() -> apportion.Balancer:
    found = apportion.Balancer(1000, 3, min=[1, None, 0], cost_per_change=0.25, speeds=[1, 1 / 3, 7])
    for factor in (1.0, 1.1, 0.9):
        found.observe([factor * count / speed for count, speed in zip(found.counts, (1, 2, 3))])
    return found


def values(tmp_path: Path) -> dict[str, object]:
    platform = tmp_path / "two.toml"
    platform.write_text(TWO)
    small = memoryview(bytes(64 * 8)).cast("d", [8, 8])
    layout = apportion.layout((100, 70, 90), platform=platform)
    found: dict[str, object] = {
        "shares": apportion.shares(100, speeds={"x": 1, "y": 1 / 3}),
        "timed shares": apportion.shares(100, seconds=[0.1, {10: 0.7, 100: 9.0}]),
        "layout": layout,
        "layout of ratios": apportion.layout((60, 60), [5, 3, 2]),
        "models": models(),
        "balancer": balancer(),
        "decision": balancer().observe([1.0, 2.0, 3.0]),
        "report": apportion.matmul(small, small, speeds=["2 Gflop/s", "1 Gflop/s"], report=True)[1],
        "report of ratios": apportion.matmul(small, small, speeds=[2, 1], report=True)[1],
        "report of an adaptive run": apportion.matmul(
            small, small, speeds=[2, 1], adaptive=True, block=2, segments=2, report=True
        )[1],
        "report of a closure": apportion.closure(small, speeds=[2, 1], report=True)[1],
        "forecast": apportion.simulate(layout),
        "sweep": apportion.sweep((90, 90), "ratio=1..5", [1, 1], bandwidth="1 Gbit/s"),
        "sweep of flows": apportion.sweep((90, 90), "latency=1us..1ms", [2, 1], ["rows"], bandwidth=1e8),
    }
    # The state has all of it.
    platform.unlink()
    return found


def described(value: object) -> list[object]:
    """Everything that a value says of itself."""
    names = [name for name in dir(type(value)) if not name.startswith("_")]
    said: list[object] = [repr(value), str(value)]
    for name in names:
        found = getattr(value, name)
        if not callable(found):
            said.append((name, repr(found)))
    for name in ("to_dict", "to_json", "_repr_svg_"):
        if hasattr(value, name):
            said.append(getattr(value, name)())
    if isinstance(value, apportion.Layout):
        said.append([value.slices(rank) for rank in range(len(value))])
    return said


def test_pickles_and_copies_are_equal_bit_for_bit(tmp_path: Path) -> None:
    for name, value in values(tmp_path).items():
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            again = pickle.loads(pickle.dumps(value, protocol))
            assert type(again) is type(value) and again == value and described(again) == described(value), (
                name
            )
            assert pickle.dumps(again, protocol) == pickle.dumps(value, protocol), name
        for again in (copy.copy(value), copy.deepcopy(value), copy.deepcopy([value])[0]):
            assert again == value and described(again) == described(value), name
        if not isinstance(value, apportion.Balancer):
            assert hash(copy.deepcopy(value)) == hash(value)
        assert value != object() and value is not None


def test_a_copy_goes_on_as_the_original_does(tmp_path: Path) -> None:
    original, copied = balancer(), copy.deepcopy(balancer())
    pickled = pickle.loads(pickle.dumps(original))
    for factor in (1.0, 3.0, 1.0, 0.2):
        seconds = [factor * (rank + 1.5) for rank in range(3)]
        decisions = {one.observe(seconds) for one in (original, copied, pickled)}
        assert len(decisions) == 1
    layout = values(tmp_path)["layout"]
    assert isinstance(layout, apportion.Layout)
    again = pickle.loads(pickle.dumps(layout))
    for flow in (None, "bulk", "ring"):
        assert apportion.simulate(again, flow=flow) == apportion.simulate(layout, flow=flow)


def test_decisions_of_extreme_times_survive() -> None:
    decision = apportion.Balancer(10, 2, warm_up=0).observe([1e-90, 1e90])
    again = pickle.loads(pickle.dumps(decision))
    assert (again.spread, again.gain, again.cost) == (decision.spread, decision.gain, decision.cost)


def test_values_cross_processes(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        for name, value in values(tmp_path).items():
            assert pool.apply(copy.copy, (value,)) == value, name


def test_plans_of_units_come_back(tmp_path: Path) -> None:
    for name, found in {
        "ratios": apportion.shares(1000, speeds={"x": 1, "y": 1 / 3}),
        "times": apportion.shares(1000, seconds=[0.1, {10: 0.7, 100: 9.0}]),
        "none": apportion.shares(0, speeds=[1, 1]),
    }.items():
        found.save(tmp_path / "plan.json")
        again = apportion.Shares.read(tmp_path / "plan.json")
        assert again == found and described(again) == described(found), name
        again.save(tmp_path / "again.json")
        assert (tmp_path / "again.json").read_bytes() == (tmp_path / "plan.json").read_bytes()
    # By hand, without metrics.
    plain = {"format": "apportion-plan", "version": 1, "method": "mine", "problem": {"kind": "units", "n": 3}}
    (tmp_path / "hand.json").write_text(json.dumps(plain | {"processors": ["a", "b"], "shares": [1, 2]}))
    found = apportion.Shares.read(tmp_path / "hand.json")
    assert found.counts == [1, 2] and pickle.loads(pickle.dumps(found)) == found == copy.copy(found)


def test_plans_of_the_command_are_read(tmp_path: Path) -> None:
    command = str(Path(sysconfig.get_path("scripts")) / "apportion")

    def run(*words: str) -> None:
        subprocess.run([command, *words], check=True, capture_output=True, cwd=tmp_path)

    run("partition", "--units", "100", "--speeds", "3,1", "-o", "units.json")
    platform = tmp_path / "pair.toml"
    platform.write_text("[[processor]]\nname = 'a'\n[[processor]]\nname = 'b'\n")
    options = ["--platform", str(platform), "--max-rounds", "2", "-o", "balanced.json"]
    run("balance", "--units", "100", "--command", "sleep 0.0{share}", *options)
    run("partition", "--shape", "60x60", "--speeds", "3,1", "-o", "shape.json")
    assert apportion.Shares.read(tmp_path / "units.json") == apportion.shares(100, speeds=[3, 1])
    assert sum(apportion.Shares.read(str(tmp_path / "balanced.json"))) == 100
    layout = apportion.Layout.read(tmp_path / "shape.json")
    assert pickle.loads(pickle.dumps(layout)) == layout
    with pytest.raises(ValueError, match="read it with Layout.read"):
        apportion.Shares.read(tmp_path / "shape.json")
    with pytest.raises(ValueError, match="read it with Shares.read"):
        apportion.Layout.read(tmp_path / "units.json")
    with pytest.raises(FileNotFoundError):
        apportion.Shares.read(tmp_path / "none.json")


def test_what_is_no_state_is_refused() -> None:
    for kind in ("Shares", "Sweep", "Report", "Layout", "Other"):
        with pytest.raises(ValueError, match="state"):
            apportion._native._restore(kind, "{}")
