"""The status board: the title is the answer, the worst comes first, nothing old is green."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.core.management import get_commands, load_command_class
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster, Role
from kafkadash.observe.models import BrokerState, Collection, QuorumSnapshot
from kafkadash.oncall.models import Finding
from kafkadash.oncall.services import judge
from tests.factories import NOW, ReassignmentFactory, TopicFactory, judged, silent, watched
from tests.pages.conftest import Page

GetPage = Callable[[str], Page]


def parses(text: str, command: str, arguments: str) -> bool:
    """The page prints this command, and the command takes these arguments."""
    parser = load_command_class(get_commands()[command], command).create_parser("manage.py", command)
    parser.parse_args(arguments.split())
    return f"python manage.py {command} {arguments}" in text


def offline(name: str) -> Cluster:
    return watched(name, offline_partitions=2)


def test_it_says_what_to_do_when_no_cluster_is_registered(get_page: GetPage) -> None:
    board = get_page("/")
    assert board.title == "No cluster is registered yet."
    assert parses(board.text, "cluster", "register NAME --bootstrap HOST:PORT")


def test_it_says_what_to_do_when_no_cluster_is_visible(stranger: User, client_of: Callable[[User], Client]) -> None:
    watched("secret")
    board = Page(client_of(stranger).get("/").content.decode())
    assert board.title == "You have no role on any cluster yet."
    assert parses(board.text, "user", "give stan --role viewer")
    assert "secret" not in board.html


def test_healthy_clusters_take_one_line_each(get_page: GetPage) -> None:
    for name in ("b", "a", "c"):
        watched(name)
    board = get_page("/")
    assert board.title == "All 3 clusters are OK."
    assert board.order_of("status-a", "status-b", "status-c") == ["status-a", "status-b", "status-c"]
    assert (
        board.words("status-a")
        == "OK a Kafka 4.3+ 3 brokers 1,120 partitions survives 1 none findings: none yet data 3 s old"
    )
    assert 'class="cluster-line"' in board.start_tag("status-a")


def test_worst_comes_first_then_by_name(get_page: GetPage) -> None:
    watched("well")
    silent(watched("silent"), NOW - timedelta(minutes=12), error="Connection refused.")
    watched("warned", under_replicated=41)
    offline("z")
    offline("a")
    Cluster.objects.filter(pk=watched("off").pk).update(enabled=False)
    judged(Cluster.objects.get(name="warned"))
    board = get_page("/")
    ids = [f"status-{name}" for name in ("a", "z", "warned", "silent", "off", "well")]
    assert board.order_of(*ids) == ids
    assert board.title == "a has 2 partitions without a leader, and nobody has it."
    assert board.words("clusters-quiet").startswith("Nothing to do 1 cluster OK and 1 cluster not watched")


def test_a_broken_cluster_says_sentence_number_since_and_next_step(get_page: GetPage) -> None:
    cluster = watched("demo", brokers_fenced=1)
    BrokerState.objects.filter(cluster=cluster, broker_id=2).update(fenced=True, changed_at=NOW - timedelta(minutes=7))
    judged(cluster)
    row = Finding.objects.get(cluster=cluster)
    board = get_page("/")
    assert board.words(f"finding-{row.public_id}") == (
        "Critical Broker 2 is down and hosts 229 replicas. The controller has it fenced: registered, but it sends"
        " no heartbeat Runbook Link 229 replicas on a broker that is down steady 7 min 01:56:04"
        " Acknowledge Open broker 2"
    )
    assert f'href="/clusters/demo/findings/{row.public_id}/#owner"' in board.html
    assert 'href="/runbooks/broker-down/"' in board.html


def test_a_cluster_that_does_not_answer_is_unknown_with_its_error(get_page: GetPage) -> None:
    silent(watched("ledger-dr"), NOW - timedelta(minutes=12), error="No broker accepted a connection.")
    board = get_page("/")
    assert board.title == "Cannot tell about ledger-dr: no broker has answered for 12 min."
    assert 'data-state="unknown"' in board.start_tag("status-ledger-dr")
    words = board.words("status-ledger-dr")
    assert "3 brokers when last seen" in words
    assert "No broker accepted a connection." in words
    assert "data 12 min old" in words
    assert 'data-state="ok"' not in board.part("status-ledger-dr")


def test_a_cluster_that_was_never_reached_has_no_figures(get_page: GetPage) -> None:
    cluster = watched("new")
    cluster.state.delete()
    cluster.collector_runs.update(succeeded_at=None, attempted_at=None)
    for model in (BrokerState, QuorumSnapshot, Collection):
        model.objects.filter(cluster=cluster).delete()
    board = get_page("/")
    assert board.title == "Cannot tell about new: nothing was collected yet."
    assert "0 brokers" not in board.text
    assert "no data yet" in board.words("status-new")


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        ("critical", {"bad"}),
        ("ok", {"well"}),
        ("maintenance", set()),
        ("nonsense", {"bad", "well"}),
        ("", {"bad", "well"}),
    ],
)
def test_the_tally_filters_by_state(get_page: GetPage, state: str, shown: set[str]) -> None:
    offline("bad")
    watched("well")
    board = get_page(f"/?state={state}")
    assert {name for name in ("bad", "well") if board.has(f"status-{name}")} == shown
    assert board.title == "bad has 2 partitions without a leader, and nobody has it."
    assert "1 cluster critical" in board.words("board-head")


def test_what_moves_is_counted_on_the_line(get_page: GetPage) -> None:
    cluster = watched("demo")
    ReassignmentFactory.create_batch(2, cluster=cluster)
    assert "2 moving" in get_page("/").words("status-demo")


def test_a_move_explains_what_metadata_saw_before_the_move_was_known(get_page: GetPage) -> None:
    cluster = watched("demo", under_replicated=2, under_replicated_moving=0)
    shape = [[0, 1, 5, [1, 2, 9], [1, 2], []], [1, 1, 5, [1, 2, 3], [1, 3], [2]]]
    TopicFactory.create(cluster=cluster, partitions=shape)
    judged(cluster)
    assert get_page("/").title == "demo has 2 under-replicated partitions."
    ReassignmentFactory.create(cluster=cluster, topic="payments.ledger", partition=0, adding=[9])
    judge(cluster.pk, NOW)
    assert get_page("/").title == "demo has 1 under-replicated partition."
    assert "1 more is explained by moves" in get_page("/").words("status-demo")


def test_a_person_sees_only_the_clusters_of_his_roles(
    make_user: Callable[..., User], client_of: Callable[[User], Client]
) -> None:
    mine, other = watched("mine"), offline("other")
    board = Page(client_of(make_user("ann", Role.VIEWER, mine)).get("/").content.decode())
    assert board.has("status-mine")
    assert other.name not in board.html
    assert board.title == "mine is OK."


def test_it_watches_the_clusters_it_shows(get_page: GetPage) -> None:
    watched("demo")
    assert 'hx-ws:connect="/live/?key=board&amp;key=status:demo"' in get_page("/").html
