from __future__ import annotations

from collections.abc import Mapping

import pytest

from kafkadash.domain.rack_labels import short_labels


@pytest.mark.parametrize(
    ("racks", "labels"),
    [
        (["eu-1a", "eu-1b"], {"eu-1a": "a", "eu-1b": "b"}),
        (["hall 1", "hall 12"], {"hall 1": "hall 1", "hall 12": "hall 12"}),
        (["Halle Süd", "Halle Nord"], {"Halle Süd": "Süd", "Halle Nord": "Nord"}),
        (["eu-west-1a", "us-east-1b"], {"eu-west-1a": "eu-west-1a", "us-east-1b": "us-east-1b"}),
        (["", "a"], {"": "", "a": "a"}),
        (["only"], {"only": "only"}),
        ([], {}),
    ],
)
def test_racks_are_told_apart_by_as_little_as_does(racks: list[str], labels: Mapping[str, str]) -> None:
    assert short_labels(racks) == labels
