"""What API versions tell about a broker."""

from __future__ import annotations

import pytest

from kafkadash.domain.versions import at_least, common_apis, common_features, is_kraft

KAFKA_4_3 = {35: (1, 5), 45: (0, 1), 55: (0, 2), 60: (0, 2)}
KAFKA_3_9_ZOOKEEPER = {35: (0, 4), 45: (0, 0), 60: (0, 1), 69: (0, 0)}


@pytest.mark.parametrize(
    ("offered", "release"),
    [
        (KAFKA_4_3, "4.3"),
        ({35: (1, 4), 45: (0, 1), 55: (0, 2), 60: (0, 2)}, "4.1"),
        ({35: (1, 4), 45: (0, 0), 55: (0, 2), 60: (0, 2)}, "4.0"),
        ({35: (0, 4), 45: (0, 0), 55: (0, 1), 60: (0, 0)}, "3.3"),
        (KAFKA_3_9_ZOOKEEPER, "3.7"),
        ({3: (0, 5)}, ""),
    ],
)
def test_at_least__names_the_newest_release_that_is_sure(offered: dict[int, tuple[int, int]], release: str) -> None:
    assert at_least(offered) == release


def test_is_kraft__only_where_describe_quorum_is_offered() -> None:
    assert is_kraft(KAFKA_4_3)
    assert not is_kraft(KAFKA_3_9_ZOOKEEPER)


def test_common_apis__is_what_every_broker_offers() -> None:
    new, old = {1: (4, 17), 3: (0, 13), 55: (0, 2), 80: (1, 1)}, {1: (0, 11), 3: (0, 9), 80: (0, 0)}
    assert common_apis([new, old]) == {1: (4, 11), 3: (0, 9)}
    assert common_apis([new]) == new
    assert common_apis([]) == {}


def test_common_features__levels_that_all_support() -> None:
    assert common_features([{"metadata.version": (7, 30)}, {"metadata.version": (1, 25), "group.version": (0, 1)}]) == {
        "metadata.version": (7, 25)
    }
