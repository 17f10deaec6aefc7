"""How a run ended: on its review, in its report, and the way back from there."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.changes.models import ChangeRequest
from kafkadash.domain.executor_state import State as RowState
from kafkadash.domain.reasons import reason_columns
from kafkadash.domain.row_reasons import RefusedByKafka
from kafkadash.domain.workflow_states import State
from kafkadash.reassign.models import Execution, Move, Outcome
from kafkadash.reassign.run.report import report_of
from tests.factories import NOW
from tests.pages.conftest import Page
from tests.pages.drained import See, demo, made, review, see
from tests.reassign.runs import running

__all__ = ["demo", "made", "see"]

OTHERS = RefusedByKafka("It has other <replicas>.")


class TestEnds:
    @pytest.fixture
    def ended(self, made: Callable[..., ChangeRequest]) -> Callable[..., ChangeRequest]:
        def end(state: State, outcome: str = "", **fields: Any) -> ChangeRequest:
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
        ("state", "outcome", "pill", "sentence"),
        [
            (State.DONE, Outcome.CLEAN, "Done, clean", "as planned, and nothing of our throttles is left."),
            (State.DONE, Outcome.OBLIGATIONS, "Done, with obligations", "could not be taken away yet"),
            (State.DONE, Outcome.EXCEPTIONS, "Done, with exceptions", "Some rows did not end as planned"),
            (State.CANCELLED, "", "Cancelled", "What was done by then stays done; what was in flight went back."),
            (State.FAILED, "", "Failed", "What was done by then stays done. The report names every row."),
        ],
    )
    def test_the_review_says_how_it_ended_and_offers_the_way_back(
        self,
        state: State,
        outcome: str,
        pill: str,
        sentence: str,
        ended: Callable[..., ChangeRequest],
        see: See,
        operator: User,
    ) -> None:
        change = ended(state, outcome, started_at=NOW - timedelta(hours=1))
        ChangeRequest.objects.filter(pk=change.pk).update(state_since=NOW)
        page = see(operator, review(change))
        assert page.words("ended").startswith(f"{pill} ")
        assert ('data-state="ok"' in page.start_tag("ended")) == (outcome == Outcome.CLEAN)
        assert page.words("ended").endswith("It ended 02:03:04 . Report")
        assert page.words("verdict").startswith("Medium risk Before it began: not checked against the cluster yet.")
        assert 'data-state="unknown"' in page.start_tag("verdict"), "a record, not what is so now"
        for part in ("ended", "decide-body"):
            assert sentence in page.words(part)
            assert f'href="/changes/{change.pk}/report/"' in page.part(part)
        assert f'action="/changes/{change.pk}/rollback/"' in page.part("decide-body")

    def test_the_report_is_a_page_and_two_files(
        self, ended: Callable[..., ChangeRequest], see: See, viewer: User, client_of: Callable[[User], Client]
    ) -> None:
        change = ended(State.DONE, Outcome.EXCEPTIONS)
        page = see(viewer, f"/changes/{change.pk}/report/")
        assert "4 of 5 partitions moved, at least 16.8 GB copied, in 1 h 58 min." in page.words("report-end")
        assert "events-4 skipped: It has other <replicas>." in page.words("otherwise")
        assert "Propose the way back" not in page.text, "a viewer proposes nothing"
        client = client_of(viewer)
        text = client.get(f"/changes/{change.pk}/report/report.md")
        assert text["Content-Disposition"] == f'attachment; filename="change-{change.pk}-report.md"'
        assert r"events\-4: skipped. It has other \<replicas\>." in text.content.decode()
        stored_ = client.get(f"/changes/{change.pk}/report/report.json")
        assert stored_["Content-Disposition"] == f'attachment; filename="change-{change.pk}-report.json"'
        assert stored_.json()["change"] == change.pk

    def test_the_way_back_is_one_click(
        self, ended: Callable[..., ChangeRequest], operator: User, client_of: Callable[[User], Client]
    ) -> None:
        change = ended(State.DONE, Outcome.CLEAN)
        client = client_of(operator)
        answer = client.post(f"/changes/{change.pk}/rollback/")
        draft = ChangeRequest.objects.get(origin=change)
        assert (answer.status_code, answer["Location"]) == (302, f"/changes/{draft.pk}/draft/plan/")
        page = Page(client.get(f"/changes/{draft.pk}/draft/what/").content.decode())
        assert f"Give the partitions that #{change.pk} moved their original replicas back" in page.text
        assert f"1 partition of #{change.pk} that was not moved stays as it is: 1 skipped." in page.text

    def test_what_has_no_run_has_no_report(
        self, made: Callable[..., ChangeRequest], operator: User, client_of: Callable[[User], Client]
    ) -> None:
        change = made(State.APPROVED)
        client = client_of(operator)
        assert client.get(f"/changes/{change.pk}/report/report.md").status_code == 404
        refused = client.post(f"/changes/{change.pk}/rollback/")
        assert refused.status_code == 409
        assert "nothing to take back before its run has ended" in Page(refused.content.decode()).words("refused")
