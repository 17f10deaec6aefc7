"""The verify page: bring a file, watch, and read the answer at an address of its own."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster, Role
from kafkadash.core.errors import RequestErrorCode
from kafkadash.core.messages import coded, message_columns, message_text
from kafkadash.core.problems import InputProblem
from kafkadash.jobs.models import Job, JobState
from kafkadash.jobs.runner import enqueue
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.planning import proposal as uploads
from kafkadash.planning.errors import ReassignmentErrorCode
from kafkadash.planning.problem_codes import FileErrorCode, JsonFault
from kafkadash.verify.job import KIND
from kafkadash.verify.models import Verification, VerificationPart
from tests.factories import NOW, watched
from tests.pages.conftest import Page, figures_of, told_in
from tests.pages.test_query_counts import PINNED
from tests.stored_messages import each_of_other_versions

URL = "/clusters/demo/verify/"
JSON = '{"version":1,"partitions":[{"topic":"foo","partition":0,"replicas":[3,4]}]}'
NO_ACTIVE = "There is no active reassignment of partition foo-0."


@pytest.fixture
def client(viewer: User, client_of: Callable[[User], Client], demo: Cluster) -> Client:
    return client_of(viewer)


def finished(cluster: Cluster, completed: int, failed: int, missing: int = 0, **fields: Any) -> Job:
    """A verification as its job leaves it."""
    job = enqueue(KIND, cluster=cluster)

    rows: list[list[Any]] = [["foo", n, [3, 4], "failed", [NO_ACTIVE], ""] for n in range(failed)]
    rows += [["gone", n, [3, 4], "missing", [NO_ACTIVE], "It does not exist."] for n in range(missing)]
    done = range(1000, 1000 + completed)
    rows += [["foo", n, [3, 4], "completed", [f"partition foo-{n} is completed."], ""] for n in done]
    counts = {"failed": failed, "missing": missing, "completed": completed}
    row = Verification.objects.create(
        job=job,
        name="<b>move</b>.json",
        size=1_234,
        data=zlib.compress(JSON.encode()),
        counts={state: number for state, number in counts.items() if number},
        taken_at=NOW - timedelta(seconds=9),
    )
    VerificationPart.objects.create(verification=row, number=0, data=zlib.compress(json.dumps(rows).encode()))
    Job.objects.filter(pk=job.pk).update(state=JobState.DONE, result={"partitions": len(rows)}, **fields)
    return job


def test_the_page_says_that_nothing_is_changed_and_is_linked_from_the_reassignments(client: Client) -> None:
    page = Page(client.get(URL).content.decode())
    assert "demo" in page.title
    assert f'href="{URL}"' in client.get("/clusters/demo/reassignments/").content.decode()


@pytest.mark.parametrize("as_file", [True, False])
def test_what_is_brought_waits_for_a_worker_at_its_own_address(client: Client, viewer: User, *, as_file: bool) -> None:
    brought = {"file": SimpleUploadedFile("../moves/plan.json", JSON.encode())} if as_file else {"json": JSON}
    response = client.post(URL, brought)
    job = Job.objects.get(kind=KIND)
    assert (response.status_code, response["Location"]) == (302, f"{URL}{job.pk}/")
    assert (job.state, job.requested_by, job.input) == (JobState.QUEUED, viewer, {})
    row = job.verification
    assert (row.name, zlib.decompress(row.data).decode()) == ("plan.json" if as_file else "", JSON)
    page = Page(client.get(response["Location"]).content.decode())
    assert page.title == "Verification waiting for a worker"
    assert "Stop" in page.text


@pytest.mark.parametrize(
    ("brought", "sentence"),
    [
        ({}, message_text(ReassignmentErrorCode.NO_FILE)),
        ({"json": "  \n"}, message_text(ReassignmentErrorCode.NO_FILE)),
        (
            {"json": JSON, "file": SimpleUploadedFile("a.json", b"{}")},
            message_text(ReassignmentErrorCode.FILE_AND_TEXT),
        ),
        ({"file": SimpleUploadedFile("a.json", b"x" * 2_000)}, "0.0 MB; the limit is 50 MB."),
    ],
)
def test_what_cannot_be_taken_gets_a_sentence(
    client: Client, brought: dict[str, Any], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "file" in brought and "json" not in brought:
        monkeypatch.setattr(uploads, "LARGEST_BYTES", 1_000)
        sentence = "MB; the limit is"
    response = client.post(URL, brought)
    assert response.status_code == 400
    assert sentence in Page(response.content.decode()).text
    assert not Job.objects.exists()


def test_a_second_file_of_the_same_person_is_refused_with_the_way_to_the_first(client: Client) -> None:
    client.post(URL, {"json": JSON})
    job = Job.objects.get(kind=KIND)
    for where, form in ((URL, {"json": JSON}), (f"{URL}{job.pk}/again/", {})):
        response = client.post(where, form)
        assert response.status_code == 409
        page = Page(response.content.decode())
        assert page.tells(ReassignmentErrorCode.VERIFIES_ALREADY, "[role=alert]")
        assert f'href="{URL}{job.pk}/"' in page.html
        assert f'data-address="{URL}"' in page.html
        assert ("&quot;topic&quot;:&quot;foo&quot;" in page.html) is bool(form)  # what was pasted is still there
    assert Job.objects.count() == 1


def test_a_large_file_of_a_viewer_is_refused(client: Client) -> None:
    assert Page(client.get(URL).content.decode()).figures("label[for=file]") == ["1 MB", "50 MB"]
    response = client.post(URL, {"file": SimpleUploadedFile("a.json", b" " * 1_000_001)})
    assert response.status_code == 403
    page = Page(response.content.decode())
    assert page.tells(ReassignmentErrorCode.VERIFY_NEEDS_ROLE, "[role=alert]")
    assert page.figures("[role=alert]") == ["1 MB"]
    assert not Job.objects.exists()


def test_the_title_is_the_answer_and_the_worst_come_first(client: Client, demo: Cluster) -> None:
    job = finished(demo, completed=3, failed=1, missing=1)
    page = Page(client.get(f"{URL}{job.pk}/").content.decode())
    assert figures_of(page.title) == ["3", "5", "1", "1"]
    assert page.figures("[data-fact=asked]") == ["02:02:55"]
    worst = page.first("#verdicts tbody tr")
    assert (worst.texts("th"), worst.texts("td")[:2]) == (["foo-0"], ["failed", "3, 4"])
    assert worst.texts(".audit-field") == [NO_ACTIVE]
    assert page.text.index("foo-0") < page.text.index("gone-0") < page.text.index("foo-1000")
    assert "&lt;b&gt;move&lt;/b&gt;.json" in page.html
    assert 'href="/clusters/demo/topics/gone/"' not in page.html


def test_an_old_answer_is_not_shown_as_what_is_now(client: Client, demo: Cluster) -> None:
    job = finished(demo, completed=1, failed=0)
    fresh = Page(client.get(f"{URL}{job.pk}/").content.decode())
    assert "data-stale" not in fresh.start_tag("verdicts")
    Verification.objects.filter(job=job).update(taken_at=NOW - timedelta(hours=3))
    page = Page(client.get(f"{URL}{job.pk}/").content.decode())
    assert page.figures("#old-answer") == ["3 h"]
    assert not fresh.has("old-answer")
    assert "data-stale" in page.start_tag("verdicts")


def test_a_state_is_a_filter_with_an_address_and_pages(client: Client, demo: Cluster) -> None:
    job = finished(demo, completed=250, failed=2)
    address = f"{URL}{job.pk}/"
    page = Page(client.get(address, {"state": "completed", "page": "3"}).content.decode())
    assert page.figures(".pager") == ["201", "250", "250"]
    assert "foo-1249 completed" in page.text
    assert "foo-0 failed" not in page.text
    assert "foo-1 failed" in Page(client.get(address, {"state": "failed"}).content.decode()).text
    assert Page(client.get(address, {"state": "in_progress"}).content.decode()).find("[data-empty=filtered]")
    odd = Page(client.get(address, {"state": "odd", "page": "x"}).content.decode())
    assert any(told_in(said, RequestErrorCode.CHOICE_UNKNOWN) and "odd" in said for said in odd.texts(".notice"))
    assert odd.figures(".pager") == ["1", "100", "252"]


def test_problems_of_the_file_are_listed_with_their_lines(client: Client, demo: Cluster) -> None:
    job = enqueue(KIND, cluster=demo)
    Verification.objects.create(job=job, size=3, data=b"")
    fault = coded(JsonFault.OTHER_FAULT, words="<i>a comma</i> is missing")
    wrong = InputProblem(coded(FileErrorCode.NOT_JSON, fault=fault), 3, 7)
    Job.objects.filter(pk=job.pk).update(
        state=JobState.DONE, result={"problems": [wrong.as_json()], "problem_count": 412}
    )
    page = Page(client.get(f"{URL}{job.pk}/").content.decode())
    assert figures_of(page.title) == ["412"]
    assert page.texts(".verify-problems li") == [f"{wrong} {wrong.code}"]
    assert page.figures(".verify-problems li")[:2] == ["3", "7"]
    assert "<i>a comma" not in page.html
    assert page.figures("main .panel-note") == ["1", "412"]


def test_a_failure_is_shown_with_its_code_and_can_be_tried_again(client: Client, demo: Cluster) -> None:
    job = enqueue(KIND, cluster=demo)
    Verification.objects.create(job=job, name="a.json", size=3, data=zlib.compress(JSON.encode()))
    why = message_columns(coded(KafkaErrorCode.CONNECTING_FAILED, address="k:1", said="connection refused"))
    Job.objects.filter(pk=job.pk).update(state=JobState.FAILED, **why)
    page = Page(client.get(f"{URL}{job.pk}/").content.decode())
    assert page.title == "Verification failed"
    assert "k:1" in page.text
    assert KafkaErrorCode.CONNECTING_FAILED in page.text
    response = client.post(f"{URL}{job.pk}/again/")
    again = Job.objects.get(kind=KIND, state=JobState.QUEUED)
    assert response["Location"] == f"{URL}{again.pk}/"
    assert (again.verification.name, zlib.decompress(again.verification.data).decode()) == ("a.json", JSON)


@each_of_other_versions
def test_a_failure_of_another_version_is_shown_as_stored(
    client: Client, demo: Cluster, code: str, params: dict[str, Any]
) -> None:
    job = enqueue(KIND, cluster=demo)
    Verification.objects.create(job=job, name="a.json", size=3, data=zlib.compress(JSON.encode()))
    Job.objects.filter(pk=job.pk).update(state=JobState.FAILED, error_code=code, error_params=params)
    assert code in Page(client.get(f"{URL}{job.pk}/").content.decode()).text


def test_a_page_that_waits_asks_for_its_part_and_loads_anew_when_it_has_ended(client: Client, demo: Cluster) -> None:
    client.post(URL, {"json": JSON})
    job = Job.objects.get(kind=KIND)
    part = client.get(f"{URL}{job.pk}/", headers={"HX-Request": "true"})
    assert "HX-Refresh" not in part
    assert b'id="verify-progress"' in part.content
    client.post(f"{URL}{job.pk}/stop/")
    ended = client.get(f"{URL}{job.pk}/", headers={"HX-Request": "true"})
    assert ended["HX-Refresh"] == "true"
    page = Page(client.get(f"{URL}{job.pk}/").content.decode())
    assert not page.has("verify-progress")
    assert not page.has("verdicts")


def test_it_is_stopped_by_who_asked_for_it_only(
    client: Client, demo: Cluster, make_user: Callable[..., User], client_of: Callable[[User], Client]
) -> None:
    client.post(URL, {"json": JSON})
    job = Job.objects.get(kind=KIND)
    other = client_of(make_user("vito", Role.VIEWER, demo))
    assert ">Stop verification<" in client.get(f"{URL}{job.pk}/").content.decode()
    assert ">Stop verification<" not in other.get(f"{URL}{job.pk}/").content.decode()
    refused = other.post(f"{URL}{job.pk}/stop/")
    assert refused.status_code == 403
    job.refresh_from_db()
    assert (job.state, job.cancel_requested) == (JobState.QUEUED, False)


def test_it_is_found_under_its_own_cluster_only(
    client: Client, demo: Cluster, make_user: Callable[..., User], client_of: Callable[[User], Client]
) -> None:
    other = watched("other")
    job = finished(demo, completed=1, failed=0)
    assert client.get(f"/clusters/other/verify/{job.pk}/").status_code == 404
    assert client.get(f"{URL}{job.pk}/").status_code == 200
    stranger = client_of(make_user("olaf", Role.VIEWER, other))
    for response in (stranger.get(f"{URL}{job.pk}/"), stranger.post(f"{URL}{job.pk}/again/"), stranger.post(URL)):
        assert response.status_code == 404


def test_its_queries_are_as_pinned_and_do_not_grow_with_rows(client: Client, demo: Cluster) -> None:
    counts = []
    for number in (1, 900):
        job = finished(demo, completed=number, failed=number)
        with CaptureQueriesContext(connection) as queries:
            assert client.get(f"{URL}{job.pk}/").status_code == 200
        counts.append(len(queries))
    assert counts == [PINNED["verification"]] * 2
