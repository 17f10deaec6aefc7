"""Part "crowd": two beats, four workers and two webs are ended at random, PostgreSQL too, while people work.

A drain and its way back go on again and again. People read pages through both webs, comment, pause, resume and change
the throttle. Nobody may see an error of ours but "the database is away", what was accepted has its event exactly once,
and Kafka's own tools judge the runs.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import random
import signal
import threading
import time
import urllib.error
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kafkadash.devtools.playground.load import MIB, LoadTopic, load_topics
from tests.agreement.tools import Tools
from tests.proof.extent import Extent
from tests.smoke.browser import Browser
from tests.stack.stack import Shape, Stack

if TYPE_CHECKING:
    from tests.chaos.drain import People

SEED = 7
SHAPE = Shape(racks=("a", "a", "b"), controllers=1, webs=2, executes=2, beats=2)
PACE = {
    "INTERVAL_METADATA": "5",
    "INTERVAL_LOG_DIRS": "5",
    "INTERVAL_CONFIGS": "5",
    "INTERVAL_REASSIGNMENTS": "5",
    "LEASE_TTL": "15",
}
ENDED = ("beat", "beat-2", "web", "web-2", "worker-tick", "worker-collect", "worker-execute", "worker-execute-2")
EVERY_S = (5.0, 15.0)
AWAY_AT_MOST_S = 60.0
"""After PostgreSQL was killed pages may say for so long that it is away; the machine may be busy."""
READERS, WRITERS = 4, 3
ASKED_S = 60.0


@dataclass
class Crowd:
    """``accepted``: text that a person gave → the event that has to be there for it, exactly once."""

    stack: Stack
    until: float
    number: int = 0  # of the request that runs now
    away_until: float = 0.0
    accepted: dict[str, str] = field(default_factory=dict)
    unsure: set[str] = field(default_factory=set)
    statuses: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def wrong(self, text: str) -> None:
        self.problems.append(text)
        _say(f"WRONG: {text}")

    def met(self, status: int, where: str) -> bool:
        """Whether it was a page; an error is held against the product, unless PostgreSQL is known to be away."""
        self.statuses[str(status)] += 1
        if status >= 500 and not (status == 503 and time.monotonic() < self.away_until):
            self.wrong(f"{where} answered {status}")
        return status < 400


def prove(folder: Path, extent: Extent) -> bool:
    minutes = extent.minutes
    stack = Stack(folder / "stack", SHAPE, environment={"": PACE})
    try:
        stack.start()
        names = [f"crowd-{n}" for n in (1, 2)]
        load_topics(
            stack.playground.bootstrap, [LoadTopic(name, placement=[(1, 3)] * 2, fill_bytes=6 * MIB) for name in names]
        )
        stack.provision()
        os.environ.update(stack.addresses())
        os.environ |= {"LOG_LEVEL": "ERROR", "DJANGO_SETTINGS_MODULE": "kafkadash.settings"}
        import django

        django.setup()
        return _played(Crowd(stack, time.monotonic() + 60 * minutes), minutes)
    finally:
        stack.stop()


def _played(crowd: Crowd, minutes: float) -> bool:
    from tests.chaos.drain import People
    from tests.chaos.referee import Before, judge

    tools = Tools(crowd.stack.playground)
    before = Before.of(tools)
    people = People(lambda _: None)
    chance = random.Random(SEED)
    roles: list[Callable[[], None]] = [lambda: _ends_processes(crowd, random.Random(SEED), minutes)]
    roles += [lambda n=n: _reads(crowd, random.Random(n)) for n in range(READERS)]  # type: ignore[misc]
    roles += [lambda n=n: _writes(crowd, random.Random(100 + n), n) for n in range(WRITERS)]  # type: ignore[misc]
    threads = [threading.Thread(target=_guarded, args=(crowd, role), daemon=True) for role in roles]
    for thread in threads:
        thread.start()
    ran: list[int] = []
    try:
        _runs(crowd, people, ran, chance)
    except Exception as error:  # noqa: BLE001  whatever it was: said with the rest
        crowd.wrong(f"the runs ended: {type(error).__name__}: {error}")
    crowd.over.set()
    for thread in threads:
        thread.join(ASKED_S)
    for name in ENDED:
        crowd.stack.wait_serving(name)
    crowd.problems += judge(tools, ran, before)
    crowd.problems += _events_that_are_missing(crowd)
    for problem in crowd.problems:
        _say(f"WRONG: {problem}")
    _say(
        f"{len(ran)} runs; answers {dict(sorted(crowd.statuses.items()))}; {len(crowd.accepted)} deeds accepted, each "
        f"with its event; {sum(crowd.stack.starts(n) - 1 for n in ENDED)} processes ended, "
        f"{crowd.stack.starts('postgres') - 1} times PostgreSQL; {len(crowd.problems)} problems"
    )
    return not crowd.problems and bool(ran) and bool(crowd.accepted)


def _runs(crowd: Crowd, people: People, ran: list[int], chance: random.Random) -> None:
    """A drain, its way back, and again; the last of them ends though the time is over."""
    from kafkadash.changes.state_machine import OVER
    from tests.chaos.drain import POLL_S

    while time.monotonic() < crowd.until:
        number: int | None = people.drain(1)
        while number is not None:
            crowd.number = number
            ran.append(number)
            people.start(number)
            end = time.monotonic() + 600
            while people.tend(number) not in OVER:
                time.sleep(POLL_S)
                if time.monotonic() > end:
                    raise TimeoutError(people.stands(number))
            _say(people.stands(number))
            number = people.roll_back(number) if len(ran) % 2 else None
        time.sleep(chance.uniform(0, 1))


def _ends_processes(crowd: Crowd, chance: random.Random, minutes: float) -> None:
    half = crowd.until - 60 * minutes / 2
    struck = False
    while not crowd.over.wait(chance.uniform(*EVERY_S)):
        if not struck and time.monotonic() > half:
            struck = True
            crowd.away_until = time.monotonic() + AWAY_AT_MOST_S
            crowd.stack.kill("postgres")
            _say("PostgreSQL killed")
        name = chance.choice(ENDED)
        crowd.stack.kill(name, chance.choice((signal.SIGKILL, signal.SIGTERM)))


def _reads(crowd: Crowd, chance: random.Random) -> None:
    """Pages of a run and around it, through either web."""
    browser = None
    while not crowd.over.is_set():
        with _a_web_may_be_away(crowd):
            browser = browser or _signed_in(crowd, chance.choice(("web", "web-2")), "alice")
            pages = ["/", "/clusters/demo/", "/clusters/demo/reassignments/", "/changes/", "/clusters/demo/throttles/"]
            if crowd.number:
                pages += [f"/changes/{crowd.number}/{part}" for part in ("", "run/", "run/ledger/")]
            where = chance.choice(pages)
            try:
                browser.get(where)
                crowd.statuses["200"] += 1
            except urllib.error.HTTPError as refused:
                with refused:
                    crowd.met(refused.code, f"GET {where}")
        crowd.over.wait(chance.uniform(0.1, 0.6))


def _writes(crowd: Crowd, chance: random.Random, who: int) -> None:
    """Comments, pauses and another throttle, each with its own words; no rate twice, that would change nothing."""
    browser = None
    count = 0
    while not crowd.over.is_set():
        crowd.over.wait(chance.uniform(0.5, 2.0))
        if not crowd.number:
            continue
        count += 1
        words = f"Deed {count} of person {who}."
        path = f"/changes/{crowd.number}/"
        deed = chance.choice(("comment", "comment", "pause", "throttle"))
        with _a_web_may_be_away(crowd):
            browser = browser or _signed_in(crowd, chance.choice(("web", "web-2")), "alice")
            _does(crowd, browser, path, deed, words, chance)


def _does(crowd: Crowd, browser: Browser, path: str, deed: str, words: str, chance: random.Random) -> None:
    page, action, fields, event = {
        "comment": (path, "/comment/#comments", {"text": words}, "change.commented"),
        "pause": (f"{path}run/", "/pause/", {"pause_reason": words}, "change.paused"),
        "throttle": (
            f"{path}run/",
            "/run/throttle/",
            {"rate": f"{chance.uniform(0.5, 3):.5f}", "reason": words},
            "change.throttle_changed",
        ),
    }[deed]
    try:
        form = browser.form(page, action)
    except RuntimeError:
        return  # not now: it has ended, or is paused
    except urllib.error.HTTPError as refused:
        with refused:
            crowd.met(refused.code, f"GET {page}")
        return
    crowd.unsure.add(words)
    answer = browser.send(form, **fields)
    crowd.met(answer.status, f"POST {form.action}")
    if answer.status == http.client.OK and _page(answer.path) != _page(form.action):
        crowd.accepted[words] = event
        crowd.unsure.discard(words)
    elif answer.status < 500:
        crowd.unsure.discard(words)


def _page(address: str) -> str:
    return address.split("#", maxsplit=1)[0].split("?", maxsplit=1)[0]


def _signed_in(crowd: Crowd, web: str, name: str) -> Browser:
    browser = Browser(crowd.stack.url_of(web))
    browser.sign_in(name, crowd.stack.password(name))
    return browser


@contextlib.contextmanager
def _a_web_may_be_away(crowd: Crowd) -> Iterator[None]:
    """A process that was ended answers nobody for a while; its proxy would ask the other one."""
    try:
        yield
    except urllib.error.HTTPError as refused:
        with refused:
            crowd.met(refused.code, "sign-in")
    except (OSError, http.client.HTTPException):
        crowd.statuses["no answer"] += 1
        crowd.over.wait(1.0)


def _guarded(crowd: Crowd, role: Callable[[], None]) -> None:
    try:
        role()
    except Exception as error:  # noqa: BLE001  whatever it was: said with the rest
        crowd.wrong(f"{type(error).__name__}: {error}")


def _events_that_are_missing(crowd: Crowd) -> list[str]:
    """Or twice there, also of deeds of which nobody knows whether they were accepted."""
    from kafkadash.accounts.models import AuditEvent
    from kafkadash.changes.models import Comment

    found: Counter[str] = Counter(AuditEvent.objects.exclude(reason="").values_list("reason", flat=True))
    found.update(Comment.objects.values_list("text", flat=True))
    said = [f"{words} ({event}) was accepted and is not there" for words, event in crowd.accepted.items()
            if not found[words]]  # fmt: skip
    for comment in Comment.objects.all():
        events = AuditEvent.objects.filter(action="change.commented", after__comment=comment.pk).count()
        if events != 1:
            said.append(f"the comment {comment.text} has {events} events")
    deeds = {*crowd.accepted, *crowd.unsure}
    return said + [f"{words} is there {found[words]} times" for words in deeds if found[words] > 1]


def _say(text: str) -> None:
    print(f"  {text}", flush=True)  # noqa: T201
