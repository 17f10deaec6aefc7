"""Who may open a live socket, and how it ends when that changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone
from pytest_django import Settings
from websockets.exceptions import InvalidStatus

from kafkadash.accounts.models import User
from kafkadash.accounts.services import set_active
from kafkadash.clusters.models import Cluster, ClusterRole, Role
from kafkadash.live import consumer
from kafkadash.live.origin import is_ours
from kafkadash.live.panels import MAX_KEYS
from kafkadash.live.publisher import publish_panels
from kafkadash.live.rights import Verdict, judge
from tests.live.conftest import Socket, set_row

Watch = Callable[..., Socket]
pytestmark = pytest.mark.usefixtures("plain_panels")


def test_socket__without_session__is_closed_as_not_signed_in(watch: Watch, cluster: Cluster) -> None:
    assert watch("status:demo").closed_with() == 4401


def test_socket__with_forged_session__is_closed_as_not_signed_in(watch: Watch, cluster: Cluster) -> None:
    assert watch("status:demo", cookie="sessionid=" + "a" * 32).closed_with() == 4401


def test_viewer__watching_his_cluster__gets_its_current_frame(watch: Watch, cluster: Cluster, viewer: User) -> None:
    set_row(cluster, "what is now")

    frame = watch("status:demo", user=viewer).shows("what is now")

    assert (frame["key"], frame["target"], frame["swap"]) == ("status:demo", "#status-demo", "outerMorph")


def test_stranger__watching_a_cluster__is_refused_and_sees_nothing(
    watch: Watch, cluster: Cluster, stranger: User
) -> None:
    socket = watch("status:demo", user=stranger)

    assert socket.closed_with() == 4403
    assert socket.messages == []


def test_hint_of_a_cluster__is_for_those_who_may_view_it(
    watch: Watch, cluster: Cluster, stranger: User, make_user: Callable[..., User]
) -> None:
    other = Cluster.objects.create(name="Other", slug="other", bootstrap_servers="127.0.0.1:1")
    una = make_user("una", Role.VIEWER, other)

    assert watch("metadata-read:demo", user=stranger).closed_with() == 4403
    assert watch("metadata-read:other", "metadata-read:demo", user=una).closed_with() == 4403
    assert watch("metadata-read:other", user=una).until(lambda m: "heartbeat" in m)


def test_unknown_key__beside_a_good_one__refuses_the_socket(watch: Watch, cluster: Cluster, viewer: User) -> None:
    for key in (
        "nothing:demo",
        "status:elsewhere",
        "status:",
        "status",
        "board:demo",
        "status:demo:x",
        "status:DEMO",
        "read:demo",
        "metadata-read",
        "metadata-read:elsewhere",
    ):
        assert watch("status:demo", key, user=viewer).closed_with() == 4403, key


def test_role_on_one_cluster__watching_two__refuses_the_socket(
    watch: Watch, cluster: Cluster, make_user: Callable[..., User]
) -> None:
    Cluster.objects.create(name="Other", slug="other", bootstrap_servers="127.0.0.1:1")
    user = make_user("una", Role.VIEWER, cluster)

    assert watch("status:demo", "status:other", user=user).closed_with() == 4403
    assert watch("status:demo", user=user).until(lambda m: m.get("key") == "status:demo")


def test_too_many_keys_or_none__are_refused_as_a_bad_request(watch: Watch, cluster: Cluster, viewer: User) -> None:
    keys = [f"status:c{n}" for n in range(MAX_KEYS + 1)]

    assert watch(*keys, user=viewer).closed_with() == 4400
    assert watch(user=viewer).closed_with() == 4400


def test_role__taken_away_while_watching__closes_at_once(
    watch: Watch, cluster: Cluster, viewer: User, settings: Settings
) -> None:
    settings.LIVE_RECHECK_SECONDS = 3600
    socket = watch("status:demo", user=viewer)
    socket.shows("status-demo")

    ClusterRole.objects.get(user=viewer).delete()

    assert socket.closed_with(deadline=3) == 4403


def test_role__taken_away_before_the_socket_is_subscribed__closes_at_once(
    watch: Watch, cluster: Cluster, viewer: User, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.LIVE_RECHECK_SECONDS = 3600

    def judge_and_take_away(session_key: str | None, keys: Iterable[str]) -> Verdict:
        verdict = judge(session_key, keys)
        # As if its message were sent before anybody listens: an update sends none.
        ClusterRole.objects.filter(user=viewer).update(expires_at=timezone.now() - timedelta(seconds=1))
        return verdict

    monkeypatch.setattr(consumer, "judge", judge_and_take_away)

    assert watch("status:demo", user=viewer).closed_with(deadline=3) == 4403


def test_role__run_out_while_watching__closes_at_the_next_check(
    watch: Watch, cluster: Cluster, viewer: User, settings: Settings
) -> None:
    settings.LIVE_RECHECK_SECONDS = 0.1
    socket = watch("status:demo", user=viewer)
    socket.shows("status-demo")

    ClusterRole.objects.filter(user=viewer).update(expires_at=timezone.now() - timedelta(seconds=1))  # sends no signal

    assert socket.closed_with() == 4403


def test_account__closed_while_watching__closes_at_once(
    watch: Watch, cluster: Cluster, viewer: User, settings: Settings
) -> None:
    settings.LIVE_RECHECK_SECONDS = 3600
    socket = watch("status:demo", user=viewer)
    socket.shows("status-demo")

    set_active("cli", viewer, active=False)

    assert socket.closed_with(deadline=3) == 4401


def test_sign_out__in_this_browser__closes_its_socket_and_no_other(
    watch: Watch, cluster: Cluster, viewer: User, client_of: Callable[[User], Client]
) -> None:
    here = client_of(viewer)
    mine = watch("status:demo", cookie=f"sessionid={here.cookies['sessionid'].value}")
    elsewhere = watch("status:demo", user=viewer)
    mine.shows("status-demo")
    elsewhere.shows("status-demo")

    here.logout()

    assert mine.closed_with(deadline=3) == 4401
    assert Session.objects.count() == 1
    set_row(cluster, "still here")
    publish_panels(cluster.pk, {"metadata"}, 1)
    assert elsewhere.shows("still here")


def test_role_of_somebody_else__taken_away__leaves_the_socket_open(
    watch: Watch, cluster: Cluster, viewer: User, operator: User
) -> None:
    mine, theirs = watch("status:demo", user=viewer), watch("status:demo", user=operator)
    mine.shows("status-demo")
    theirs.shows("status-demo")

    ClusterRole.objects.get(user=operator).delete()

    assert theirs.closed_with(deadline=3) == 4403
    assert mine.connection.close_code is None


def test_page_of_another_site__opening_a_socket__is_refused_before_anything_is_read(
    watch: Watch, cluster: Cluster, viewer: User
) -> None:
    for origin in ("http://evil.example", "null", None, "http://127.0.0.1:1", "https://127.0.0.1"):
        with pytest.raises(InvalidStatus) as refused:
            watch("status:demo", user=viewer, origin=origin)
        assert refused.value.response.status_code == 403, origin


@pytest.mark.parametrize(
    ("origin", "host", "ours"),
    [
        ("https://dash.example", "dash.example", True),
        ("https://dash.example", "dash.example:443", True),
        ("http://dash.example", "dash.example", True),
        ("http://dash.example:8000", "dash.example:8000", True),
        ("http://dash.example:8000", "dash.example:8001", False),
        ("https://dash.example", "other.example", False),
        ("https://other.example", "other.example", False),  # agrees with itself, but is no host of ours
        ("https://sub.dash.example", "dash.example", False),
        ("https://trusted.example", "dash.example", True),
        ("ftp://dash.example", "dash.example", False),
        ("https://dash.example:port", "dash.example", False),
        ("null", "dash.example", False),
        ("", "dash.example", False),
        ("https://dash.example", "", False),
        ("http://[::1]:8000", "[::1]:8000", True),
    ],
)
def test_origin__compared_with_host(origin: str, host: str, ours: bool, settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["dash.example", "[::1]"]
    settings.CSRF_TRUSTED_ORIGINS = ["https://trusted.example"]

    assert is_ours(origin, host) is ours
