"""Every kind of finding has a runbook, and every runbook a kind; they are rendered safely."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.findings.kinds import FindingKind
from kafkadash.findings.runbooks import FOLDER, all_runbooks, read_runbook, render_markdown
from tests.factories import judged, watched


def test_there_is_one_for_each_kind_and_none_without() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {f"{kind.value}.md" for kind in FindingKind}


@pytest.mark.parametrize("kind", list(FindingKind))
def test_it_says_what_it_means_how_to_confirm_what_to_do_and_what_not(kind: FindingKind) -> None:
    own = read_runbook(kind)
    assert own.title
    assert own.lead.startswith("<p>")
    for heading in ("How to confirm", "What to do", "What not to do"):
        assert f"<h2>{heading}</h2>" in own.html
    assert "```" not in own.html


def test_titles_tell_them_apart() -> None:
    titles = [own.title for own in all_runbooks()]
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize(
    "text", ["<script>alert(1)</script>", '<img src=x onerror="alert(1)">', "[here](javascript:alert(1))"]
)
def test_html_and_harmful_links_are_shown_and_not_taken_over(text: str) -> None:
    html = render_markdown(text)
    assert "<script" not in html
    assert "<img" not in html
    assert "href" not in html


@pytest.mark.django_db
def test_the_pages_say_which_apply_now(viewer: User, client_of: Callable[[User], Client]) -> None:
    client = client_of(viewer)
    assert b"No runbook is needed now." in client.get("/runbooks/").content
    judged(watched("demo", offline_partitions=1))
    page = client.get("/runbooks/").content.decode()
    assert "1 runbook applies now." in page
    assert 'href="/?kind=offline-partitions"' in page
    assert b"Partitions without a leader" in client.get("/runbooks/offline-partitions/").content
    assert client.get("/runbooks/no-such-thing/").status_code == 404
