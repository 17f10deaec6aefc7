"""Which addresses of each route ``test_every_page`` visits, what they must say, and which routes it need not visit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tests.e2e.worlds import MOVING, STOPPED, Told

SIGN_IN = "/login/"

Says = Callable[[Told], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Visited:
    """``addresses`` of a route: the first is looked at for what Kafka's tools say, the others are its filters.

    ``of_seen`` pages are about something that is known only of a cluster that was seen once.
    """

    addresses: tuple[str, ...]
    says: Says = lambda _: ()
    of_seen: bool = False


def _looked_at(told: Told) -> tuple[int, str]:
    """The broker and the topic that are visited in this world."""
    return (STOPPED, MOVING) if MOVING in told.topics else (1, "orders")


CLUSTER = "clusters/<slug:slug>/"
C = "/clusters/{slug}/"
OF_A_CLUSTER: Mapping[str, Visited] = {
    CLUSTER: Visited((C,), lambda told: [told.cluster_id, f"{told.partitions:,}"]),
    f"{CLUSTER}quorum/": Visited(
        (f"{C}quorum/", f"{C}quorum/?range=24h"), lambda told: [f"epoch {told.quorum.leader_epoch}"]
    ),
    f"{CLUSTER}drill/": Visited(
        (f"{C}drill/", f"{C}drill/?broker=1", f"{C}drill/?broker=1&show=moving", f"{C}drill/?brokers=99,x"),
        lambda told: [f"of {told.partitions:,} partitions"],
    ),
    f"{CLUSTER}timeline/": Visited(
        (f"{C}timeline/", f"{C}timeline/?period=90d&kind=topics", f"{C}timeline/?topic=nothing&from=x")
    ),
    f"{CLUSTER}timeline/closed/": Visited((f"{C}timeline/closed/", f"{C}timeline/closed/?q=nothing")),
    f"{CLUSTER}maintenance/": Visited(
        (f"{C}maintenance/", f"{C}maintenance/?scope=broker:1", f"{C}maintenance/?kind=nothing&subject=x")
    ),
    f"{CLUSTER}restart/": Visited((f"{C}restart/", f"{C}restart/?rack=nowhere")),
    f"{CLUSTER}brokers/<int:broker_id>/restart/": Visited((f"{C}brokers/{{broker}}/restart/",), of_seen=True),
    f"{CLUSTER}brokers/": Visited(
        (f"{C}brokers/", f"{C}brokers/?state=fenced", f"{C}brokers/?q=nowhere&sort=-disk"),
        lambda told: [f"{number:,}" for number in told.replicas.values()],
    ),
    f"{CLUSTER}brokers/<int:broker_id>/": Visited(
        (f"{C}brokers/{{broker}}/",), lambda told: [f"{told.replicas[_looked_at(told)[0]]:,}"], of_seen=True
    ),
    f"{CLUSTER}drift/": Visited((f"{C}drift/",), lambda told: [f"{len(told.brokers):,} registered brokers"]),
    f"{CLUSTER}topics/": Visited(
        (f"{C}topics/", f"{C}topics/?state=under-min-isr", f"{C}topics/?q=nowhere", f"{C}topics/?sort=-size"),
        lambda told: list(told.topics),
    ),
    f"{CLUSTER}topics/<str:topic>/": Visited(
        (f"{C}topics/{{topic}}/", f"{C}topics/{{topic}}/?state=racks"),
        lambda told: [told.topics[_looked_at(told)[1]].topic_id],
        of_seen=True,
    ),
    f"{CLUSTER}groups/": Visited((f"{C}groups/", f"{C}groups/?verdict=stall", f"{C}groups/?q=nowhere&sort=-lag")),
    f"{CLUSTER}groups/<str:group>/": Visited(
        (f"{C}groups/{{group}}/", f"{C}groups/{{group}}/?range=day&show=all", f"{C}groups/{{group}}/?verdict=rewind"),
        of_seen=True,
    ),
    f"{CLUSTER}groups/<str:group>/history/": Visited(
        (f"{C}groups/{{group}}/history/", f"{C}groups/{{group}}/history/?range=year"), of_seen=True
    ),
    f"{CLUSTER}history/": Visited((f"{C}history/", f"{C}history/?range=week")),
    f"{CLUSTER}topics/<str:topic>/history/": Visited((f"{C}topics/{{topic}}/history/",), of_seen=True),
    f"{CLUSTER}brokers/<int:broker_id>/history/": Visited((f"{C}brokers/{{broker}}/history/",), of_seen=True),
    f"{CLUSTER}quorum/history/": Visited((f"{C}quorum/history/",)),
    f"{CLUSTER}racks/": Visited(
        (f"{C}racks/", f"{C}racks/?q=nowhere"), lambda told: [rack for _, _, rack, _ in told.brokers.values()]
    ),
    f"{CLUSTER}throttles/": Visited(
        (f"{C}throttles/", f"{C}throttles/?need=orphan", f"{C}throttles/?q=nowhere"),
        lambda told: [f"{told.throttle_bytes:,} bytes/s"] if told.throttle_bytes else [],
    ),
    f"{CLUSTER}reassignments/": Visited(
        (f"{C}reassignments/", f"{C}reassignments/?running=all", f"{C}reassignments/?ended=all"),
        lambda told: told.moving,
    ),
    f"{CLUSTER}reassignments/<slug:public_id>/": Visited(
        (f"{C}reassignments/{{move}}/",), lambda told: told.moving, of_seen=True
    ),
    f"{CLUSTER}verify/": Visited((f"{C}verify/",)),
    f"{CLUSTER}cancels/new/": Visited((f"{C}cancels/new/", f"{C}cancels/new/?stuck=1")),
    f"{CLUSTER}throttles/remove/": Visited((f"{C}throttles/remove/",)),
    f"{CLUSTER}transactions/": Visited((f"{C}transactions/",)),
    f"{CLUSTER}canary/": Visited((f"{C}canary/",)),
    f"{CLUSTER}canary/topic/": Visited((f"{C}canary/topic/",), of_seen=True),
    f"{CLUSTER}create-topics/": Visited((f"{C}create-topics/",), of_seen=True),
    f"{CLUSTER}delete-topics/": Visited((f"{C}delete-topics/", f"{C}delete-topics/?pattern=a.*"), of_seen=True),
    f"{CLUSTER}alter-topics/": Visited((f"{C}alter-topics/", f"{C}alter-topics/?topics=orders"), of_seen=True),
    f"{CLUSTER}topics/<str:topic>/delete/": Visited((f"{C}topics/{{topic}}/delete/",), of_seen=True),
    f"{CLUSTER}topics/<str:topic>/add-partitions/": Visited(
        (f"{C}topics/{{topic}}/add-partitions/", f"{C}topics/{{topic}}/add-partitions/?count=99"), of_seen=True
    ),
    f"{CLUSTER}topics/<str:topic>/configs/": Visited((f"{C}topics/{{topic}}/configs/",), of_seen=True),
    f"{CLUSTER}brokers/<int:broker_id>/configs/": Visited((f"{C}brokers/{{broker}}/configs/",), of_seen=True),
    f"{CLUSTER}default-configs/": Visited((f"{C}default-configs/",)),
    f"{CLUSTER}topic-configs/": Visited((f"{C}topic-configs/",), of_seen=True),
    f"{CLUSTER}elections/choose/": Visited((f"{C}elections/choose/",), of_seen=True),
    f"{CLUSTER}elections/unclean/": Visited((f"{C}elections/unclean/",), of_seen=True),
    f"{CLUSTER}delete-groups/": Visited((f"{C}delete-groups/", f"{C}delete-groups/?q=a"), of_seen=True),
    f"{CLUSTER}groups/<str:group>/delete/": Visited((f"{C}groups/{{group}}/delete/",), of_seen=True),
    f"{CLUSTER}groups/<str:group>/delete-offsets/": Visited((f"{C}groups/{{group}}/delete-offsets/",), of_seen=True),
    f"{CLUSTER}groups/<str:group>/reset-offsets/": Visited((f"{C}groups/{{group}}/reset-offsets/",), of_seen=True),
    f"{CLUSTER}brokers/<int:broker_id>/decommission/": Visited((f"{C}brokers/{{broker}}/decommission/",), of_seen=True),
    f"{CLUSTER}brokers/<int:broker_id>/cordon/": Visited((f"{C}brokers/{{broker}}/cordon/",), of_seen=True),
    f"{CLUSTER}brokers/<int:broker_id>/uncordon/": Visited((f"{C}brokers/{{broker}}/uncordon/",), of_seen=True),
    f"{CLUSTER}brokers/<int:broker_id>/unregister/": Visited((f"{C}brokers/{{broker}}/unregister/",), of_seen=True),
    f"{CLUSTER}elections/new/": Visited((f"{C}elections/new/", f"{C}elections/new/?broker=1"), of_seen=True),
}
SIGNED_IN: Mapping[str, Sequence[str]] = {
    "": ["/", "/?state=ok", "/?state=critical", "/?kind=broker-down", "/?mine=1"],
    "wall": ["/wall", "/wall?cluster=demo&cluster=nothing"],
    "runbooks/": ["/runbooks/"],
    "runbooks/<slug:kind>/": ["/runbooks/broker-down/", "/runbooks/orphan-throttle/"],
    "logout/": ["/logout/"],
    "account/inactive/": ["/account/inactive/"],
    "account/password/": ["/account/password/"],
    "account/sessions/": ["/account/sessions/"],
}
# Seen by an administrator. {test} is a connection test that has ended, {receiver} one of notifications.
SETTINGS = {
    "settings/": ["/settings/"],
    "settings/register/": ["/settings/register/"],
    "settings/roles/": ["/settings/roles/"],
    "settings/notifications/": ["/settings/notifications/"],
    "settings/notifications/new/<slug:service>/": [
        "/settings/notifications/new/webhook/",
        "/settings/notifications/new/email/",
        "/settings/notifications/new/apprise/",
    ],
    "settings/notifications/<int:receiver>/": ["{receiver}"],
    "settings/clusters/<slug:slug>/": ["/settings/clusters/demo/", "/settings/clusters/never/"],
    "settings/clusters/<slug:slug>/roles/": ["/settings/clusters/demo/roles/"],
    "settings/clusters/<slug:slug>/lag/": ["/settings/clusters/demo/lag/"],
    "settings/clusters/<slug:slug>/policy/": ["/settings/clusters/demo/policy/"],
    "settings/clusters/<slug:slug>/topic-rules/": ["/settings/clusters/demo/topic-rules/"],
    "settings/clusters/<slug:slug>/remove/": ["/settings/clusters/demo/remove/"],
    "settings/tests/<uuid:job_id>/": ["{test}"],
    "pipeline/": ["/pipeline/"],
    "audit/": ["/audit/", "/audit/?actor=nobody", "/audit/?period=all&what=role.given"],
    "audit/<int:event_id>/": ["/audit/1/"],
}
NAMES_ITS_ID = {"settings/clusters/<slug:slug>/", "settings/tests/<uuid:job_id>/"}
SIGNED_OUT = {"login/": [SIGN_IN]}
# Parts of pages that the pages above fetch, and what answers no person.
NO_PAGES = {
    "clusters/",
    "livez",
    "readyz",
    "metrics",
    f"{CLUSTER}quorum/lag/",
    f"{CLUSTER}topics-chosen/",
    f"{CLUSTER}trends/",
    f"{CLUSTER}timeline/export/",
    f"{CLUSTER}timeline/before/<slug:finding_id>/",
    "changes/<int:number>/run/moves/",
    "changes/<int:number>/run/chart/",
    "changes/<int:number>/kafka.json",
    "changes/<int:number>/rollback.json",
    "changes/<int:number>/report/report.md",
    "changes/<int:number>/report/report.json",
}

# Visited in test_every_page.py, at one that is open.
FINDING = f"{CLUSTER}findings/<slug:finding_id>/"

# Visited by tests/e2e/test_watching.py, at one that has ended.
VERIFICATION = f"{CLUSTER}verify/<uuid:verify_id>/"

# Visited in each state by tests/live/test_run_stays_live.py.
RUNS = {"changes/<int:number>/run/", "changes/<int:number>/run/row/", "changes/<int:number>/run/ledger/"}

# The report is visited in test_every_page.py, of one that has run; the others: tests/pages/test_starting_and_ending.py.
ENDS = {"changes/<int:number>/report/", "changes/<int:number>/run/cancel/", "changes/<int:number>/run/give-up/"}

# Visited by tests/elections/test_election_pages.py, of a draft and of a run; steps by tests/e2e/test_topic_alter.py.
ITEMS = {"changes/<int:number>/items/", "changes/<int:number>/items/cancel/", "changes/<int:number>/steps/"}

# Of kafkadash itself, which is well during the visit: tests/watchdog/test_watch.py.
OWN_TROUBLE = {"findings/<slug:finding_id>/"}

# Seen by who proposed it. {draft}, {planned} and {proposed} are numbers of changes, {topic} is one that would be moved.
CHANGE = "changes/<int:number>/"
CHANGES: Mapping[str, Sequence[str]] = {
    "changes/": ["/changes/?show=all", "/changes/", "/changes/?show=mine&q=nothing"],
    "changes/new/": ["/changes/new/"],
    CHANGE: ["/changes/{proposed}/", "/changes/{draft}/"],
    f"{CHANGE}topics/<str:topic>/": ["/changes/{proposed}/topics/{topic}/"],
    f"{CHANGE}draft/what/": ["/changes/{draft}/draft/what/", "/changes/{planned}/draft/what/"],
    f"{CHANGE}draft/limits/": ["/changes/{planned}/draft/limits/"],
    f"{CHANGE}draft/plan/": ["/changes/{planned}/draft/plan/"],
    f"{CHANGE}draft/why/": ["/changes/{planned}/draft/why/"],
}

# What forms send to; the pages above are where they lead.
FORMS = {
    "account/sessions/<int:number>/end/",
    "account/sessions/end-others/",
    *(
        f"{CHANGE}{verb}/"
        for verb in ["approve", "decline", "withdraw", "comment", "refresh", "copy", "edit", "delete"]
    ),
    f"{CHANGE}steps/approve/",
    *(f"{CHANGE}{verb}/" for verb in ["start", "break-glass", "pause", "resume", "rollback"]),
    *(f"{CHANGE}items/{verb}/" for verb in ["pause", "resume", "rollback"]),
    *(f"{CHANGE}run/{asked}/" for asked in ["throttle", "parallel", "foreign", "replan"]),
    f"{CHANGE}draft/what/topics/",
    f"{CHANGE}draft/plan/stop/",
    f"{CHANGE}draft/plan/with/",
    f"{CHANGE}draft/plan/throttle/",
    *(f"{CLUSTER}maintenance/{verb}/" for verb in ["window", "silence", "end"]),
    f"{FINDING}acknowledge/",
    f"{FINDING}release/",
    f"{CLUSTER}canary/switch/",
    f"{CLUSTER}reassignments/<slug:public_id>/finish/",
    f"{VERIFICATION}again/",
    f"{VERIFICATION}rest/",
    f"{VERIFICATION}stop/",
    "audit/export/",
    "settings/clusters/<slug:slug>/enabled/",
    "settings/clusters/<slug:slug>/test/",
    "settings/notifications/<int:receiver>/routes/",
    "settings/notifications/<int:receiver>/routes/remove/",
    "settings/notifications/<int:receiver>/test/",
    "settings/notifications/<int:receiver>/key/",
    "settings/notifications/<int:receiver>/remove/",
    "settings/test/",
    "settings/tests/<uuid:job_id>/cancel/",
}
