"""Child process that judges a reassignment file: ``python -m kafkadash.verify.process FOLDER read`` and ``… judge``.

A file of 50 MB has a million rows, which take seconds of CPU time and hundreds of megabytes. The process uses only the
rules and never calls Kafka; its caller does that between ``read`` and ``judge``.

``read`` reads ``upload.json.z`` from FOLDER, zlib of Kafka's JSON as it was uploaded. It writes ``rows.json``, a row a
line, and ``read.json``: ``{"problems":[…],"problem_count":n,"notices":[…],"rows":n,"topics":[…],"brokers":[…]}``,
problems and notices as ``core.problems.InputProblem.as_json``, at most ``MOST_LISTED`` of each; the topics of the rows,
and the brokers whose directories they name.

``judge`` reads ``rows.json`` and ``told.json`` (``verify.rules.ClusterAnswers``). It writes the verdicts, the
worst first, ``PART_ROWS`` to a file ``part-0``, ``part-1``, … (each as ``VerificationPart`` keeps it), and
``judged.json``: ``{"counts":{state: n},"parts":n}``.

Exit codes: 0 when done, 3 when out of memory, anything else is a bug of this program. After ``CPU_S`` seconds of CPU
time the system ends the process (SIGXCPU).
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from kafkadash.core.json_columns import unpack_dataclass
from kafkadash.planning.kafka_json import JsonRow, read_reassignment
from kafkadash.verify.rules import ClusterAnswers, brokers_of, tally, topics_of, verify

CPU_S = 120
MOST_BYTES = 2_000_000_000
PART_ROWS = 1_000
MOST_LISTED = 200
OUT_OF_MEMORY = 3


def read(folder: Path) -> None:
    stage = "Reading the file"
    content = zlib.decompress((folder / "upload.json.z").read_bytes())
    parsed = read_reassignment(content, lambda fraction: _say(stage, fraction))
    with (folder / "rows.json").open("w", encoding="utf-8") as out:
        for row in parsed.rows:
            out.write(json.dumps([row.topic, row.partition, row.replicas, row.log_dirs], separators=(",", ":")) + "\n")
    found = {
        "problems": [problem.as_json() for problem in parsed.problems[:MOST_LISTED]],
        "problem_count": len(parsed.problems),
        "notices": [notice.as_json() for notice in parsed.notices[:MOST_LISTED]],
        "rows": len(parsed.rows),
        "topics": topics_of(parsed.rows),
        "brokers": brokers_of(parsed.rows),
    }
    (folder / "read.json").write_text(json.dumps(found), encoding="utf-8")


def judge(folder: Path) -> None:
    _say("Comparing", 0.0)
    told = unpack_dataclass(ClusterAnswers, json.loads((folder / "told.json").read_bytes()))
    verdicts = verify(_read_rows(folder), told)
    firsts = range(0, len(verdicts), PART_ROWS)
    for number, first in enumerate(firsts):
        _say("Comparing", first / len(verdicts))
        rows = [
            [v.topic, v.partition, list(v.target), v.state.value, list(v.words), v.note]
            for v in verdicts[first : first + PART_ROWS]
        ]
        packed = zlib.compress(json.dumps(rows, separators=(",", ":")).encode())
        (folder / f"part-{number}").write_bytes(packed)
    counts = {state.value: number for state, number in tally(verdicts).items()}
    (folder / "judged.json").write_text(json.dumps({"counts": counts, "parts": len(firsts)}), encoding="utf-8")


def _read_rows(folder: Path) -> Iterator[JsonRow]:
    with (folder / "rows.json").open(encoding="utf-8") as lines:
        for line in lines:
            topic, partition, replicas, log_dirs = json.loads(line)
            yield JsonRow(sys.intern(topic), partition, tuple(replicas), tuple(log_dirs), 0)


def _say(stage: str, fraction: float) -> None:
    sys.stdout.write(json.dumps({"stage": stage, "fraction": round(fraction, 3)}) + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str]) -> int:
    does = {"read": read, "judge": judge}
    if len(arguments) != 2 or arguments[1] not in does:
        sys.stderr.write("usage: python -m kafkadash.verify.process FOLDER read|judge\n")
        return 64
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Millions of small objects are made and none refers back: looking for cycles would double the time.
    gc.disable()
    try:
        does[arguments[1]](Path(arguments[0]))
    except MemoryError:
        return OUT_OF_MEMORY
    except BrokenPipeError:
        # Whoever asked for it is gone; the interpreter must not stumble over the same pipe when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
