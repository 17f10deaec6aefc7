"""The description of a playground: what it says of brokers that were added later."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kafkadash.playground.state import (
    STATE_FORMAT,
    Cluster,
    Layout,
    choose_ports,
    difference,
    grown,
    new_cluster,
    read_cluster,
    write_cluster,
)


def test_a_grown_cluster__is_the_same_one_with_one_more_broker_that_has_the_listeners_of_the_others() -> None:
    made = choose_ports(new_cluster(2, ("a", "b"), 1, 1, ["TLS"]), set())
    more = grown(made, "b")
    assert replace(more, nodes=more.nodes[:2], added=()) == made
    [new] = more.nodes[2:]
    assert (new.node_id, new.roles, new.rack, new.secured_ports, more.added) == (3, "broker", "b", {"TLS": 0}, (3,))
    assert [node.node_id for node in more.made_with] == [1, 2]
    assert grown(more, "").nodes[3].rack is None
    assert grown(more, "").added == (3, 4)


def test_brokers_that_are_added__never_take_the_id_of_a_controller_and_stand_before_them() -> None:
    cluster = new_cluster(1, None, 3, 1)
    assert [node.node_id for node in grown(cluster, None).nodes] == [1, 2, 101, 102, 103]
    hundred = new_cluster(100, None, 3, 1)
    assert grown(hundred, None).added == (104,)


@pytest.mark.parametrize(
    ("brokers", "racks"), [(2, "ab"), (None, "ab"), (2, None), (3, "abc"), (3, None), (None, "abc")]
)
def test_asking_for_it_as_it_was_made_or_as_it_is__finds_no_difference(brokers: int | None, racks: str | None) -> None:
    assert difference(_two_and_one(), brokers, racks, None, None) is None


def test_asking_for_anything_else__is_a_difference_from_what_it_is() -> None:
    cluster = _two_and_one()
    assert difference(cluster, 4, None, None, None) == ("brokers", 3, 4)
    assert difference(cluster, 3, "ab", None, None) == ("racks", "a,b,c", "a,b")
    assert difference(cluster, 2, None, 3, None) == ("brokers", 3, 2)
    assert difference(cluster, None, None, 3, None) == ("controllers", 1, 3)
    assert difference(cluster, None, None, None, 2) == ("log directories", 1, 2)


def test_what_was_added__is_remembered_and_a_description_from_before_it_could_be_is_read(tmp_path: Path) -> None:
    cluster = choose_ports(_two_and_one(), set())
    write_cluster(tmp_path, cluster)
    assert read_cluster(tmp_path) == cluster
    document = json.loads(Layout(tmp_path).state.read_text())
    assert document.pop("added") == [3]
    assert document["format"] == STATE_FORMAT
    Layout(tmp_path).state.write_text(json.dumps(document))
    assert read_cluster(tmp_path) == replace(cluster, added=())


def _two_and_one() -> Cluster:
    return grown(new_cluster(2, ("a", "b"), 1, 1), "c")
