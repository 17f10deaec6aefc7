"""No browser keeps what signed-in people saw; pages that fetch themselves again get 304 all the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import AsyncClient, Client

from kafkadash.accounts.models import User
from tests.factories import watched


@pytest.mark.parametrize(
    "address",
    [
        "/",
        "/clusters/demo/",
        "/settings/clusters/demo/",
        "/settings/clusters/demo/roles/",
        "/audit/",
        "/audit/export/?format=json",
        "/account/password/",
        "/no/such/page/",
    ],
)
def test_answer_to_a_signed_in_person__is_not_stored(
    address: str, admin: User, client_of: Callable[[User], Client]
) -> None:
    watched("demo")
    answer = client_of(admin).get(address)
    assert answer["Cache-Control"] == "no-store"
    if "ETag" in answer:
        again = client_of(admin).get(address, headers={"if-none-match": answer["ETag"]})
        assert (again.status_code, again["Cache-Control"]) == (304, "no-store")


@pytest.mark.django_db
async def test_static_files__may_be_kept(async_client: AsyncClient) -> None:
    async_client.cookies["sessionid"] = "of somebody"
    answer = await async_client.get("/static/js/live.js")
    assert answer.status_code == 200
    assert "no-store" not in answer["Cache-Control"]
