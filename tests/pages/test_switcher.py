"""The menu of clusters above a cluster's page."""

from __future__ import annotations

from collections.abc import Callable

from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Role
from tests.factories import watched
from tests.pages.conftest import Page, text_of


def test_it_lists_states_worst_first_and_marks_where_one_is(get_page: Callable[[str], Page]) -> None:
    watched("well")
    watched("bad", offline_partitions=1)
    menu = get_page("/clusters/?current=well").html
    assert text_of(menu) == "bad critical well OK"
    assert menu.count('aria-current="true"') == 1
    assert 'href="/clusters/well/" data-state="ok" aria-current="true"' in menu


def test_it_lists_only_what_one_may_see(make_user: Callable[..., User], client_of: Callable[[User], Client]) -> None:
    watched("secret")
    client = client_of(make_user("ann", Role.VIEWER, watched("mine")))
    assert b"secret" not in client.get("/clusters/").content
    assert b"secret" not in client.get("/clusters/mine/").content
