"""Every kind of finding has a runbook, and every runbook a kind; they are rendered safely."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.findings.kinds import FindingKind
from kafkadash.findings.runbooks import FOLDER, all_runbooks, fill_commands, read_runbook, render_markdown
from tests.factories import judged, watched


def test_there_is_one_for_each_kind_and_none_without() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {f"{kind.value}.md" for kind in FindingKind}


@pytest.mark.parametrize("kind", list(FindingKind))
def test_it_says_what_it_means_how_to_confirm_what_to_do_and_what_not(kind: FindingKind) -> None:
    own = read_runbook(kind)
    assert own.title
    assert own.lead.startswith("<p>")
    for heading in ("How to confirm", "Likely causes", "What to do", "What not to do"):
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


def test_commands__hostile_name__is_quoted_for_the_shell_and_escaped_for_the_page() -> None:
    html = render_markdown("Group GROUP\n\n```\ntool --group GROUP --id ID --host HOST:9092\n```\n")
    filled = fill_commands(html, {"HOST:9092": "a:1,b:2", "GROUP": "x; rm <b>", "ID": "3"})
    assert "tool --group &#x27;x; rm &lt;b&gt;&#x27; --id 3 --host a:1,b:2" in filled
    assert "<p>Group GROUP</p>" in filled


@pytest.mark.django_db
def test_the_pages_say_which_apply_now(viewer: User, client_of: Callable[[User], Client]) -> None:
    client = client_of(viewer)
    assert "data-needed" not in client.get("/runbooks/").content.decode()
    judged(watched("demo", offline_partitions=1))
    page = client.get("/runbooks/").content.decode()
    assert "Runbooks: 1 for open findings" in page
    assert 'href="/?kind=offline-partitions"' in page
    assert b"Offline partitions" in client.get("/runbooks/offline-partitions/").content
    assert client.get("/runbooks/no-such-thing/").status_code == 404
