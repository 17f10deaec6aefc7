"""Pages that are not there are rendered in other threads than the rest; they must not keep what the pool lent them."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from django.test import Client

from kafkadash.accounts.models import User
from tests.live.conftest import Server, database_is_left_alone
from tests.waiting import wait_until


def test_missing_pages__asked_for_by_many_at_once__leave_the_pool_full(
    server: Server, viewer: User, client_of: Callable[[User], Client]
) -> None:
    cookie = f"sessionid={client_of(viewer).cookies['sessionid'].value}"

    def ask(_: int) -> int:
        url = f"http://127.0.0.1:{server.port}/clusters/nowhere/"
        try:
            with urllib.request.urlopen(urllib.request.Request(url, headers={"Cookie": cookie})) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(ask, range(24))) == {404}

    wait_until(database_is_left_alone, "all connections are back in the pool", deadline_s=5)
