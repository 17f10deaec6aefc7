"""Fail points: off unless asked for, and then a process dies at the first line of its file, once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from unittest import mock

import pytest
from django.core.exceptions import ImproperlyConfigured

from kafkadash.reassign.run import fail_points
from kafkadash.reassign.run.fail_points import POINTS, Armed, At, Call, named

CHECKOUT = Path(__file__).resolve().parents[3]
# What a step does, in its order; it says how far it came.
STEP = """
from kafkadash.reassign.run import fail_points
from kafkadash.reassign.run.fail_points import Call
fail_points.step_begins()
for call in (Call.THROTTLE_SET, Call.SUBMIT):
    with fail_points.around((call,)):
        print(call, "sent", flush=True)
    print(call, "answered", flush=True)
fail_points.answers_stored()
print("ended", flush=True)
"""


class Killed(BaseException):
    pass


def dies() -> None:
    raise Killed


def child(file: Path | None) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "FAIL_POINTS"}
    named_file = {} if file is None else {"FAIL_POINTS": str(file)}
    return subprocess.run(
        [sys.executable, "-c", STEP],
        cwd=CHECKOUT,
        env={**environment, **named_file, "LOG_LEVEL": "ERROR", "DJANGO_SETTINGS_MODULE": "kafkadash.settings"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def armed(tmp_path: Path, *points: str) -> Armed:
    file = tmp_path / "points"
    file.write_text("".join(f"{point}\n" for point in points), encoding="utf-8")
    return Armed(file, dies)


def using(points: Armed) -> AbstractContextManager[object]:
    return mock.patch.object(fail_points, "_armed", points)


def hits(tmp_path: Path) -> list[str]:
    file = tmp_path / "points.hits"
    return [line.split()[0] for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


def test_a_worker__started_again_and_again__dies_once_for_each_line_in_their_order(tmp_path: Path) -> None:
    file = tmp_path / "points"
    file.write_text("submit.after-call\n\nthrottle-set.before-call\nsubmit.after-row\n", encoding="utf-8")
    began = datetime.now(UTC)
    runs = [child(file) for _ in range(4)]

    assert [run.returncode for run in runs] == [-signal.SIGKILL] * 3 + [0], runs
    assert [run.stdout.splitlines()[-1:] for run in runs] == [["submit sent"], [], ["submit answered"], ["ended"]]
    assert file.read_text(encoding="utf-8") == ""
    written = [line.split() for line in (tmp_path / "points.hits").read_text(encoding="utf-8").splitlines()]
    assert [point for point, _, _ in written] == ["submit.after-call", "throttle-set.before-call", "submit.after-row"]
    assert all(began <= datetime.fromisoformat(at) <= datetime.now(UTC) for _, at, _ in written)
    assert len({int(pid) for _, _, pid in written}) == 3


def test_without_the_setting__nothing_is_armed() -> None:
    assert fail_points._armed is None, "tests run without it"
    assert child(None).stdout.splitlines()[-1] == "ended"
    with mock.patch.object(Armed, "_reached", side_effect=AssertionError):
        with fail_points.around((Call.SUBMIT,)):
            fail_points.step_begins()
        fail_points.answers_stored()


def test_a_file_that_is_not_there_or_names_no_point__is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"names .*points, which cannot be read: No such file"):
        Armed(tmp_path / "points")
    with pytest.raises(ImproperlyConfigured, match=r"points names no fail point: 'submit'. There are throttle-set"):
        armed(tmp_path, "submit.after-call", "submit")
    refused = child(tmp_path / "no-file")
    assert refused.returncode == 1
    assert "which cannot be read" in refused.stderr


def test_every_call_has_three_points() -> None:
    assert len(POINTS) == len(set(POINTS)) == 3 * len(Call)
    for needed in ("submit", "throttle-set", "throttle-clear", "cancel", "election"):
        assert {f"{needed}.{at}" for at in ("before-call", "after-call", "after-row")} <= set(POINTS)


def test_a_request_that_raises__was_not_answered(tmp_path: Path) -> None:
    with (
        using(armed(tmp_path, "cancel.after-call")),
        pytest.raises(OSError, match="away"),
        fail_points.around((Call.CANCEL,)),
    ):
        raise OSError("away")
    with using(armed(tmp_path, "cancel.after-row")):
        fail_points.answers_stored()
    assert hits(tmp_path) == []


def test_answers_that_an_earlier_step_could_not_store__are_not_those_of_this_one(tmp_path: Path) -> None:
    with using(armed(tmp_path, "submit.after-row")):
        with fail_points.around((Call.SUBMIT,)):
            pass
        fail_points.step_begins()
        fail_points.answers_stored()
        assert hits(tmp_path) == []
        with fail_points.around((Call.SUBMIT,)):
            pass
        with pytest.raises(Killed):
            fail_points.answers_stored()
    assert hits(tmp_path) == ["submit.after-row"]


def test_steps_of_two_runs_at_once__know_their_own_answers(tmp_path: Path) -> None:
    with using(armed(tmp_path, "election.after-row")):
        with fail_points.around((Call.ELECTION,)):
            pass
        other = Thread(target=fail_points.answers_stored)
        other.start()
        other.join(10)
        assert hits(tmp_path) == []
        with pytest.raises(Killed):
            fail_points.answers_stored()


def test_another_process_took_the_line__it_is_not_hit_twice(tmp_path: Path) -> None:
    one = armed(tmp_path, "submit.before-call", "submit.after-call")
    other = Armed(tmp_path / "points", dies)
    with using(one), pytest.raises(Killed):
        one.around((Call.SUBMIT,)).__enter__()
    with using(other), pytest.raises(Killed), fail_points.around((Call.SUBMIT,)):
        assert hits(tmp_path) == ["submit.before-call"]
    assert hits(tmp_path) == ["submit.before-call", named(Call.SUBMIT, At.AFTER_CALL)]
