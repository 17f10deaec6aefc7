"""A change is started, steered and cancelled from its pages; each says where it stands and what a deed would do.

How a run ended: on its review, in its report, and the way back from there.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.changes.errors import ChangeErrorCode
from kafkadash.changes.models import ChangeRequest, Policy
from kafkadash.changes.state_machine import ChangeState, WorkflowErrorCode
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import pack_reasons, reason_columns, reason_text
from kafkadash.execution.engine.reasons import BrokerFenced, ClusterReadOnly, ClusterUnreadable, RefusedByKafka
from kafkadash.execution.engine.state import RowState
from kafkadash.execution.models import Execution, Move, RunOutcome, ThrottleEntry
from kafkadash.execution.report import report_of
from kafkadash.kafka.throttles import LEADER_RATE
from kafkadash.monitoring.models import BrokerWeights, CollectorRun
from kafkadash.planning.errors import ReassignmentErrorCode
from tests.execution.stored_runs import running
from tests.factories import NOW
from tests.pages.conftest import Page, figures_of, told_in
from tests.pages.drained import TYPED, See, demo, made, review, see

__all__ = ["demo", "made", "see"]


class TestStart:
    def test_the_page_says_what_a_start_does_and_starts(
        self, made: Callable[..., ChangeRequest], see: See, operator: User, client_of: Callable[[User], Client]
    ) -> None:
        change = made(ChangeState.APPROVED)
        page = see(operator, review(change))
        assert "#decide" in page.links("#change-bar")
        assert page.figures("#start-form p")[:2] == ["5", "60 MB/s"]
        form = {"key": f"{change.pk}-1-{operator.pk}", "round": "1"}
        assert all(f'name="{name}" value="{value}"' in page.part("start-form") for name, value in form.items())
        client = client_of(operator)
        for _ in range(2):
            answer = client.post(f"/changes/{change.pk}/start/", form)
            assert (answer.status_code, answer["Location"]) == (302, f"/changes/{change.pk}/run/")
        assert AuditEvent.objects.filter(action="change.started").count() == 1
        assert ChangeRequest.objects.get(pk=change.pk).state == ChangeState.QUEUED

    def test_a_key_that_no_database_takes__starts_it(
        self, made: Callable[..., ChangeRequest], operator: User, client_of: Callable[[User], Client]
    ) -> None:
        change = made(ChangeState.APPROVED)
        answer = client_of(operator).post(f"/changes/{change.pk}/start/", {"key": "a\0b", "round": "1"})
        assert (answer.status_code, answer["Location"]) == (302, f"/changes/{change.pk}/run/")

    def test_whoever_may_not_start_reads_who_may(
        self, made: Callable[..., ChangeRequest], see: See, approver: User
    ) -> None:
        page = see(approver, review(made(ChangeState.APPROVED)))
        assert not page.has("start-form")
        assert page.tells(ChangeErrorCode.WAITS_FOR_START, "#decide-body")
        assert "operator" in page.first("#decide-body").text

    def test_old_checks_turn_the_button_off_with_the_reason(
        self, made: Callable[..., ChangeRequest], see: See, operator: User
    ) -> None:
        page = see(operator, review(made(ChangeState.APPROVED, checked_at=NOW - timedelta(minutes=5))))
        assert page.tells(ChangeErrorCode.CHECKS_TOO_OLD, "#start-off")
        assert page.figures("#start-off") == ["2 min", "5 min"]
        assert not page.find("#start-form [type=submit]")

    def test_it_says_behind_whom_it_would_wait(
        self, made: Callable[..., ChangeRequest], see: See, operator: User
    ) -> None:
        first = made(ChangeState.EXECUTING)
        running(first, {RowState.MOVING: 1})
        page = see(operator, review(made(ChangeState.APPROVED)))
        assert f"#{first.pk}" in page.words("start-form")


def breakable(change: ChangeRequest) -> ChangeRequest:
    Policy.objects.create(cluster=change.cluster, break_glass=True)
    return change


class TestBreakGlass:
    def test_it_is_an_administrators_loud_and_with_a_reason(
        self, made: Callable[..., ChangeRequest], see: See, admin: User, client_of: Callable[[User], Client]
    ) -> None:
        change = breakable(made(ChangeState.PROPOSED))
        page = see(admin, review(change))
        assert page.figures("#h-break-glass") == ["1"]
        client, form = client_of(admin), {"digest": change.digest, "round": "1"}
        refused = client.post(f"/changes/{change.pk}/break-glass/", form)
        assert refused.status_code == 400
        page = Page(refused.content.decode())
        assert page.tells(WorkflowErrorCode.GLASS_REASON, "#glass-reason-error")
        assert client.post(f"/changes/{change.pk}/break-glass/", {**form, "glass_reason": TYPED}).status_code == 302
        page = see(admin, review(change))
        assert admin.username in page.first("#h-broke-glass").text
        assert page.states("#change-bar .status-mark") == ["critical"]
        assert TYPED in page.words("audit")

    def test_nobody_else_sees_it_and_a_policy_forbids_it(
        self, made: Callable[..., ChangeRequest], see: See, operator: User, approver: User, admin: User
    ) -> None:
        change = breakable(made(ChangeState.PROPOSED))
        for user in (operator, approver):
            assert not see(user, review(change)).has("break-glass")
        Policy.objects.all().delete()
        assert not see(admin, review(change)).has("break-glass")

    def test_another_content_is_refused_and_what_was_typed_is_kept(
        self, made: Callable[..., ChangeRequest], admin: User, client_of: Callable[[User], Client]
    ) -> None:
        change = breakable(made(ChangeState.PROPOSED))
        form = {"digest": "0" * 64, "round": "1", "glass_reason": TYPED}
        answer = client_of(admin).post(f"/changes/{change.pk}/break-glass/", form)
        assert answer.status_code == 409
        page = Page(answer.content.decode())
        assert page.refusal == WorkflowErrorCode.OTHER_CONTENT
        assert TYPED in page.text


class TestQueue:
    def test_it_says_behind_whom_it_waits(self, made: Callable[..., ChangeRequest], see: See, viewer: User) -> None:
        first, second, third = made(ChangeState.EXECUTING), made(ChangeState.QUEUED), made(ChangeState.QUEUED)
        running(first, {RowState.MOVING: 1})
        for minutes, change in ((9, second), (5, third)):
            running(change, {}, started_at=None, queued_at=NOW - timedelta(minutes=minutes), progress=b"")
        assert see(viewer, review(third)).texts("#h-queued a") == [f"#{first.pk}", f"#{second.pk}"]
        assert f"#{first.pk}" in see(viewer, review(second)).texts("#change-bar .summary-figures b")
        rows = see(viewer, "/changes/?show=running")
        assert f"#{first.pk} and #{second.pk}" in rows.words(f"change-{third.pk}")
        order = [rows.html.index(f'id="change-{change.pk}"') for change in (first, third, second)]
        assert order == sorted(order)  # what runs stands above what is queued
        assert "50.9 %" in rows.words(f"change-{first.pk}")

    def test_what_blocks_it_is_said_and_that_nothing_was_sent(
        self, made: Callable[..., ChangeRequest], see: See, viewer: User
    ) -> None:
        change = made(ChangeState.QUEUED)
        why = BrokerFenced(6)
        running(
            change,
            {},
            started_at=None,
            blocked_at=NOW - timedelta(minutes=2),
            progress=b"",
            **reason_columns(why, "blocked"),
        )
        page = see(viewer, review(change))
        assert page.states("#blocked") == ["warning"]
        assert page.texts("#h-blocked") == [reason_text(why)]
        listed = see(viewer, "/changes/?show=running").first(f"#change-{change.pk}")
        assert reason_text(why) in listed.text
        assert "warning" in [mark.get("data-state") for mark in listed.find(".status-mark")]


class TestRuns:
    def test_it_leads_to_the_run(self, made: Callable[..., ChangeRequest], see: See, viewer: User) -> None:
        change = made(ChangeState.EXECUTING)
        running(change, stuck_rows=1)
        page = see(viewer, review(change))
        assert page.figures("#running .inline-facts") == ["50.9 %", "03:35", "1"]
        assert page.states("#running") == ["warning"]
        assert f'href="/changes/{change.pk}/run/"' in page.part("running")
        assert page.links("#change-bar .segments") == [f"/changes/{change.pk}/run/", f"/changes/{change.pk}/"]
        assert not page.has("steer-bar"), "a viewer steers nothing"

    def test_old_figures_say_of_when_they_are_and_promise_no_end(
        self, made: Callable[..., ChangeRequest], see: See, viewer: User
    ) -> None:
        change = made(ChangeState.EXECUTING)
        then = NOW - timedelta(minutes=4)
        running(change, looked_at=then, progress_at=then)
        for figures in (
            see(viewer, review(change)).figures("#running .inline-facts"),
            see(viewer, "/changes/?show=running").figures(f"#change-{change.pk} .inline-facts"),
        ):
            assert figures[:2] == ["01:59:04", "50.9 %"]
            assert len(figures) == 2

    def test_it_is_paused_and_resumed_from_the_bar(
        self, made: Callable[..., ChangeRequest], see: See, operator: User, client_of: Callable[[User], Client]
    ) -> None:
        change = made(ChangeState.EXECUTING)
        running(change)
        client = client_of(operator)
        for verb, reason, state in (("pause", " ", ChangeState.PAUSED), ("resume", "p99", ChangeState.EXECUTING)):
            answer = client.post(f"/changes/{change.pk}/{verb}/", {"pause_reason": reason})
            assert (answer.status_code, answer["Location"]) == (302, f"/changes/{change.pk}/run/")
            assert ChangeRequest.objects.get(pk=change.pk).state == state
        assert AuditEvent.objects.get(action="change.paused").reason == ""

    def test_each_form_that_steers_says_on_which_page_it_stands(
        self, made: Callable[..., ChangeRequest], see: See, operator: User
    ) -> None:
        change = made(ChangeState.PAUSED)
        running(change)
        for address, on in ((f"{review(change)}run/", "run"), (review(change), "")):
            page = see(operator, address)
            assert all(f'name="on" value="{on}"' in page.part(form) for form in ("steer-bar", "steer-phone"))

    @pytest.mark.parametrize(("on", "has"), [("run", "throttle"), ("", "decide")])
    def test_resuming_without_a_reason_is_refused_where_it_was_asked(
        self, on: str, has: str, made: Callable[..., ChangeRequest], operator: User, client_of: Callable[[User], Client]
    ) -> None:
        change = made(ChangeState.PAUSED)
        running(change)
        answer = client_of(operator).post(f"/changes/{change.pk}/resume/", {"pause_reason": " ", "on": on})
        assert answer.status_code == 400
        page = Page(answer.content.decode())
        assert page.has(has)
        assert page.tells(ChangeErrorCode.RESUME_REASON, "#resume-reason-bar-error")
        assert " open" in page.start_tag("steer-bar")
        assert f"key=change:{change.pk}" in page.html
        assert ChangeRequest.objects.get(pk=change.pk).state == ChangeState.PAUSED

    def test_a_cancel_is_shown_before_it_is_confirmed(
        self,
        made: Callable[..., ChangeRequest],
        see: See,
        approver: User,
        operator: User,
        client_of: Callable[[User], Client],
    ) -> None:
        change = made(ChangeState.EXECUTING)
        running(change, {RowState.MOVING: 2, RowState.DONE: 3, RowState.PENDING: 4})
        address = f"/changes/{change.pk}/run/cancel/"
        page = see(approver, address)
        assert page.figures("#cancel .stack p") == ["2"]
        assert figures_of(page.first("#cancel .stack").text)[:2] == ["2", "3"]
        assert figures_of(page.texts("#goes-back tbody td")[2]) == ["3", "2", "1"]
        one = see(operator, f"/changes/{change.pk}/run/row/?topic=events&partition=0")
        assert one.figures("p#goes-back") == ["3", "2", "1"]
        client = client_of(approver)
        refused = client.post(address, {"reason": ""})
        assert refused.status_code == 400
        page = Page(refused.content.decode())
        assert page.tells(ChangeErrorCode.CANCEL_REASON, "#cancel-reason-error")
        assert client.post(address, {"reason": TYPED}).status_code == 302
        assert ChangeRequest.objects.get(pk=change.pk).state == ChangeState.CANCELLING
        again = client.post(address, {"reason": TYPED})
        assert again.status_code == 409
        assert Page(again.content.decode()).refusal == WorkflowErrorCode.NOT_FROM_HERE
        assert client.get(address).status_code == 302  # there is nothing to cancel any more

    def test_an_administrator_gives_up_what_cannot_be_cancelled(
        self,
        made: Callable[..., ChangeRequest],
        see: See,
        admin: User,
        operator: User,
        client_of: Callable[[User], Client],
    ) -> None:
        change = made(ChangeState.CANCELLING)
        run = running(change, {RowState.MOVING: 2, RowState.DONE: 3, RowState.PENDING: 4})
        address, of_run = f"/changes/{change.pk}/run/give-up/", f"/changes/{change.pk}/run/"
        page = see(admin, address)
        assert not page.has("give-up-form")
        assert page.tells(ReassignmentErrorCode.GIVE_UP_TOO_EARLY, "#give-up")
        client = client_of(admin)
        early = client.post(address, {"reason": TYPED})
        assert early.status_code == 409
        page = Page(early.content.decode())
        assert page.tells(ReassignmentErrorCode.GIVE_UP_TOO_EARLY, "#refused")
        assert page.figures("#refused")[-2:] == ["10", "20"]
        assert address not in see(admin, of_run).links("main")

        silent = timezone.now() - timedelta(minutes=11)
        no_answer = reason_columns(ClusterUnreadable("No broker answers."), "error")
        Execution.objects.filter(pk=run.pk).update(failures=20, looked_at=silent, **no_answer)
        ThrottleEntry.objects.create(execution=run, resource="broker", name="3", key=LEADER_RATE, state="set")
        page = see(operator, of_run)
        assert page.tells(ReassignmentErrorCode.CANCEL_CANNOT_END)
        assert address in page.links("main")
        other = see(operator, address)
        assert not other.has("give-up-form")
        assert other.tells(ClusterErrorCode.NEEDS_ROLE, "#give-up")
        assert "admin" in other.words("give-up")
        assert client_of(operator).post(address, {"reason": TYPED}).status_code == 403
        page = see(admin, address)
        flight, waiting, obligations = page.texts("#give-up .plain-list li")
        assert told_in(flight, ReassignmentErrorCode.FLIGHT_STAYS)
        assert told_in(waiting, ReassignmentErrorCode.WAITING_STAYS)
        assert told_in(obligations, ReassignmentErrorCode.OBLIGATIONS_STAY)
        assert [figures_of(said)[0] for said in (flight, waiting, obligations)] == ["2", "4", "1"]
        refused = client.post(address, {"reason": " "})
        assert refused.status_code == 400
        page = Page(refused.content.decode())
        assert page.tells(ReassignmentErrorCode.GIVE_UP_REASON, "#give-up-reason-error")

        assert client.post(address, {"reason": TYPED}).status_code == 302
        assert ChangeRequest.objects.get(pk=change.pk).state == ChangeState.FAILED
        assert see(operator, of_run).has("report-end")
        again = client.post(address, {"reason": TYPED})
        assert again.status_code == 409
        assert Page(again.content.decode()).refusal == ChangeErrorCode.CHANGED_MEANWHILE
        assert client.get(address).status_code == 302

    @pytest.mark.parametrize("state", [ChangeState.EXECUTING, ChangeState.PAUSED, ChangeState.CANCELLING])
    def test_on_a_cluster_that_became_read_only_it_says_what_is_still_sent(
        self, state: ChangeState, made: Callable[..., ChangeRequest], see: See, viewer: User
    ) -> None:
        change = made(state)
        running(change, held=[])
        address, code = f"/changes/{change.pk}/run/", ReassignmentErrorCode.READ_ONLY_NOW
        assert not see(viewer, address).tells(code)
        Cluster.objects.update(read_only=True)
        Execution.objects.update(
            held=pack_reasons([ClusterReadOnly(change.cluster.name)] if state is ChangeState.EXECUTING else [])
        )
        page = see(viewer, address)
        [told] = [notice for notice in page.texts(f"#run-notices-{change.pk} .notice") if told_in(notice, code)]
        assert reason_text(ClusterReadOnly(change.cluster.name)) not in page.text, "it is told once"
        ChangeRequest.objects.update(state=ChangeState.CANCELLING)
        of_a_cancel = see(viewer, address).texts(f"#run-notices-{change.pk} .notice")
        assert (told in of_a_cancel) == (state is ChangeState.CANCELLING), "then it goes back"

    def test_who_may_not_cancel_sees_what_it_would_do_and_is_refused(
        self, made: Callable[..., ChangeRequest], see: See, viewer: User, client_of: Callable[[User], Client]
    ) -> None:
        change = made(ChangeState.PAUSED)
        running(change)
        address = f"/changes/{change.pk}/run/cancel/"
        page = see(viewer, address)
        assert not page.has("cancel-form")
        assert page.tells(ClusterErrorCode.NEEDS_ROLE, "#cancel")
        assert all(role in page.words("cancel") for role in ("operator", "approver"))
        assert client_of(viewer).post(address, {"reason": TYPED}).status_code == 403
        assert ChangeRequest.objects.get(pk=change.pk).state == ChangeState.PAUSED


OTHERS = RefusedByKafka("It has other <replicas>.")


class TestEnds:
    @pytest.fixture
    def ended(self, made: Callable[..., ChangeRequest]) -> Callable[..., ChangeRequest]:
        def end(state: ChangeState, outcome: str = "", **fields: Any) -> ChangeRequest:
            change = made(state)
            rows = {RowState.DONE: 4, RowState.SKIPPED: 1}
            run = running(change, rows, ended_at=NOW - timedelta(minutes=2), outcome=outcome, **fields)
            Move.objects.filter(execution=run, state=RowState.SKIPPED).update(
                **reason_columns(RefusedByKafka("It has other <replicas>."))
            )
            own = Execution.objects.select_related("request", "cluster").get(pk=run.pk)
            own.report = report_of(own, state, outcome, NOW - timedelta(minutes=2))
            own.save(update_fields=["report"])
            return change

        return end

    @pytest.mark.parametrize(
        ("state", "outcome"),
        [
            (ChangeState.DONE, RunOutcome.CLEAN),
            (ChangeState.DONE, RunOutcome.OBLIGATIONS),
            (ChangeState.DONE, RunOutcome.EXCEPTIONS),
            (ChangeState.CANCELLED, ""),
            (ChangeState.FAILED, ""),
        ],
    )
    def test_the_review_says_how_it_ended_and_offers_the_way_back(
        self, state: ChangeState, outcome: str, ended: Callable[..., ChangeRequest], see: See, operator: User
    ) -> None:
        change = ended(state, outcome, started_at=NOW - timedelta(hours=1))
        ChangeRequest.objects.filter(pk=change.pk).update(state_since=NOW)
        page = see(operator, review(change))
        words = [change.get_state_display(), *([RunOutcome(outcome).label] if outcome else [])]
        assert page.texts("#ended .status-pill") == [", ".join(words)]
        assert page.first("#change-bar").get("data-outcome") == state
        assert ('data-state="ok"' in page.start_tag("ended")) == (outcome == RunOutcome.CLEAN)
        assert page.figures("#ended p") == ["02:03:04"]
        assert page.first("#verdict").get("data-checks") == "unknown"
        assert 'data-state="unknown"' in page.start_tag("verdict")  # a record, not what is so now
        for part in ("ended", "decide-body"):
            assert page.words("h-ended") in page.words(part)
            assert f'href="/changes/{change.pk}/report/"' in page.part(part)
        assert f'action="/changes/{change.pk}/rollback/"' in page.part("decide-body")

    def test_the_report_is_a_page_and_two_files(
        self, ended: Callable[..., ChangeRequest], see: See, viewer: User, client_of: Callable[[User], Client]
    ) -> None:
        change = ended(ChangeState.DONE, RunOutcome.EXCEPTIONS)
        page = see(viewer, f"/changes/{change.pk}/report/")
        assert page.figures("#h-report-end") == ["4", "5", "16.8 GB", "1 h 58 min"]
        assert page.texts("#otherwise .mono") == ["events-4"]
        assert "It has other <replicas>." in page.words("otherwise")
        assert not page.find(f"form[action=/changes/{change.pk}/rollback/]"), "a viewer proposes nothing"
        client = client_of(viewer)
        text = client.get(f"/changes/{change.pk}/report/report.md")
        assert text["Content-Disposition"] == f'attachment; filename="change-{change.pk}-report.md"'
        assert r"events\-4" in text.content.decode()
        assert r"\<replicas\>" in text.content.decode()
        stored_ = client.get(f"/changes/{change.pk}/report/report.json")
        assert stored_["Content-Disposition"] == f'attachment; filename="change-{change.pk}-report.json"'
        assert stored_.json()["change"] == change.pk

    def test_the_report_shows_brokers_before_planned_and_found(
        self, ended: Callable[..., ChangeRequest], see: See, viewer: User
    ) -> None:
        change = ended(ChangeState.DONE, RunOutcome.CLEAN)
        page = see(viewer, f"/changes/{change.pk}/report/")
        assert page.texts("#brokers .legend li")[:3] == ["before", "planned", "found"]
        assert page.figures("#found-sources")[-2:] == ["02:03:01", "02:03:01"]
        for row in page.find("#brokers tbody tr"):
            assert len(row.find(".bar-found")) == 3, "bytes, replicas and leaders"
        drained = page.first("[id=bars-3]")
        assert figures_of(drained.find("td")[2].text) == ["5", "0", "5"]
        assert figures_of(drained.find("svg")[1].get("aria-label")) == ["5", "0", "5"]
        assert figures_of(page.words("found-summary"))[1] == "6"
        assert "broker 3 has 5 more" in page.words("found-summary")

    def test_the_report_of_a_cluster_that_was_not_read_since__calls_what_was_found_unknown(
        self, ended: Callable[..., ChangeRequest], see: See, viewer: User
    ) -> None:
        change = ended(ChangeState.DONE, RunOutcome.CLEAN)
        before = NOW - timedelta(minutes=3)
        CollectorRun.objects.update(succeeded_at=before)
        BrokerWeights.objects.update(taken_at=before)
        page = see(viewer, f"/changes/{change.pk}/report/")
        assert not page.find("#brokers .bar-found")
        assert page.find("#brokers .bar-after")
        assert all("found unknown" in cell.text for cell in page.find("#brokers .bar-figures"))

    def test_the_way_back_is_one_click(
        self, ended: Callable[..., ChangeRequest], operator: User, client_of: Callable[[User], Client]
    ) -> None:
        change = ended(ChangeState.DONE, RunOutcome.CLEAN)
        client = client_of(operator)
        answer = client.post(f"/changes/{change.pk}/rollback/")
        draft = ChangeRequest.objects.get(origin=change)
        assert (answer.status_code, answer["Location"]) == (302, f"/changes/{draft.pk}/draft/plan/")
        page = Page(client.get(f"/changes/{draft.pk}/draft/what/").content.decode())
        assert f"#{change.pk}" in page.first("main .prose-strong").text
        assert page.figures("#left-rows") == ["1", "1"]

    def test_what_has_no_run_has_no_report(
        self, made: Callable[..., ChangeRequest], operator: User, client_of: Callable[[User], Client]
    ) -> None:
        change = made(ChangeState.APPROVED)
        client = client_of(operator)
        assert client.get(f"/changes/{change.pk}/report/report.md").status_code == 404
        refused = client.post(f"/changes/{change.pk}/rollback/")
        assert refused.status_code == 409
        assert Page(refused.content.decode()).refusal == ReassignmentErrorCode.RUN_NOT_ENDED
