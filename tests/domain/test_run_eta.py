"""How long a run still takes: told when, how well, and what it does when the throttle changes."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from tests.domain.run_cases import RATE, after, options, row, running
from tests.domain.run_model import MB, Logs, Running, Speed, error_at, one_replica_moves


def test_eta__before_three_samples__is_not_told() -> None:
    run = running(row())

    for _ in range(3):
        run.tick()

    assert all(now.eta_s is None for now in run.told)
    assert after(run, 30).eta_s is not None


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("load", "off"),
    [
        pytest.param(lambda _seed: lambda _b, _w, _at: math.inf, 0.12, id="steady"),
        pytest.param(lambda _seed: lambda _b, _w, _at: 25.0 * MB, 0.12, id="slower than the throttle"),
        pytest.param(lambda seed: lambda b, _w, at: changing(seed, b, at), 0.2, id="changing"),
        pytest.param(
            lambda seed: lambda b, w, _at: 15.0 * MB if (b, w) == (seed, "in") else math.inf, 0.12, id="slow disk"
        ),
    ],
)
def test_eta__at_half_the_time__is_near(seed: int, load: Callable[[int], Speed], off: float) -> None:
    rows, sizes = one_replica_moves(120, 8, seed, mean=900 * MB)
    cluster = Logs(rows, sizes, range(8), RATE)
    cluster.can = load(seed)
    run = Running(cluster, rows, options())

    took = run.until_over(every=6.0)

    assert abs(error_at(run.told, took)) < off


def changing(seed: int, broker: int, at: float) -> float:
    """Clients take up to half of each broker, and something else every 20 s."""
    return RATE * random.Random(f"{seed} {broker} {at // 20}").uniform(0.5, 1.0)


def test_eta__throttle_is_doubled__follows_at_once_and_says_that_it_is_expected() -> None:
    run = running(row(), rate=20 * MB)
    before = after(run, 60)

    run.throttle(40 * MB)
    then = after(run, 2)
    later = after(run, 80)

    assert before.eta_s is not None
    assert then.eta_s == pytest.approx(before.eta_s / 2, rel=0.06)
    assert any("throttle was changed" in note for note in then.notes)
    assert later.rate == pytest.approx(40 * MB, rel=0.03)
    assert not any("throttle was changed" in note for note in later.notes)


def test_eta__throttle_is_raised_and_the_disk_is_the_limit__learns_so_in_two_minutes() -> None:
    run = running(row(), size=12_000 * MB, rate=20 * MB)
    run.cluster.can = lambda _broker, _way, _at: 25.0 * MB
    after(run, 60)

    run.throttle(100 * MB)
    now = after(run, 120)

    assert now.rate == pytest.approx(25 * MB, rel=0.15)


def test_eta__bursts_after_the_throttle_changed__do_not_show() -> None:
    run = running(row(), size=12_000 * MB, rate=20 * MB)
    after(run, 60)
    run.throttle(40 * MB)
    run.cluster.rate = 600 * MB
    run.tick(1.0)
    run.cluster.rate = 1 * MB

    told = [after(run, 2) for _ in range(6)]

    assert all(now.rate == pytest.approx(40 * MB, rel=0.02) for now in told)
