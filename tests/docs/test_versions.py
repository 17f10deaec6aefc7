"""The table of Kafka versions says of each feature what its needs say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kafkadash.monitoring.offers import NEEDS
from tests.kafka_releases import parse_release

pytestmark = pytest.mark.domain
ROOT = Path(__file__).parents[2]
RELEASES = ((3, 9), (4, 0), (4, 3), (4, 4))  # of the columns in KRaft mode


def rows() -> dict[str, list[str]]:
    lines = (ROOT / "docs/versions.md").read_text(encoding="utf-8").splitlines()
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    return {cells[0]: cells[1:] for cells in table if len(cells) == 7}


def test_versions__each_feature__is_there_from_its_release_on() -> None:
    table = rows()
    for need in NEEDS.values():
        with_zookeeper, *marks, _ = table[need.words]
        first = parse_release(need.release.split()[0])
        assert [mark.startswith("yes") for mark in marks] == [release >= first for release in RELEASES], need.words
        assert not with_zookeeper.startswith("yes"), need.words


def test_versions__tests_of_the_table__exist() -> None:
    named = {path for *_, tests in rows().values() for path in re.findall(r"`(\w+/\w+\.py)`", tests)}
    assert named
    assert [path for path in named if not (ROOT / "tests" / path).is_file()] == []
