"""Access to /metrics: by token, by network, or with the right to view all clusters; nobody by a session alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster, Role
from kafkadash.metrics.errors import MetricsErrorCode

TOKEN = "long-and-random-ünd-not-latin-Ω"
RIGHT: dict[str, Any] = {"HTTP_AUTHORIZATION": f"Bearer {TOKEN}".encode().decode("latin-1")}


def status(client: Client, **environ: Any) -> int:
    return int(client.get("/metrics", **environ).status_code)


def test_scrape__nothing_set__is_not_there(
    client: Client, settings: Any, db: None, django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(0):
        response = client.get("/metrics", **RIGHT)
    assert response.status_code == 404
    assert MetricsErrorCode.METRICS_OFF in response.content.decode()
    settings.METRICS_TOKEN = ""
    assert status(client, HTTP_AUTHORIZATION="Bearer ") == 404


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        (RIGHT["HTTP_AUTHORIZATION"], 200),
        (RIGHT["HTTP_AUTHORIZATION"].replace("Bearer", "bearer"), 200),
        (RIGHT["HTTP_AUTHORIZATION"][:-1], 401),
        (RIGHT["HTTP_AUTHORIZATION"] + "x", 401),
        (RIGHT["HTTP_AUTHORIZATION"].replace("Bearer", "Basic"), 401),
        ("Bearer \N{GREEK SMALL LETTER ALPHA}", 401),
        ("Bearer", 401),
        ("", 401),
    ],
)
def test_token__compared__lets_in_only_itself(client: Client, settings: Any, db: None, sent: str, answer: int) -> None:
    settings.METRICS_TOKEN = TOKEN
    response = client.get("/metrics", HTTP_AUTHORIZATION=sent)
    assert response.status_code == answer
    if answer == 401:
        assert response["WWW-Authenticate"] == "Bearer"
        assert MetricsErrorCode.SCRAPE_REFUSED in response.content.decode()
        assert TOKEN not in response.content.decode()


@pytest.mark.parametrize(
    ("address", "answer"),
    [
        ("10.20.3.4", 200),
        ("::ffff:10.20.3.4", 200),
        ("2001:db8::7", 200),
        ("10.21.0.1", 401),
        ("2001:db9::7", 401),
        ("", 401),
    ],
)
def test_network__compared__lets_in_only_its_addresses(
    client: Client, settings: Any, db: None, address: str, answer: int
) -> None:
    settings.METRICS_NETWORKS = ["10.20.0.0/16", "2001:db8::/64"]
    assert status(client, REMOTE_ADDR=address) == answer
    assert status(client, REMOTE_ADDR=address, HTTP_X_FORWARDED_FOR="10.20.3.4") == answer


def test_session__alone__needs_the_right_on_all_clusters(
    settings: Any, cluster: Cluster, viewer: User, make_user: Callable[..., User], client_of: Callable[[User], Client]
) -> None:
    of_one = client_of(make_user("ann", Role.ADMIN, cluster))
    assert [status(client_of(viewer)), status(of_one)] == [200, 404]
    settings.METRICS_TOKEN = TOKEN
    assert [status(client_of(viewer)), status(of_one), status(of_one, **RIGHT)] == [200, 401, 200]


def test_scrape__by_other_verbs__is_refused(client: Client) -> None:
    assert client.post("/metrics").status_code == 405
