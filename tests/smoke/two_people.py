"""The whole loop as two people over HTTP: approved, started, watched, verified, rolled back. No database is opened."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kafkadash.devtools.playground.cluster import KafkaPlayground
from tests.agreement.tools import Tools
from tests.smoke import run_judged
from tests.smoke.browser import Answer, Browser, rows_of
from tests.smoke.demo_process import DemoProcess
from tests.smoke.extent import SmokeExtent
from tests.smoke.kafka_truth import Copy, PlanTruth
from tests.smoke.steps import Steps, demand, wait
from tests.smoke.watching import Watcher, judge_samples

DRAINED, LEAST_BYTES, LEAST_SECONDS = 2, 400_000_000, 92
RUN_SECONDS, BACK_SECONDS, END_SECONDS = 300.0, 240.0, 60.0
# A rate that others have just set may be in use: a run waits for a minute, counted from when it was read.
UNUSED_SECONDS = 75.0
RAISED_AT, RAISED_BACK_TO = 15.0, 50
LEADERS, FOLLOWERS = "leader_replication_throttled", "follower_replication_throttled"
# Owner (None: all brokers) → what somebody else had set there before: a rate on a broker that takes part, one for all
# brokers, entries of lists of which one is also the run's, and a list that is for all replicas.
FOREIGN: Sequence[tuple[str | int | None, Mapping[str, str]]] = (
    (3, {f"{LEADERS}_rate": "30000000"}),
    (None, {f"{FOLLOWERS}_rate": "40000000"}),
    ("clickstream-archive", {f"{LEADERS}_replicas": f"0:3,1:{DRAINED}"}),
    ("page-views", {f"{FOLLOWERS}_replicas": "*"}),
    ("orders", {f"{FOLLOWERS}_replicas": "11:9"}),
)
UNDER_WAY = ("queued", "executing", "verifying")

Placement = Mapping[tuple[str, int], tuple[int, ...]]


class TwoPeople:
    """Alice proposes and runs, bob approves; ``folder`` takes plans and frames."""

    def __init__(self, demo: DemoProcess, servers: str, folder: Path, steps: Steps, extent: SmokeExtent) -> None:
        self._demo, self._servers, self._folder, self._steps = demo, servers, folder, steps
        self._raised_to = extent.raised_to
        self._tools = Tools(KafkaPlayground(demo.folder / "playground", detached=True))
        self._alice, self._bob = Browser(demo.base), Browser(demo.base)

    def run(self) -> None:
        for browser, name in ((self._alice, "alice"), (self._bob, "bob")):
            browser.sign_in(name, self._demo.password(name))
        step = self._steps.step
        with step("the drain that waits") as say:
            number = self._waiting()
            say(f"#{number}: {self._size_and_time(number)}")
        with step("throttles of somebody else") as say:
            for owner, values in FOREIGN:
                self._tools.set_config(owner, **values)
            set_at = time.monotonic()
            configs, before = self._configs(), self._placement()
            say(f"{len(FOREIGN)} set with kafka-configs")
        with step("bob approves exactly it") as say:
            say(self._approve(number))
        with step("nobody uses that rate"):
            wait(lambda: time.monotonic() - set_at > UNUSED_SECONDS, 2 * UNUSED_SECONDS, lambda: "it was set just now")
        self._drain(number, before)
        with step("kafka-configs says what it said before") as say:
            say(self._compare_configs(configs))
        with step("Kafka's own tools: all is there") as say:
            say(self._verify(number, self._targets(number)))
        back = self._roll_back(number, before)
        with step("kafka-configs says it once more") as say:
            say(self._compare_configs(configs))
        with step("Kafka's own tools: all is back") as say:
            say(self._verify(back, before))

    def _drain(self, number: int, before: Placement) -> None:
        step = self._steps.step
        run, moves = f"run:{number}", f"moves:{number}"
        copies = self._copies(number, before)
        truth = PlanTruth(self._servers, copies)
        watcher = Watcher(self._demo, "alice", self._folder / "run.jsonl", run, moves)

        def percent() -> float:
            figures = run_judged.figures_of(watcher.panels(run)[-1:])
            return figures[0].percent or 0.0 if figures else 0.0

        try:
            truth.start()
            with step("alice starts it, the form sent twice") as say:
                say(self._start(number))
            with step(f"run up to {RAISED_AT:g} %") as say:
                watcher.wait(lambda: percent() >= RAISED_AT, RUN_SECONDS, lambda: self._stands(number))
                say(f"{len(watcher.panels(run))} frames")
            with step("throttle raised while it runs") as say:
                say(self._raise_throttle(number, self._raised_to))
            with step("run watched to its end") as say:
                self._wait_for_done(number, RUN_SECONDS)
                watcher.wait(lambda: percent() >= 100, END_SECONDS, lambda: f"the last frame said {percent()} %")
                say(f"{len(watcher.panels(run))} frames of the run, {len(watcher.panels(moves))} of its rows")
        finally:
            watcher.end()
            truth.stop()
        figures = run_judged.figures_of(watcher.panels(run))
        samples = run_judged.samples_of(figures)
        with step("run: samples") as say:
            say(judge_samples(samples))
        with step("run: time left, said at half-way") as say:
            say(run_judged.eta_error(figures, samples))
        with step("run: against raw reads") as say:
            say(run_judged.gap_of_the_whole(samples, truth))
        with step("its rows: against raw reads") as say:
            say(run_judged.gap_of_rows(run_judged.row_samples_of(watcher.panels(moves), copies), truth))
        with step("its report") as say:
            say(self._report(number))

    def _roll_back(self, number: int, before: Placement) -> int:
        step = self._steps.step
        with step("rollback drafted and proposed") as say:
            answer = self._alice.send(self._alice.form(f"/changes/{number}/", f"/changes/{number}/rollback/"))
            found = re.match(r"/changes/(\d+)/", answer.path)
            back = int(found[1]) if found else number
            demand(back != number, f"no draft came of it: {answer.path} {answer.words[:400]}")
            why = f"/changes/{back}/draft/why/"
            wait(lambda: 'name="why"' in self._alice.get(why), END_SECONDS, lambda: f"#{back} has no plan")
            answer = self._alice.send(self._alice.form(why, why), why="The disks are in.")
            demand(self._state(back) == "proposed", f"#{back} is {self._state(back)}: {answer.words[:400]}")
            wanted = {name: before[name] for name in self._targets(number)}
            demand(self._targets(back) == wanted, f"its plan is not the way back: {self._targets(back)}")
            say(f"#{back}: {self._size_and_time(back)}")
        with step("bob approves the way back") as say:
            say(self._approve(back))
        with step("rolled back") as say:
            self._start(back)
            wait(lambda: self._state(back) == "executing", END_SECONDS, lambda: self._stands(back))
            raised = self._raise_throttle(back, RAISED_BACK_TO)
            self._wait_for_done(back, BACK_SECONDS)
            say(f"{raised}; {self._report(back)}")
        return back

    def _waiting(self) -> int:
        """The number of the demo's own request, as bob's list names it."""
        listed = re.findall(r'href="/changes/(\d+)/"', self._bob.get("/changes/"))
        demand(listed, "nothing waits for bob")
        return int(listed[0])

    def _size_and_time(self, number: int) -> str:
        """Of a drain that is worth watching, by Kafka's own tool and by the plan."""
        held = sum(size for sizes in self._tools.all_sizes([DRAINED])[DRAINED].values() for size in sizes.values())
        page = Answer(200, "", self._bob.get(f"/changes/{number}/")).words
        said = re.search(r"Time at ([\d.]+) MB/s (?:(\d+) min )?(\d+) s", page)
        demand(said, "the review page names no time at its throttle")
        assert said is not None
        seconds = 60 * int(said[2] or 0) + int(said[3])
        demand(seconds >= LEAST_SECONDS, f"it is planned to take {seconds} s, {LEAST_SECONDS} needed")
        return f"{held / 1e6:.0f} MB on broker {DRAINED}, planned to take {seconds} s at {said[1]} MB/s"

    def _approve(self, number: int) -> str:
        answer = self._bob.send(self._bob.form(f"/changes/{number}/", "/approve/"))
        demand(self._state(number) == "approved", f"#{number} is {self._state(number)}: {answer.words[:400]}")
        return f"#{number}"

    def _start(self, number: int) -> str:
        """The same form sent twice starts once."""
        form = self._alice.form(f"/changes/{number}/", "/start/")
        answers = [self._alice.send(form) for _ in range(2)]
        state = self._state(number)
        demand(state in UNDER_WAY, f"#{number} is {state}: {answers[0].words[:400]}")
        demand([answer.status for answer in answers] == [200, 200], f"the second answer: {answers[1].words[:400]}")
        return f"#{number} is {state}"

    def _raise_throttle(self, number: int, rate: int) -> str:
        """In MB/s; returns when Kafka's own tool says so."""
        form = self._alice.form(f"/changes/{number}/run/", "/run/throttle/")
        answer = self._alice.send(form, rate=str(rate), reason="Consumers are fine.")
        key, wanted = "leader.replication.throttled.rate", str(rate * 1_000_000)
        wait(
            lambda: self._tools.configs(DRAINED).get(key, ("", ""))[0] == wanted,
            END_SECONDS,
            lambda: f"broker {DRAINED} has no leader rate of {wanted}: {answer.words[:400]}",
        )
        return f"{form.fields.get('rate')} → {rate} MB/s, kafka-configs says so"

    def _wait_for_done(self, number: int, deadline: float) -> None:
        wait(lambda: self._state(number) not in UNDER_WAY, deadline, lambda: self._stands(number))
        demand(self._state(number) == "done", self._stands(number))

    def _state(self, number: int) -> str:
        page = rows_of(self._alice.get(f"/changes/{number}/"))
        return next((row.outcome for row in page if row.data.get("id") == "change-bar"), "nowhere")

    def _stands(self, number: int) -> str:
        page = Answer(200, "", self._alice.get(f"/changes/{number}/run/")).words
        return f"#{number} is {self._state(number)}: {page[:1500]}"

    def _report(self, number: int) -> str:
        report: dict[str, Any] = json.loads(self._alice.get(f"/changes/{number}/report/report.json"))
        demand(report["outcome"] == "clean", f"it ended {report['outcome']}")
        return f"clean, {report['bytes'] / 1e6:.0f} MB at {report['mean_rate'] / 1e6:.1f} MB/s on average"

    def _file(self, number: int) -> Path:
        """The plan as Kafka's own tool reads it."""
        file = self._folder / f"plan-{number}.json"
        if not file.exists():
            file.write_text(self._alice.get(f"/changes/{number}/kafka.json"), encoding="utf-8")
        return file

    def _targets(self, number: int) -> Placement:
        entries = json.loads(self._file(number).read_text(encoding="utf-8"))["partitions"]
        return {(one["topic"], one["partition"]): tuple(one["replicas"]) for one in entries}

    def _copies(self, number: int, before: Placement) -> list[Copy]:
        """What is copied: each row of the drain gives one replica a new home."""
        directories = self._tools.all_sizes([DRAINED])[DRAINED].values()
        sizes = {name: size for directory in directories for name, size in directory.items()}
        copies = []
        for name, target in self._targets(number).items():
            [destination] = set(target) - set(before[name])
            kept = next(broker for broker in target if broker in before[name])
            copies.append(Copy(*name, destination, kept, sizes[name]))
        demand(sum(sizes.values()) >= LEAST_BYTES, f"broker {DRAINED} holds only {sum(sizes.values()) / 1e6:.0f} MB")
        return copies

    def _placement(self) -> Placement:
        topics = self._tools.topics()
        return {(name, n): p.replicas for name, topic in topics.items() for n, p in topic.partitions.items()}

    def _configs(self) -> dict[str, str]:
        """All that is set, as kafka-configs prints it, with the sources."""
        kinds = ("brokers", "topics")
        return {kind: self._tools.run("configs", "--describe", "--entity-type", kind) for kind in kinds}

    def _compare_configs(self, before: Mapping[str, str]) -> str:
        after = self._configs()
        for kind, text in before.items():
            was, now = text.splitlines(), after[kind].splitlines()
            gone, new = [line for line in was if line not in now], [line for line in now if line not in was]
            demand(after[kind] == text, f"{kind}: gone {gone}, new {new}")
        return f"{sum(map(len, before.values()))} characters about brokers and topics, every one the same"

    def _verify(self, number: int, wanted: Placement) -> str:
        now = self._placement()
        wrong = {name: now[name] for name in self._targets(number) if now[name] != wanted[name]}
        demand(not wrong, f"kafka-topics says otherwise: {wrong}")
        lines = self._tools.verify(self._file(number))
        unfinished = [line for line in lines if "is completed" not in line]
        demand(lines and not unfinished, f"kafka-reassign-partitions says: {unfinished or 'nothing'}")
        demand(not self._tools.moves(), "something still moves")
        return f"#{number}: {len(lines)} partitions completed, replicas in the order of the plan"
