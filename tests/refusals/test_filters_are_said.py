"""What pages say of addresses and filters that name what is not there."""

from __future__ import annotations

import pytest

from kafkadash.observe.errors import CollectionErrorCode
from kafkadash.observe.models import BrokerState, SeriesKind
from kafkadash.oncall.errors import OnCallErrorCode
from kafkadash.oncall.models import Finding
from kafkadash.ops.errors import OperationErrorCode
from tests.factories import NOW, ReassignmentFactory, TopicFactory, judged, watched
from tests.history import group_row, rolled_up
from tests.pages.conftest import text_of
from tests.refusals.desk import Desk
from tests.refusals.driving import Case, case, each

pytestmark = pytest.mark.django_db
MANY = ",".join(map(str, range(1200)))
BROKERS, TOPICS, MOVES, GROUPS = (
    f"/clusters/demo/{page}/" for page in ("brokers", "topics", "reassignments", "groups")
)


def audit(desk: Desk, **query: str) -> str:
    asked = "&".join(f"{name}={value}" for name, value in query.items())
    return desk.get("adam", f"/audit/?{asked}")


def drill(desk: Desk, asked: str) -> str:
    BrokerState.objects.filter(cluster=desk.cluster, broker_id=1).update(fenced=True)
    return desk.get("vera", f"/clusters/demo/drill/?{asked}")


def of_a_topic(desk: Desk) -> str:
    TopicFactory.create(cluster=desk.cluster, name="orders")
    return desk.get("vera", f"{TOPICS}orders/?broker=three")


def among_all(desk: Desk) -> str:
    ReassignmentFactory.create(cluster=desk.cluster)
    return desk.get("vera", f"{MOVES}?running=all&broker=six")


def other_topic(desk: Desk) -> str:
    group_row(desk.cluster, "reader", NOW)
    return desk.get("vera", f"{GROUPS}reader/history/?topic=nothing")


def other_node(desk: Desk) -> str:
    rolled_up(desk.cluster, NOW, kind=SeriesKind.QUORUM, node=1)
    return desk.get("vera", "/clusters/demo/quorum/history/?node=9")


def closed(desk: Desk) -> str:
    judged(watched("other", offline_partitions=2))
    finding = Finding.objects.get()
    Finding.objects.update(closed_at=NOW)
    address = f"/clusters/other/findings/{finding.public_id}/acknowledge/"
    return text_of(desk.client_of(desk.people["alice"]).post(address, follow=True).content.decode())


@each(
    case(
        CollectionErrorCode.CHOICE_UNKNOWN,
        lambda d: d.get("vera", f"{BROKERS}?state=happy"),
        noun="state",
        asked="happy",
    ),
    case(CollectionErrorCode.COLUMN_UNKNOWN, lambda d: d.get("vera", f"{BROKERS}?sort=colour"), column="colour"),
    case(CollectionErrorCode.PARTITIONS_NO_BROKER, of_a_topic, typed="three"),
    case(CollectionErrorCode.REASSIGNMENTS_NO_BROKER, among_all, typed="six"),
    case(CollectionErrorCode.BROKER_NOT_SEEN, lambda d: d.get("vera", f"{BROKERS}77/"), broker=77, cluster="demo"),
    case(
        CollectionErrorCode.TOPIC_NOT_SEEN,
        lambda d: d.get("vera", f"{TOPICS}nothing/"),
        topic="nothing",
        cluster="demo",
    ),
    case(
        CollectionErrorCode.GROUP_NOT_SEEN,
        lambda d: d.get("vera", "/clusters/demo/groups/no/"),
        group="no",
        cluster="demo",
    ),
    case(
        CollectionErrorCode.GROUP_NOT_SEEN, lambda d: d.get("vera", f"{GROUPS}no/history/"), group="no", cluster="demo"
    ),
    case(CollectionErrorCode.NO_HISTORY_OF_TOPIC, other_topic, topic="nothing"),
    case(CollectionErrorCode.NO_HISTORY_OF_NODE, other_node, typed="9"),
    case(
        CollectionErrorCode.NO_SUCH_REASSIGNMENT,
        lambda d: d.get("vera", f"{MOVES}r-cafe/"),
        asked="r-cafe",
        cluster="demo",
    ),
    case(
        OnCallErrorCode.FINDING_FORGOTTEN, lambda d: d.get("vera", "/clusters/demo/findings/f-cafe/"), number="f-cafe"
    ),
    case(OnCallErrorCode.FINDING_CLOSED, closed),
    case(OnCallErrorCode.NO_SUCH_RUNBOOK, lambda d: d.get("vera", "/runbooks/nonsense/"), kind="nonsense"),
    case(OperationErrorCode.NO_SUCH_EVENT, lambda d: d.get("adam", "/audit/99999/"), number=99999),
    case(OperationErrorCode.EVENT_NOT_LISTED, lambda d: audit(d, older="99999"), asked="99999"),
    case(OperationErrorCode.NO_SUCH_FORMAT, lambda d: d.sent("adam", "/audit/export/", {"format": "pdf"}), asked="pdf"),
    case(OperationErrorCode.OBJECT_UNNAMED, lambda d: audit(d, object="demo"), typed="demo"),
    case(OperationErrorCode.MOMENT_UNREADABLE, lambda d: audit(d, **{"from": "31.12."}), typed="31.12."),
    case(OnCallErrorCode.DRILL_BROKERS_UNKNOWN, lambda d: drill(d, "brokers=77"), cluster="demo", brokers="broker 77"),
    case(OnCallErrorCode.DRILL_RACK_UNKNOWN, lambda d: drill(d, "rack=mars"), rack="mars"),
    case(OnCallErrorCode.DRILL_FENCED, lambda d: drill(d, "broker=1"), brokers="Broker 1 is"),
    case(OnCallErrorCode.DRILL_NO_BROKER, lambda d: drill(d, "brokers=one"), typed="one"),
    case(OnCallErrorCode.DRILL_TOO_MANY, lambda d: drill(d, f"brokers={MANY}"), most=1000, many=1200),
)
def test_by_an_address_that_names_what_is_not_there(one: Case, desk: Desk) -> None:
    one.check(desk)
