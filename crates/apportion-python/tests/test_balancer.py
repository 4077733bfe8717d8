"""The balancer in a simulated loop, and as a value."""

from __future__ import annotations

import json
import random

import apportion


def test_an_unequal_loop_is_balanced_within_five_rounds() -> None:
    speeds = [90.0, 30.0, 10.0]
    balancer = apportion.Balancer(1300, len(speeds))
    assert balancer.counts == [434, 433, 433] and balancer.slices[1] == slice(434, 867, 1)
    for _ in range(5):
        decision = balancer.observe([count / speed for count, speed in zip(balancer.counts, speeds)])
        assert sum(decision.counts) == 1300 and decision.counts == balancer.counts
    times = [count / speed for count, speed in zip(balancer.counts, speeds)]
    assert max(times) <= 1.05 * min(times)
    assert not decision and decision.reason == "balanced" and decision.units_moved == 0


def test_every_rank_decides_alike_and_a_checkpoint_goes_on() -> None:
    draw = random.Random(1)
    ranks = [apportion.Balancer(1000, 4, tolerance=0.1, min=10, speeds=[4, 3, 2, 1]) for _ in range(3)]
    for _ in range(20):
        times = [draw.uniform(1, 2) * count for count in ranks[0].counts]
        decisions = [rank.observe(times) for rank in ranks]
        assert len({tuple(decision.counts) for decision in decisions}) == 1
        ranks[2] = apportion.Balancer.from_json(ranks[2].to_json())
        assert ranks[0] == ranks[1] == ranks[2]
    assert json.loads(ranks[0].to_json()) == ranks[0].to_dict() and ranks[0].rounds == 20


def test_a_start_from_models_limits_and_the_callers_own_shares() -> None:
    models = apportion.Models._measured(
        "k", "unit", [("a", [(10, 1, None, 1, None)]), ("b", [(10, 3, None, 1, None)])]
    )
    assert apportion.Balancer(100, 2, models=models).counts == [75, 25]
    assert apportion.Balancer(100, 2, speeds=[3, 1], max=[60, None]).counts == [60, 40]
    balancer = apportion.Balancer(100, 2)
    balancer.adopt([10, 90])
    assert (balancer.counts, balancer.offsets, balancer.units, len(balancer)) == ([10, 90], [0, 10], 100, 2)


def test_times_in_an_array(needs) -> None:
    numpy = needs("numpy")
    lists, arrays = apportion.Balancer(100, 2), apportion.Balancer(100, 2)
    assert lists.observe([1.0, 3.0]).counts == arrays.observe(numpy.array([1.0, 3.0])).counts
    arrays.adopt(numpy.array(lists.counts))
    assert lists.counts == arrays.counts


def test_moving_has_its_price() -> None:
    free = apportion.Balancer(100, 2)
    dear = apportion.Balancer(100, 2, cost_per_change=1000.0, rounds=10)
    for balancer in (free, dear):
        for _ in range(3):
            balancer.observe([count / speed for count, speed in zip(balancer.counts, (3.0, 1.0))])
    assert free.counts == [75, 25] and dear.counts == [50, 50]


def test_a_slow_first_step_is_forgotten_and_the_slowest_named() -> None:
    for warm_up in (0, 1):
        balancer = apportion.Balancer(1000, 2, warm_up=warm_up)
        for step in range(21):
            times = [count / speed for count, speed in zip(balancer.counts, (3.0, 1.0))]
            if step == 0:
                times[0] *= 10
            decision = balancer.observe(times)
            assert decision.slowest == times.index(max(times))
        assert abs(balancer.counts[0] - 750) <= 12
    assert apportion.Balancer(10, 2).observe([1.0, 9.0]).reason == "warming-up"


def test_a_notebook_draws_balancers_and_models() -> None:
    balancer = apportion.Balancer(1200, 2, warm_up=0)
    balancer.observe([count / speed for count, speed in zip(balancer.counts, (3.0, 1.0))])
    picture = balancer._repr_svg_()
    assert (
        picture.startswith("<svg") and "shares after 1 round: 1,200 units" in picture and "75.0 %" in picture
    )
    points = [
        ("big", [(10, 1, 0.1, 3, (0.9, 1.1)), (1000, 50, None, 1, None)]),
        ("small", [(10, 3, None, 1, None)]),
    ]
    picture = apportion.Models._measured("sort", "rows", points)._repr_svg_()
    assert picture.startswith("<svg") and picture.rstrip().endswith("</svg>")
    for word in (">sort; a unit: rows<", ">big<", ">small<", "size, units", "speed, units per second"):
        assert word in picture, word
