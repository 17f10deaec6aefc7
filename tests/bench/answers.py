"""How long a page takes on the server, as a signed-in viewer's request."""

from __future__ import annotations

import time

from tests.bench.bars import Bar, at_most, percentile

RUNS = 15


def answered_in(name: str, address: str, limit_s: float) -> Bar:
    """As a signed-in viewer's request takes, in this process; the first one, which fills caches, is left out."""
    from django.test import Client

    from kafkadash.accounts.models import User
    from kafkadash.clusters.models import ClusterRole, Role

    viewer, new = User.objects.get_or_create(username="viewer")
    if new:
        ClusterRole.objects.create(user=viewer, role=Role.VIEWER)
    client, took = Client(headers={"host": "127.0.0.1"}), []
    client.force_login(viewer)
    for _ in range(RUNS + 1):
        began = time.perf_counter()
        answer = client.get(address)
        took.append(time.perf_counter() - began)
        if answer.status_code != 200:
            raise RuntimeError(f"{address} was answered with {answer.status_code}")
    return at_most(name, percentile(took[1:], 50), limit_s, "s")
