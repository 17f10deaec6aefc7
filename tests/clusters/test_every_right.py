"""Everybody × every route × every cluster against a table: a route that is not in it fails, and so does another answer.

The table says who may in words of its own, not in those of the code. Each person has one role on two clusters, one of
them read-only, and none on the third.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from http.cookies import SimpleCookie
from typing import Literal

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoDbBlocker

from kafkadash.clusters.models import Cluster, ClusterRole, Role
from tests.clusters.test_every_url import URLS, Url, address
from tests.conftest import new_user, signed_in
from tests.kept_rows import kept

Where = Literal["own", "frozen", "other"]
WHERES: tuple[Where, ...] = ("own", "frozen", "other")
Verb = Literal["get", "post"]
ROLES = {"v": Role.VIEWER, "o": Role.OPERATOR, "p": Role.APPROVER, "u": Role.AUDITOR, "a": Role.ADMIN}
NO_ROLE, ADMIN_OF_ALL, SUPERUSER = "none", "admin of all", "superuser"
PEOPLE = (NO_ROLE, *ROLES, ADMIN_OF_ALL, SUPERUSER)
WRONG_VERB = 405


@dataclass(frozen=True)
class Row:
    """``who``: letters of ROLES. ``get`` and ``post``: what whoever may is answered.

    ``of``: "cluster": its URL names something of one cluster. "any": a right on some cluster is enough, and ``other``
    is the answer about a cluster it is not held on. "all": needs the right on all clusters. "signed in", "public".
    ``changes``: refused on a read-only cluster. ``posts``: letters of those who may send, where more may read.
    """

    of: Literal["cluster", "any", "all", "signed in", "public"]
    who: str = ""
    get: int | tuple[int, ...] = 200
    post: int | tuple[int, ...] = WRONG_VERB
    other: int = 404
    changes: bool = False
    posts: str = ""


def page(who: str = "vopua", **more: object) -> Row:
    return Row("cluster", who, **more)  # type: ignore[arg-type]


def form(who: str, post: int | tuple[int, ...], **more: object) -> Row:
    return Row("cluster", who, WRONG_VERB, post, **more)  # type: ignore[arg-type]


TABLE: Mapping[str, Row] = {
    "findings:board": Row("signed in"),
    "findings:wall": Row("signed in"),
    "findings:switcher": Row("signed in"),
    "findings:overview": page(),
    "findings:drill": page(),
    "findings:restart": page(),
    "findings:restart_order": page(),
    "findings:finding": page(),
    "timeline:timeline": page(),
    "timeline:export": page(),
    "timeline:closed_findings": page(),
    "timeline:before_finding": page(get=302),
    "maintenance:maintenance": page(),
    # The forms that are sent here name no time and no number.
    "maintenance:plan_window": form("opa", 400),
    "maintenance:add_silence": form("opa", 400),
    "maintenance:end": form("opa", 404),
    "findings:acknowledge": form("opa", 302),
    "findings:release": form("opa", 302),
    "findings:product_finding": Row("signed in"),
    "findings:runbooks": Row("signed in"),
    "findings:runbook": Row("signed in"),
    "monitoring:quorum": page(),
    "monitoring:quorum_lag": page(),
    "monitoring:trends": page(),
    "monitoring:canary": page(),
    "monitoring:transactions": page(),
    "monitoring:switch_canary": form("a", 302),
    "monitoring:brokers": page(),
    "monitoring:drift": page(),
    "monitoring:broker": page(),
    "monitoring:topics": page(),
    "monitoring:topic": page(),
    "monitoring:groups": page(),
    "monitoring:group": page(),
    "monitoring:racks": page(),
    "monitoring:throttles": page(),
    "monitoring:reassignments": page(),
    "monitoring:reassignment": page(),
    "changes:list": Row("signed in"),
    "changes:request": page(),
    # What is sent here lacks digest, reason and text, so whoever may is told that.
    "changes:approve": form("p", 409, changes=True),
    # The request here stands alone, so its own page is shown.
    "changes:steps": page("o", get=302, post=302, changes=True),
    "changes:approve_steps": form("p", 302, changes=True),
    "changes:decline": form("p", 400),
    # The request here is proposed, so it is neither started nor paused; pausing is done on a read-only cluster too.
    "changes:start": form("o", 409, changes=True),
    "changes:break_glass": form("a", 400),
    "execution:run_pause": form("o", 409),
    "execution:run_resume": form("o", 400, changes=True),
    "changes:withdraw": form("o", 400),  # what only ends a request is done on a read-only cluster too
    "changes:comment": form("opa", 400),
    "changes:refresh": form("o", 409, changes=True),
    "changes:copy": form("o", (302, 409), changes=True),
    "changes:edit": form("o", (302, 409), changes=True),
    "changes:delete": form("o", (302, 409)),
    "changes:policy": page("a", post=200),
    "topic_rules:rules": page("a", post=200),
    "planning:new": Row("any", "o", post=(200, 400, 302), other=200),
    # The request here is proposed already: its steps lead to the review page, or say that it is no draft.
    "planning:what": form("o", 302, changes=True),
    "planning:topic_count": form("o", 302, changes=True),
    "planning:limits": form("o", 302, changes=True),
    "planning:plan": form("o", 302, changes=True),
    "planning:stop": form("o", 302, changes=True),
    "planning:plan_with": form("o", 302, changes=True),
    "planning:throttle": form("o", 302, changes=True),
    "planning:why": form("o", 302, changes=True),
    "planning:finish_reassignment": form("o", 409, changes=True),  # it goes on
    "planning:kafka_json": page(),
    "planning:rollback_json": page(),
    "planning:topic_rows": page(),
    # Of a run that goes on, and of one that has ended.
    "execution:run_cancel": page(post=400, posts="op"),
    # Of a run that is being cancelled, on a cluster that may still answer; what is sent has no reason.
    "execution:run_give_up": page(post=400, posts="a"),
    "execution:report_markdown": page(),
    "execution:report_json": page(),
    # It was not started: there is no ledger, no report, and nothing to take back.
    "execution:run_ledger": page(get=302),
    "execution:report": page(get=302),
    "execution:rollback": form("o", 409, changes=True),
    # The request here has no run: whatever is of one leads to the review, and what is sent is refused there.
    "execution:run": page(get=302),
    "execution:run_moves": page(get=302),
    "execution:run_chart": page(get=302),
    "execution:run_row": page(get=302, post=302),
    "execution:run_throttle": form("o", 409, changes=True),
    "execution:run_parallel": form("o", 409, changes=True),
    "execution:run_foreign": form("o", 409, changes=True),
    "execution:run_replan": form("o", 409, changes=True),
    # The configs here were never read.
    "configs:topic": page("o", post=409, changes=True),
    "configs:broker": page("o", post=409, changes=True),
    "configs:default": page("o", post=409, changes=True),
    "configs:topics": page("o", post=400, changes=True),
    "planning:topics_chosen": form("o", 200, changes=True),
    "topics:delete_several": page("o", post=400, changes=True),  # what is sent names no topic
    "elections:propose": page("o", post=400, changes=True),  # what is sent has no reason
    "elections:choose": page("o", post=400, changes=True),  # what is sent has no partition
    "elections:unclean": page("o", post=400, changes=True),  # what is sent has no reason
    "topics:grow": page("o", post=400, changes=True),  # what is sent has no number
    "topics:delete": page("o", post=400, changes=True),  # what is sent has no reason
    "topics:canary": page("o", post=400, changes=True),  # what is sent has no reason
    "topics:create": page("o", post=400, changes=True),  # what is sent has no name
    "topic_alter:alter": page("o", post=400, changes=True),  # what is sent names no topic
    "group_changes:reset": page("o", post=400, changes=True),  # what is sent has no target
    "group_changes:delete": page("o", post=400, changes=True),  # what is sent has no reason
    "group_changes:delete_several": page("o", post=400, changes=True),  # what is sent has no name
    "group_changes:delete_offsets": page("o", post=400, changes=True),  # what is sent has no topic
    "broker_life:decommission": page(),
    "broker_life:cordon": page("o", post=400, changes=True),  # what is sent has no reason
    "broker_life:uncordon": page("o", post=400, changes=True),  # what is sent has no reason
    "broker_life:unregister": page("o", post=400, changes=True),  # what is sent has no reason
    "move_cancels:propose": page("o", post=400, changes=True),
    "throttle_removal:propose": page("o", post=400, changes=True),
    # A draft with one item: it is not run, and what is sent has no reason.
    "short_runs:draft": page("o", post=400, changes=True),
    "short_runs:pause": form("o", 409),
    "short_runs:resume": form("o", 409, changes=True),
    "short_runs:cancel": page("op", post=400),
    "short_runs:rollback": form("o", 409, changes=True),
    "verify:verify": page(post=400),
    "verify:verification": page(),
    "verify:verify_again": form("vopua", 302),
    "verify:propose_rest": form("o", 409, changes=True),  # what was brought is no JSON
    # Asked for by nobody: then administrators may.
    "verify:verify_stop": form("a", 302),
    "clusters:settings": Row("any", "a", other=200),
    "clusters:register": Row("all", "a", post=200),
    "clusters:roles_everywhere": Row("all", "a", post=200),
    "clusters:cluster": page("a", post=200),
    "notifications:list": Row("all", "a"),
    "notifications:new": Row("all", "a", post=200),
    "notifications:receiver": Row("all", "a", post=200),
    "notifications:add_route": Row("all", "a", WRONG_VERB, 200),
    "notifications:remove_route": Row("all", "a", WRONG_VERB, 302),
    "notifications:test": Row("all", "a", WRONG_VERB, 302),
    "notifications:renew_key": Row("all", "a", WRONG_VERB, 200),
    "notifications:remove": Row("all", "a", WRONG_VERB, 302),
    "clusters:enabled": form("a", 302),
    "clusters:roles": page("a", post=200),
    "clusters:remove": page("a", post=200),
    "monitoring:allowed_lag": page("a", post=200),
    "jobs:test_unsaved": Row("all", "a", WRONG_VERB, 200),
    "jobs:test": form("a", 200),
    "jobs:result": Row("any", "a", other=403),
    "jobs:cancel": Row("any", "a", WRONG_VERB, 302, other=403),
    "ops:livez": Row("public"),
    "ops:readyz": Row("public", get=(200, 503)),
    # By token, by network, or with the right on all clusters: tests/metrics/test_metrics_access.py.
    "metrics:metrics": Row("public", get=(200, 404)),
    "history:cluster_history": page(),
    "history:group_history": page(),
    "history:topic_history": page(),
    "history:broker_history": page(),
    "history:quorum_history": page(),
    "history:pipeline": Row("any", "vopua", other=200),
    "ops:audit": Row("any", "ua", other=200),
    "ops:audit_export": Row("any", "ua", WRONG_VERB, 400, other=400),
    "ops:audit_event": Row("any", "ua"),
    "account_login": Row("public", get=(200, 302), post=(200, 302)),
    "account_logout": Row("public", get=(200, 302), post=302),
    "account_inactive": Row("public"),
    "account_change_password": Row("signed in", post=200),
    "account_sessions": Row("signed in"),
    "account_end_session": Row("signed in", get=WRONG_VERB, post=302),
    "account_end_others": Row("signed in", get=WRONG_VERB, post=302),
}


def expected(row: Row, person: str, where: Where, verb: Verb) -> set[int]:
    """Return the statuses that this person may be answered. A wrong verb may be told before the right."""
    answer = row.get if verb == "get" else row.post
    who = row.posts if verb == "post" and row.posts else row.who
    allowed = set(answer) if isinstance(answer, tuple) else {answer}
    wrong_verb = allowed & {WRONG_VERB}
    if row.of in ("signed in", "public"):
        return allowed
    refused_there = row.changes and where == "frozen"
    if person == SUPERUSER or (person == ADMIN_OF_ALL and "a" in who):
        return {403} | wrong_verb if refused_there else allowed
    if row.of == "all":
        return {403} | wrong_verb
    if row.of == "cluster" and (person == NO_ROLE or (where == "other" and person != ADMIN_OF_ALL)):
        return {404} | wrong_verb
    if person not in who or refused_there:
        return {403} | wrong_verb
    return {row.other} | wrong_verb if where == "other" else allowed


def requests_to(row: Row) -> Iterator[tuple[Where, str, Verb]]:
    """Yield the requests to a route, without those that equal another: on the third cluster, everybody with a role on
    the first two is one; on the read-only one, reading is as on the first where it may not be refused.
    """
    for where in WHERES if row.of in ("cluster", "any") else WHERES[:1]:
        for person in PEOPLE:
            if where == "other" and person in ROLES and person != "a":
                continue
            if row.get != WRONG_VERB and (where != "frozen" or row.changes):
                yield where, person, "get"
            if row.post != WRONG_VERB:
                yield where, person, "post"


@dataclass(frozen=True)
class RightsWorld:
    """``cookies``: of a browser in which that person is signed in."""

    clusters: Mapping[Where, Cluster]
    cookies: Mapping[str, SimpleCookie]


@pytest.fixture(scope="module")
def made_once(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[RightsWorld]:
    """Made once: each test, and each request in one, takes back what it changes."""
    with kept(django_db_blocker, _world) as world:
        yield world


@pytest.fixture
def world(made_once: RightsWorld, db: None) -> RightsWorld:
    return made_once


def _world() -> RightsWorld:
    clusters = {
        name: Cluster.objects.create(name=name, slug=name, bootstrap_servers="a:1", read_only=name == "frozen")
        for name in WHERES
    }
    people = {
        NO_ROLE: new_user("nobody"),
        ADMIN_OF_ALL: new_user("adam", Role.ADMIN),
        SUPERUSER: new_user("root", is_superuser=True),
    }
    for letter, role in ROLES.items():
        people[letter] = new_user(role.value, role, clusters["own"])
        ClusterRole.objects.create(user=people[letter], role=role, cluster=clusters["frozen"])
    return RightsWorld(clusters, {person: signed_in(user).cookies for person, user in people.items()})


def test_every_route_is_in_the_table_and_nothing_else() -> None:
    assert {url.name for url in URLS} == TABLE.keys()


@pytest.mark.parametrize("url", URLS, ids=lambda url: url.name)
def test_everybody_gets_the_answer_of_the_table(
    url: Url, world: RightsWorld, undone: Callable[[], AbstractContextManager[None]]
) -> None:
    """Everybody finds the same: what one is answered changes nothing for the next."""
    row, wrong = TABLE[url.name], []
    addresses = {where: address(url, cluster) for where, cluster in world.clusters.items()}
    for where, person, verb in requests_to(row):
        with undone():
            got = _status(world.cookies[person], verb, addresses[where])
        should = expected(row, person, where, verb)
        if got not in should:
            wrong.append(f"{verb} {addresses[where]} as {person} on {where}: {got} instead of {sorted(should)}")
    assert not wrong, "\n".join(wrong)


def _status(cookies: SimpleCookie, verb: Verb, at: str) -> int:
    """In a browser of its own: signing out takes its cookies away."""
    client = Client()
    client.cookies.update(cookies)
    return int(getattr(client, verb)(at).status_code)


@pytest.mark.parametrize("url", URLS, ids=lambda url: url.name)
def test_anonymous_is_asked_to_sign_in(url: Url, world: RightsWorld, client: Client) -> None:
    row = TABLE[url.name]
    for verb in ("get", "post"):
        response = getattr(client, verb)(address(url, world.clusters["own"]))
        to_sign_in = response.status_code == 302 and response["Location"].startswith(
            reverse("account_login") + "?next="
        )
        assert to_sign_in is (row.of != "public"), (verb, response.status_code)
