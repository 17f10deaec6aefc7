"""Part "attacks": hostile clients, failures and people on a running product, and what its pages say of them.

Headlines of pages are read 10, 30 and 60 s after each event and printed as a table. A page that has to tell of the
event holds if its headline is another than before it from 30 s on; how much sooner it is, ``make bench-freshness``
measures. Three controllers, five brokers in three racks, the product at its usual pace.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from html import unescape
from http.cookies import SimpleCookie
from pathlib import Path
from typing import TYPE_CHECKING

from kafkadash.devtools.playground.load import MIB, LoadTopic, load_topics
from kafkadash.execution.worker.broker_absences import read_looks
from tests.agreement.tools import Tools
from tests.hostile_member import HOSTILE_ASSIGNMENTS, hostile_member
from tests.proof.extent import Extent
from tests.smoke.browser import Answer, Browser, forms_of, heading_of, read_frames, watch, words_of
from tests.stack.green_pages import GreenPages
from tests.stack.stack import CHECKOUT, Shape, Stack
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.chaos.drain import People

AFTER_S = (10, 30, 60)
TOLD_S = 30
STARTS_S, ENDS_S, BROKER_AWAY_S = 120.0, 300.0, 35.0
RACKS = ("a", "a", "b", "b", "c")
TOPIC, MOVING, NARROW = "orders", "moving", "narrow"
RATE = 4_000_000
BOARD, GROUPS = "/", "/clusters/demo/groups/"
OVERVIEW, QUORUM, THROTTLES = "/clusters/demo/", "/clusters/demo/quorum/", "/clusters/demo/throttles/"
OF_BROKERS = (
    BOARD,
    OVERVIEW,
    "/clusters/demo/brokers/",
    "/clusters/demo/topics/",
    f"/clusters/demo/topics/{TOPIC}/",
)
OF_QUORUM = (*OF_BROKERS, "/clusters/demo/racks/", QUORUM, "/clusters/demo/reassignments/")
OWNER_UNKNOWN = f"{THROTTLES}?need=foreign"
FORGED = "forged by whoever reaches Redis"
WRONG_TRIES = 6
MOST_WORDS = 400


@dataclass
class Findings:
    """Rows of the table, and what does not hold."""

    rows: list[tuple[str, str, str]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def add(self, event: str, page: str, said: str) -> None:
        self.rows.append((event, page, said))
        print(f"  | {event} | {page} | {said} |", flush=True)  # noqa: T201

    def demand(self, true: object, otherwise: str) -> None:
        if not true:
            self.wrong.append(otherwise)
            print(f"  WRONG: {otherwise}", flush=True)  # noqa: T201


def prove(folder: Path, extent: Extent) -> bool:
    """Once, however many rounds are asked for: this process has one database."""
    del extent
    stack = Stack(folder / "stack", Shape(RACKS))
    try:
        with stack:
            placement = [[1, 3, 5], [2, 4, 5], [3, 1, 5], [4, 2, 5]]
            topics = [
                LoadTopic(TOPIC, placement=placement, fill_bytes=4 * MIB),
                LoadTopic(MOVING, placement=[[1, 3]], fill_bytes=80 * MIB),
                LoadTopic(NARROW, placement=[[1, 2]], fill_bytes=4 * MIB),
            ]
            load_topics(stack.playground.bootstrap, topics)
            with hostile_member(stack.playground.bootstrap.split(",")[0], "nobody", b""):
                pass  # Kafka makes its topic of groups for the first one
            stack.provision()
            os.environ.update(stack.addresses())
            os.environ |= {"LOG_LEVEL": "ERROR", "DJANGO_SETTINGS_MODULE": "kafkadash.settings"}
            import django

            django.setup()
            found = _Attacks(stack, Tools(stack.playground)).play()
    finally:
        stack.stop()
    print(f"  {len(found.wrong)} of it does not hold" if found.wrong else "  all of it holds", flush=True)  # noqa: T201
    return not found.wrong


class _Attacks:
    def __init__(self, stack: Stack, tools: Tools) -> None:
        self._stack, self._tools = stack, tools
        self._found = Findings()
        self._alice, self._admin = Browser(stack.url), Browser(stack.url)
        self._alice.sign_in("alice", stack.password("alice"))
        self._admin.sign_in("admin", stack.password("admin"))
        self._green = GreenPages(self._alice, tools, OF_QUORUM)

    def play(self) -> Findings:
        self._green.wait_until_green()
        for path, said in self._green.headlines.items():
            self._found.add("nothing yet", path, said)
        self._hostile_clients()
        self._forged_frame()
        self._a_run_whose_target_dies()
        self._a_way_back_to_fewer_racks()
        self._broker_dies()
        self._broker_never_answers()
        self._quorum_is_lost()
        self._one_cluster_twice()
        self._person_with_two_roles()
        self._strangers()
        self._wrong_passwords()
        return self._found

    # --- clients of Kafka

    def _hostile_clients(self) -> None:
        """Three groups: a decoder that would read for minutes, a NUL in a topic's name, a slash in one."""
        address = self._stack.playground.bootstrap.split(",")[0]
        groups = [f"hostile-{number}" for number in range(len(HOSTILE_ASSIGNMENTS))]
        with ExitStack() as members:
            for group, assignment in zip(groups, HOSTILE_ASSIGNMENTS, strict=True):
                members.enter_context(hostile_member(address, group, assignment))
            pages = [f"{GROUPS}{group}/" for group in groups]
            self._follow("C1, H1: three groups with hostile assignments", read=[GROUPS, *pages], kept=OF_QUORUM)
            for group, page in zip(groups, pages, strict=True):
                self._found.demand(self._alice.headline(page), f"{page} does not open")
                self._found.demand(group in self._alice.get(GROUPS), f"{group} is not listed")

    # --- failures of Kafka

    def _broker_dies(self) -> None:
        with self._stack.away("kafka-2"):
            self._follow("D7: kill -9 of broker 2", told=OF_BROKERS, read=["/clusters/demo/racks/"])
        self._green.wait_until_green()

    def _broker_never_answers(self) -> None:
        """SIGSTOP: the kernel accepts connections, and nobody reads them."""
        self._stack.freeze("kafka-4", ENDS_S)
        try:
            self._follow("broker 4 accepts and never answers", told=OF_BROKERS)
        finally:
            self._stack.thaw("kafka-4")
        self._green.wait_until_green()

    def _quorum_is_lost(self) -> None:
        cluster = self._stack.playground.cluster
        controllers = [node.name for node in cluster.nodes if node not in cluster.brokers]
        with self._stack.away(*controllers[:2]):
            self._follow("D2: kill -9 of 2 of 3 controllers", told=OF_QUORUM)
            with self._stack.away("kafka-2"):
                self._follow("D2: and of broker 2 then", told=OF_QUORUM)
        self._green.wait_until_green()

    # --- runs

    def _a_run_whose_target_dies(self) -> None:
        """Broker 4 is away for 35 s in the middle; at its end nothing is left, and nothing of it is somebody's."""
        from kafkadash.changes.models import ChangeRequest
        from kafkadash.changes.state_machine import OVER
        from kafkadash.execution.models import Execution, ThrottleEntry

        program = [sys.executable, "-m", "tests.chaos.second_installation", MOVING, "0", "4,1"]
        log = self._stack.folder / "logs" / "move.log"
        with log.open("w", encoding="utf-8") as out:
            environment = self._stack.environment_of("command")
            people = subprocess.Popen(program, env=environment, cwd=CHECKOUT, stdout=out, stderr=out)
        try:
            wait_until(self._tools.moves, f"a move is under way (see {log})", STARTS_S)
            change = ChangeRequest.objects.get()
            page = f"/changes/{change.pk}/run/"
            with self._stack.away("kafka-4"):
                away_until = time.monotonic() + BROKER_AWAY_S
                self._follow("D3, D13: kill -9 of the target of a run", read=[page], after_s=(10, 30))
                _pause_until(away_until)
            self._follow("D3, D13: the target is back", read=[page])
            wait_until(lambda: ChangeRequest.objects.get().state in OVER, f"the run is over (see {log})", ENDS_S)
            self._follow("D8: the run has ended", read=[f"/changes/{change.pk}/report/", THROTTLES, OWNER_UNKNOWN])
            self._found.demand(people.wait(ENDS_S) == 0, f"the run did not end well, see {log}")
        finally:
            people.kill()
            people.wait()
        looks = read_looks(Execution.objects.get().absences)
        absences = looks.absences if looks else ()
        self._found.add("D3: absences that the run stored", "", ", ".join(str(each.broker) for each in absences))
        self._found.demand(any(each.broker == 4 for each in absences), "the run did not see broker 4 away")
        self._found.demand(not ThrottleEntry.objects.exclude(state="cleared").exists(), "a throttle is owed")
        self._found.demand('id="throttle-' not in self._alice.get(OWNER_UNKNOWN), "a throttle of ours is somebody's")

    def _a_way_back_to_fewer_racks(self) -> None:
        """A move out of one rack is rolled back into it: that is always possible, and the approver sees it."""
        from tests.chaos.drain import People

        people = People(lambda words: print(f"  {words}", flush=True))  # noqa: T201
        number = people.move(NARROW, 0, (1, 3), RATE)
        self._run_to_its_end(people, number, (1, 3))
        back = people.roll_back(number)
        self._found.demand(back, "D5: there is no way back")
        if back:
            self._run_to_its_end(people, back, (1, 2))

    def _run_to_its_end(self, people: People, number: int, expected: tuple[int, ...]) -> None:
        from kafkadash.changes.state_machine import OVER, ChangeState
        from tests.chaos.drain import state_of

        people.start(number)
        wait_until(lambda: people.tend(number) in OVER, f"#{number} is over", ENDS_S)
        there = self._tools.topics("--topic", NARROW)[NARROW].partitions[0].replicas
        self._found.add("D5: out of a rack, and back", f"/changes/{number}/", f"{state_of(number)}, on {there}")
        self._found.demand((state_of(number), there) == (ChangeState.DONE, expected), f"D5: {people.stands(number)}")

    # --- administrators

    def _one_cluster_twice(self) -> None:
        from kafkadash.clusters.models import Cluster

        form = self._admin.form("/settings/register/", "/settings/register/")
        servers = self._stack.playground.bootstrap
        sent = self._admin.send(form, name="double", bootstrap_servers=servers, security_protocol="PLAINTEXT")
        self._found.add("D1: the same cluster registered again", "/settings/register/", f"{sent.status} {sent.path}")
        self._follow("D1: the same cluster registered again", read=["/clusters/double/", BOARD])
        double = Cluster.objects.get(slug="double")
        self._found.demand(double.same_as_id, "the double is taken for another cluster")
        draft = self._alice.form("/changes/new/", "/changes/new/")
        sent = self._alice.send(draft, cluster="double", mode="drain", brokers="2")
        self._found.add("D1: a change of the double", "/changes/new/", f"{sent.status} {sent.path}")
        self._found.demand(not double.changes.exists(), "a change of the double can be drafted")

    def _person_with_two_roles(self) -> None:
        from kafkadash.clusters.models import ClusterRole

        page = "/settings/clusters/demo/roles/"
        for role in ("operator", "approver"):
            sent = self._admin.send(self._admin.form(page, page), user="admin", role=role)
            self._found.add(f"H3: an administrator gives himself {role}", page, _said(sent))
        self._found.demand(not ClusterRole.objects.filter(user__username="admin").exists(), "admin gave himself a role")
        sent = self._admin.send(self._admin.form(page, page), user="a\0b", role="viewer")
        self._found.add("L3: a NUL in the name of a person", page, _said(sent))
        self._found.demand(sent.status < 500, "a NUL in a name is a fault of the server")

    # --- whoever reaches the servers

    def _forged_frame(self) -> None:
        """A frame of HTML put into Redis for everybody who has the board's panel open."""
        from channels_redis.serializers import registry
        from redis import Redis

        from kafkadash.live.frames import LiveFrame
        from kafkadash.live.hub import group_of

        key, out = "status:demo", self._stack.folder / "frames"
        password = self._stack.password("alice")
        threading.Thread(target=watch, args=(self._stack.url, "alice", password, [key], out), daemon=True).start()
        wait_until(lambda: read_frames(out), "a frame came", STARTS_S)
        content = json.dumps({"key": key, "target": "#status-demo", "content": f'<p hx-post="/">{FORGED}</p>'})
        message = registry.get_serializer("msgpack").serialize({"type": "frame", **LiveFrame(key, content).packed()})
        with Redis.from_url(self._stack.addresses()["REDIS_URL"]) as redis:
            heard = redis.publish(f"kafkadash__group__{group_of(key)}", message)
        self._found.demand(heard == 1, "nobody listens to the forged frame")
        before = len(read_frames(out))
        wait_until(lambda: len(read_frames(out)) > before, "the next frame came", STARTS_S)
        self._found.add("H4: a frame put into Redis", BOARD, "not shown, the next one of the product is")
        self._found.demand(FORGED not in out.read_text(encoding="utf-8"), "a forged frame is shown")

    def _strangers(self) -> None:
        upload = ("Content-Type: multipart/form-data; boundary=x", f"Content-Length: {40 * MIB}")
        for event, method, path, headers in (
            ("M12: 40 MB before sign-in", "POST", "/clusters/demo/verify/", upload),
            ("M12: 3 MB of headers", "GET", "/login/", [f"X-{number}: {'x' * 60_000}" for number in range(50)]),
            ("M12: 5,000 headers", "GET", "/login/", [f"X-{number}: 1" for number in range(5_000)]),
        ):
            status = self._status(method, path, headers)
            self._found.add(event, path, f"{status}" if status else "closed")
            self._found.demand(status is None or status >= 400, f"{event}: {status}")

    def _status(self, method: str, path: str, headers: Sequence[str]) -> int | None:
        """None where the server only closes the connection."""
        connection = http.client.HTTPConnection("127.0.0.1", self._stack.port, timeout=20)
        try:
            connection.putrequest(method, path)
            for each in headers:
                connection.putheader(*each.split(": ", 1))
            connection.endheaders()
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def _wrong_passwords(self) -> None:
        """Wrong ones for bob with another port in Host each time, and then the right one, from the same address."""
        answers = [self._try("bob", "wrong", f"127.0.0.1:{port}") for port in range(1, WRONG_TRIES + 1)]
        said = ", ".join(map(str, answers))
        self._found.add(f"M1: {WRONG_TRIES} wrong passwords, another port in Host each", "/login/", said)
        status = self._try("bob", self._stack.password("bob"), f"127.0.0.1:{self._stack.port}")
        self._found.add("M1: and then the right one", "/login/", f"{status}")
        self._found.demand(status != http.HTTPStatus.FOUND, "the port in Host makes tries new ones")
        alice = Browser(self._stack.url)
        with suppress(RuntimeError):
            alice.sign_in("alice", self._stack.password("alice"))
        self._found.demand(alice.headline(BOARD), "bob's wrong tries keep alice out")
        self._found.add("M2: alice signs in from the same address", BOARD, alice.headline(BOARD))

    def _try(self, name: str, password: str, host: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self._stack.port, timeout=20)
        connection.request("GET", "/login/", headers={"Host": host})
        got = connection.getresponse()
        page = got.read().decode()
        cookie = SimpleCookie(got.headers["Set-Cookie"])["csrftoken"].value
        [form] = [form for form in forms_of(page, "/login/") if "password" in form.fields]
        body = urllib.parse.urlencode({**form.fields, "login": name, "password": password})
        headers = {
            "Host": host,
            "Cookie": f"csrftoken={cookie}",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        connection.request("POST", "/login/", body, headers)
        status = connection.getresponse().status
        connection.close()
        return status

    # --- pages

    def _follow(
        self,
        event: str,
        *,
        told: Sequence[str] = (),
        kept: Sequence[str] = (),
        read: Sequence[str] = (),
        after_s: Sequence[int] = AFTER_S,
    ) -> None:
        """``told`` have another headline than when all was well from 30 s on, ``kept`` the same one all the time."""
        began = time.monotonic()
        said: dict[str, list[str]] = {path: [] for path in (*told, *kept, *read)}
        for after in after_s:
            _pause_until(began + after)
            for path, headlines in said.items():
                headlines.append(self._read(path))
            for path in told:
                red = after < TOLD_S or said[path][-1] != self._green.headlines[path]
                self._found.demand(red, f"{event}: {path} is green after {after} s")
            for path in kept:
                same = said[path][-1] == self._green.headlines[path]
                self._found.demand(same, f"{event}: {path} says {said[path][-1]!r} after {after} s")
        for path, headlines in said.items():
            told_at = zip(after_s, headlines, strict=True)
            self._found.add(event, path, " | ".join(f"+{after}: {words}" for after, words in told_at))

    def _read(self, path: str) -> str:
        """The headline; of a change, whose headline is its name, the notices too."""
        with suppress(OSError):
            page = self._alice.get(path)
            notices = re.findall(r'<div class="notice[^"]*".*?</div>', page, re.DOTALL) if "/changes/" in path else []
            return " / ".join(words_of(each) for each in (heading_of(page), *notices))[:MOST_WORDS]
        return ""


def _pause_until(moment: float) -> None:
    while (left := moment - time.monotonic()) > 0:
        time.sleep(left)


def _said(answer: Answer) -> str:
    """The status, and the errors beside the fields."""
    errors = re.findall(r'class="field-error".*?<span>(.*?)</span>', answer.text, re.DOTALL)
    return f"{answer.status}: {' '.join(map(unescape, errors))}"
