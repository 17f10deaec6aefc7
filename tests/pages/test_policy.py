"""The policy of a cluster: what its change requests need; only its administrators set it."""

from __future__ import annotations

from collections.abc import Callable
from html import unescape

import pytest
from django.test import Client

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.changes.models import Policy, PolicyLoosening
from kafkadash.clusters.models import Role
from tests.factories import watched
from tests.pages.conftest import Page

WHERE = "/settings/clusters/demo/policy/"
FORM = {
    "approvals_low": "1",
    "approvals_medium": "2",
    "approvals_high": "3",
    "valid_hours": "48",
    "reason": "Two more clusters depend on this one.",
}


@pytest.fixture
def adams(admin: User, client_of: Callable[[User], Client]) -> Client:
    watched("demo")
    return client_of(admin)


def sent(client: Client, form: dict[str, str] | None = None) -> Page:
    response = client.post(WHERE, form, follow=True) if form is not None else client.get(WHERE)
    assert response.status_code == 200
    return Page(response.content.decode())


def test_it_shows_what_holds_and_stores_what_is_typed(adams: Client) -> None:
    page = sent(adams)
    assert page.title == "A change of demo needs 1 to 2 approvals, by its risk."
    assert 'name="approvals_high" type="text" value="2"' in page.html
    assert f'href="{WHERE}" aria-current="page"' in page.html
    assert f'href="{WHERE}"' in adams.get("/settings/clusters/demo/").content.decode()
    page = sent(adams, {**FORM, "valid_hours": "12"})
    assert "Saved. It also holds for requests that are open" in page.text
    assert page.title == "A change of demo needs 1 to 3 approvals, by its risk."
    policy = Policy.objects.get()
    assert (policy.approvals_medium, policy.valid_hours) == (2, 12)
    event = AuditEvent.objects.get(action="policy.changed")
    assert (event.cluster, event.actor_name, event.reason) == ("demo", "adam", FORM["reason"])
    assert event.after == {"approvals_medium": 2, "approvals_high": 3, "valid_hours": 12}
    assert "Nothing was changed" in sent(adams, {**FORM, "valid_hours": "12"}).text
    assert AuditEvent.objects.filter(action="policy.changed").count() == 1


def test_a_looser_policy_waits_for_a_second_administrator(
    adams: Client, make_user: Callable[..., User], client_of: Callable[[User], Client]
) -> None:
    page = sent(adams, {**FORM, "self_approval": "on"})
    assert "waits until another administrator confirms it" in page.text
    assert Policy.objects.get().self_approval is False
    assert "A looser policy waits for a second administrator." in page.words("loosening")
    assert "Allow self-approval" in page.words("loosening")
    assert FORM["reason"] in page.words("loosening")
    assert 'value="confirm"' not in page.part("loosening")
    adas = client_of(make_user("ada", Role.ADMIN))
    page = sent(adas)
    assert 'value="confirm"' in page.part("loosening")
    asked_at = PolicyLoosening.objects.get().asked_at.isoformat()
    assert "cannot confirm it" in sent(adams, {"do": "confirm", "asked_at": asked_at}).words("refusal")
    assert "was dropped, replaced" in sent(adas, {"do": "confirm", "asked_at": "then"}).words("refusal")
    page = sent(adas, {"do": "confirm", "asked_at": asked_at})
    assert "ada confirmed it" in page.words("loosening")
    assert Policy.objects.get().self_approval is False
    assert not sent(adams, {"do": "drop", "asked_at": asked_at}).has("loosening")


@pytest.mark.parametrize(
    ("field", "typed", "sentence"),
    [
        ("approvals_low", "", "Give a whole number."),
        ("approvals_low", "one", "Give a whole number."),
        ("approvals_low", "²", "Give a whole number."),
        ("approvals_low", "-1", "Give a whole number."),
        ("approvals_low", "99999999999999999999", "Give a whole number."),
        ("approvals_low", "0", "Between 1 and 5 approvals"),
        ("approvals_high", "9", "Between 1 and 5 approvals"),
        ("approvals_high", "1", "A higher risk cannot need fewer approvals than a lower one."),
        ("valid_hours", "0", "Between 1 and 720 hours"),
        ("valid_hours", "721", "Between 1 and 720 hours"),
        ("reason", "", "Say why"),
        ("reason", " ", "Say why"),
    ],
)
def test_what_is_wrong_is_said_at_its_field(adams: Client, field: str, typed: str, sentence: str) -> None:
    page = sent(adams, {**FORM, field: typed})
    assert sentence in unescape(page.words(f"id_{field}-error"))
    assert f'value="{typed}"' in page.html
    assert f'<a href="#id_{field}">' in page.part("wrong")
    assert not Policy.objects.exists()
