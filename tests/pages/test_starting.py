"""A change is started, steered and cancelled from its pages; each says where it stands and what a deed would do."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.changes.models import ChangeRequest, Policy
from kafkadash.clusters.models import Cluster
from kafkadash.domain.executor_state import State as RowState
from kafkadash.domain.messages import reason_text
from kafkadash.domain.reasons import pack_reasons, reason_columns
from kafkadash.domain.row_reasons import BrokerFenced
from kafkadash.domain.run_reasons import ClusterReadOnly, ClusterUnreadable
from kafkadash.domain.throttles import LEADER_RATE
from kafkadash.domain.workflow_states import State
from kafkadash.reassign.models import Execution, ThrottleEntry
from tests.factories import NOW
from tests.pages.conftest import Page
from tests.pages.drained import TYPED, See, demo, made, review, see
from tests.reassign.runs import running

__all__ = ["demo", "made", "see"]


class TestStart:
    def test_the_page_says_what_a_start_does_and_starts(
        self, made: Callable[..., ChangeRequest], see: See, operator: User, client_of: Callable[[User], Client]
    ) -> None:
        change = made(State.APPROVED)
        page = see(operator, review(change))
        assert "Start…" in page.words("change-bar")
        words = page.words("start-form")
        assert "It moves 5 partitions with at most 60 MB/s into and out of each broker" in words
        form = {"key": f"{change.pk}-1-{operator.pk}", "round": "1"}
        assert all(f'name="{name}" value="{value}"' in page.part("start-form") for name, value in form.items())
        client = client_of(operator)
        for _ in range(2):
            answer = client.post(f"/changes/{change.pk}/start/", form)
            assert (answer.status_code, answer["Location"]) == (302, f"/changes/{change.pk}/run/")
        assert AuditEvent.objects.filter(action="change.started").count() == 1
        assert ChangeRequest.objects.get(pk=change.pk).state == State.QUEUED

    def test_a_key_that_no_database_takes__starts_it(
        self, made: Callable[..., ChangeRequest], operator: User, client_of: Callable[[User], Client]
    ) -> None:
        change = made(State.APPROVED)
        answer = client_of(operator).post(f"/changes/{change.pk}/start/", {"key": "a\0b", "round": "1"})
        assert (answer.status_code, answer["Location"]) == (302, f"/changes/{change.pk}/run/")

    def test_whoever_may_not_start_reads_who_may(
        self, made: Callable[..., ChangeRequest], see: See, approver: User
    ) -> None:
        page = see(approver, review(made(State.APPROVED)))
        assert not page.has("start-form")
        assert "It waits to be started, by somebody with the role operator on demo." in page.words("decide-body")

    def test_old_checks_turn_the_button_off_with_the_reason(
        self, made: Callable[..., ChangeRequest], see: See, operator: User
    ) -> None:
        page = see(operator, review(made(State.APPROVED, checked_at=NOW - timedelta(minutes=5))))
        assert "Starting needs checks on data younger than 2 min" in page.words("start-off")
        assert 'type="submit">Start' not in page.part("start-form")

    def test_it_says_behind_whom_it_would_wait(
        self, made: Callable[..., ChangeRequest], see: See, operator: User
    ) -> None:
        first = made(State.EXECUTING)
        running(first, {RowState.MOVING: 1})
        page = see(operator, review(made(State.APPROVED)))
        assert f"It waits behind #{first.pk}: one reassignment runs on demo at a time." in page.words("start-form")


def breakable(change: ChangeRequest) -> ChangeRequest:
    Policy.objects.create(cluster=change.cluster, break_glass=True)
    return change


class TestBreakGlass:
    def test_it_is_an_administrators_loud_and_with_a_reason(
        self, made: Callable[..., ChangeRequest], see: See, admin: User, client_of: Callable[[User], Client]
    ) -> None:
        change = breakable(made(State.PROPOSED))
        page = see(admin, review(change))
        assert "though 1 approval is missing" in page.words("break-glass-form")
        client, form = client_of(admin), {"digest": change.digest, "round": "1"}
        refused = client.post(f"/changes/{change.pk}/break-glass/", form)
        assert refused.status_code == 400
        assert "Say why this cannot wait" in Page(refused.content.decode()).words("glass-reason-error")
        assert client.post(f"/changes/{change.pk}/break-glass/", {**form, "glass_reason": TYPED}).status_code == 302
        page = see(admin, review(change))
        assert f"{admin.username} started this without its approvals." in page.words("broke-glass")
        assert "without its approvals" in page.words("change-bar")
        assert TYPED in page.words("audit")

    def test_nobody_else_sees_it_and_a_policy_forbids_it(
        self, made: Callable[..., ChangeRequest], see: See, operator: User, approver: User, admin: User
    ) -> None:
        change = breakable(made(State.PROPOSED))
        for user in (operator, approver):
            assert not see(user, review(change)).has("break-glass")
        Policy.objects.all().delete()
        assert not see(admin, review(change)).has("break-glass")

    def test_another_content_is_refused_and_what_was_typed_is_kept(
        self, made: Callable[..., ChangeRequest], admin: User, client_of: Callable[[User], Client]
    ) -> None:
        change = breakable(made(State.PROPOSED))
        form = {"digest": "0" * 64, "round": "1", "glass_reason": TYPED}
        answer = client_of(admin).post(f"/changes/{change.pk}/break-glass/", form)
        assert answer.status_code == 409
        page = Page(answer.content.decode())
        assert "changed while you read it" in page.words("refused")
        assert TYPED in page.text


class TestQueue:
    def test_it_says_behind_whom_it_waits(self, made: Callable[..., ChangeRequest], see: See, viewer: User) -> None:
        first, second, third = made(State.EXECUTING), made(State.QUEUED), made(State.QUEUED)
        running(first, {RowState.MOVING: 1})
        for minutes, change in ((9, second), (5, third)):
            running(change, {}, started_at=None, queued_at=NOW - timedelta(minutes=minutes), progress=b"")
        assert f"It waits behind #{first.pk} , #{second.pk} : one reassignment" in see(viewer, review(third)).words(
            "queued"
        )
        assert f"waits behind #{first.pk}" in see(viewer, review(second)).words("change-bar")
        rows = see(viewer, "/changes/?show=running")
        assert f"#{first.pk} and #{second.pk}" in rows.words(f"change-{third.pk}")
        order = [rows.html.index(f'id="change-{change.pk}"') for change in (first, third, second)]
        assert order == sorted(order), "what runs stands above what is queued"
        assert "50.9 %" in rows.words(f"change-{first.pk}")

    def test_what_blocks_it_is_said_and_that_nothing_was_sent(
        self, made: Callable[..., ChangeRequest], see: See, viewer: User
    ) -> None:
        change = made(State.QUEUED)
        why = BrokerFenced(6)
        running(
            change,
            {},
            started_at=None,
            blocked_at=NOW - timedelta(minutes=2),
            progress=b"",
            **reason_columns(why, "blocked"),
        )
        words = see(viewer, review(change)).words("blocked")
        assert reason_text(why) in words
        assert "It stays queued and approved, and is tried again by itself" in words
        assert "Nothing was sent to Kafka." in words
        assert f"Blocked {reason_text(why)}" in see(viewer, "/changes/?show=running").words(f"change-{change.pk}")


class TestRuns:
    def test_it_leads_to_the_run(self, made: Callable[..., ChangeRequest], see: See, viewer: User) -> None:
        change = made(State.EXECUTING)
        running(change, stuck_rows=1)
        page = see(viewer, review(change))
        assert "It runs. 50.9 % done at ≈ 03:35" in page.words("running")
        assert "1 stuck" in page.words("running")
        assert f'href="/changes/{change.pk}/run/"' in page.part("running")
        assert "Plan and review" in page.words("change-bar")
        assert not page.has("steer-bar"), "a viewer steers nothing"

    def test_old_figures_say_of_when_they_are_and_promise_no_end(
        self, made: Callable[..., ChangeRequest], see: See, viewer: User
    ) -> None:
        change = made(State.EXECUTING)
        then = NOW - timedelta(minutes=4)
        running(change, looked_at=then, progress_at=then)
        for words in (
            see(viewer, review(change)).words("running"),
            see(viewer, "/changes/?show=running").words(f"change-{change.pk}"),
        ):
            assert "figures of 01:59:04 50.9 %" in words
            assert "done at" not in words

    def test_it_is_paused_and_resumed_from_the_bar(
        self, made: Callable[..., ChangeRequest], see: See, operator: User, client_of: Callable[[User], Client]
    ) -> None:
        change = made(State.EXECUTING)
        running(change)
        client = client_of(operator)
        for verb, reason, state in (("pause", " ", State.PAUSED), ("resume", "p99", State.EXECUTING)):
            answer = client.post(f"/changes/{change.pk}/{verb}/", {"pause_reason": reason})
            assert (answer.status_code, answer["Location"]) == (302, f"/changes/{change.pk}/run/")
            assert ChangeRequest.objects.get(pk=change.pk).state == state
        assert AuditEvent.objects.get(action="change.paused").reason == ""

    def test_each_form_that_steers_says_on_which_page_it_stands(
        self, made: Callable[..., ChangeRequest], see: See, operator: User
    ) -> None:
        change = made(State.PAUSED)
        running(change)
        for address, on in ((f"{review(change)}run/", "run"), (review(change), "")):
            page = see(operator, address)
            assert all(f'name="on" value="{on}"' in page.part(form) for form in ("steer-bar", "steer-phone"))

    @pytest.mark.parametrize(("on", "has"), [("run", "throttle"), ("", "decide")])
    def test_resuming_without_a_reason_is_refused_where_it_was_asked(
        self, on: str, has: str, made: Callable[..., ChangeRequest], operator: User, client_of: Callable[[User], Client]
    ) -> None:
        change = made(State.PAUSED)
        running(change)
        answer = client_of(operator).post(f"/changes/{change.pk}/resume/", {"pause_reason": " ", "on": on})
        assert answer.status_code == 400
        page = Page(answer.content.decode())
        assert page.has(has)
        assert "Say why it may go on" in page.words("resume-reason-bar-error")
        assert " open" in page.start_tag("steer-bar")
        assert f"key=change:{change.pk}" in page.html
        assert ChangeRequest.objects.get(pk=change.pk).state == State.PAUSED

    def test_a_cancel_is_shown_before_it_is_confirmed(
        self,
        made: Callable[..., ChangeRequest],
        see: See,
        approver: User,
        operator: User,
        client_of: Callable[[User], Client],
    ) -> None:
        change = made(State.EXECUTING)
        running(change, {RowState.MOVING: 2, RowState.DONE: 3, RowState.PENDING: 4})
        address = f"/changes/{change.pk}/run/cancel/"
        page = see(approver, address)
        assert "2 moves in flight return to their original replicas" in page.words("cancel")
        assert "3 done moves stay where they are" in page.words("cancel")
        assert "It goes back to 3, 2, 1, in that order." in page.words("goes-back")
        one = see(operator, f"/changes/{change.pk}/run/row/?topic=events&partition=0")
        assert "It goes back to 3, 2, 1, in that order." in one.words("goes-back")
        client = client_of(approver)
        refused = client.post(address, {"reason": ""})
        assert refused.status_code == 400
        assert "Say why it is cancelled" in Page(refused.content.decode()).words("cancel-reason-error")
        assert client.post(address, {"reason": TYPED}).status_code == 302
        assert ChangeRequest.objects.get(pk=change.pk).state == State.CANCELLING
        again = client.post(address, {"reason": TYPED})
        assert again.status_code == 409
        assert "cancelled it on" in Page(again.content.decode()).words("refused")
        assert client.get(address).status_code == 302, "there is nothing to cancel any more"

    def test_an_administrator_gives_up_what_cannot_be_cancelled(
        self,
        made: Callable[..., ChangeRequest],
        see: See,
        admin: User,
        operator: User,
        client_of: Callable[[User], Client],
    ) -> None:
        change = made(State.CANCELLING)
        run = running(change, {RowState.MOVING: 2, RowState.DONE: 3, RowState.PENDING: 4})
        address, of_run = f"/changes/{change.pk}/run/give-up/", f"/changes/{change.pk}/run/"
        page = see(admin, address)
        assert not page.has("give-up-form")
        assert "may still answer, and then the cancel ends by itself" in page.words("give-up")
        client = client_of(admin)
        early = client.post(address, {"reason": TYPED})
        assert early.status_code == 409
        assert "has not answered for 10 minutes, and 20 times in a row." in Page(early.content.decode()).words(
            "refused"
        )
        assert "Give it up…" not in see(admin, of_run).text

        silent = timezone.now() - timedelta(minutes=11)
        no_answer = reason_columns(ClusterUnreadable("No broker answers."), "error")
        Execution.objects.filter(pk=run.pk).update(failures=20, looked_at=silent, **no_answer)
        ThrottleEntry.objects.create(execution=run, resource="broker", name="3", key=LEADER_RATE, state="set")
        assert "An administrator may give it up. Give it up…" in see(operator, of_run).text
        other = see(operator, address)
        assert not other.has("give-up-form")
        assert "this needs the role admin" in other.words("give-up")
        assert client_of(operator).post(address, {"reason": TYPED}).status_code == 403
        said = see(admin, address).words("give-up")
        assert "2 moves in flight, with an end that nobody knows: Kafka may go on with them." in said
        assert "4 waiting moves, never to begin." in said
        assert "1 throttle as obligations of this run" in said
        refused = client.post(address, {"reason": " "})
        assert refused.status_code == 400
        assert "Say why it is given up" in Page(refused.content.decode()).words("give-up-reason-error")

        assert client.post(address, {"reason": TYPED}).status_code == 302
        assert ChangeRequest.objects.get(pk=change.pk).state == State.FAILED
        assert "taken away yet" in see(operator, of_run).text
        again = client.post(address, {"reason": TYPED})
        assert again.status_code == 409
        assert "gave it up on" in Page(again.content.decode()).words("refused")
        assert client.get(address).status_code == 302

    @pytest.mark.parametrize(
        ("state", "goes"),
        [
            (State.EXECUTING, "goes on to its end"),
            (State.PAUSED, "goes on to its end"),
            (State.CANCELLING, "goes back, as it was cancelled"),
        ],
    )
    def test_on_a_cluster_that_became_read_only_it_says_what_is_still_sent(
        self, state: State, goes: str, made: Callable[..., ChangeRequest], see: See, viewer: User
    ) -> None:
        change = made(state)
        running(change, held=[])
        address, told = f"/changes/{change.pk}/run/", "The throttles that this run set there are still taken away."
        assert told not in see(viewer, address).text
        Cluster.objects.update(read_only=True)
        Execution.objects.update(
            held=pack_reasons([ClusterReadOnly(change.cluster.name)] if state is State.EXECUTING else [])
        )
        text = see(viewer, address).text
        assert f"is read-only now: nothing more is submitted. What is in flight {goes}. {told}" in text
        assert text.count("nothing more is submitted") == 1

    def test_who_may_not_cancel_sees_what_it_would_do_and_is_refused(
        self, made: Callable[..., ChangeRequest], see: See, viewer: User, client_of: Callable[[User], Client]
    ) -> None:
        change = made(State.PAUSED)
        running(change)
        address = f"/changes/{change.pk}/run/cancel/"
        page = see(viewer, address)
        assert not page.has("cancel-form")
        assert "this needs the role operator or approver" in page.words("cancel")
        assert client_of(viewer).post(address, {"reason": TYPED}).status_code == 403
        assert ChangeRequest.objects.get(pk=change.pk).state == State.PAUSED
