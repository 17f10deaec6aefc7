"""The demo as a user runs it: start, wait for its last line, Ctrl-C, and look whether anything is left."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

CHECKOUT = Path(__file__).resolve().parents[2]
# A database or keys of somebody else's have no place in a demo of its own.
OTHERS = frozenset({"KAFKADASH_VAR", "DATABASE_URL", "REDIS_URL", "SECRET_KEY", "FIELD_KEYS"})
START_SECONDS = 420.0
STOP_SECONDS = 60.0
READY = re.compile(r"^Ready in ([0-9.]+) s")
PAGE = re.compile(r"^\s+(http://127\.0\.0\.1:\d+)/")


@dataclass(frozen=True, slots=True)
class Left:
    """What a run had opened: to be looked for after its end. `processes` are (id, creation time, name)."""

    processes: tuple[tuple[int, float, str], ...]
    ports: tuple[int, ...]
    sockets: tuple[Path, ...]

    def still_there(self) -> list[str]:
        """What of it exists now, one phrase each."""
        found = [f"process {pid} ({name})" for pid, created, name in self.processes if _lives(pid, created)]
        found += [f"port {port}" for port in self.ports if _listens(port)]
        return found + [f"socket {path}" for path in self.sockets if path.exists()]


class DemoProcess:
    """`manage.py demo` in a folder of its own."""

    def __init__(self, folder: Path, *arguments: str, environment: dict[str, str] | None = None) -> None:
        self.folder = folder
        self.base = ""
        self.seconds = 0.0
        self.lines: list[str] = []
        clean = {name: value for name, value in os.environ.items() if name not in OTHERS}
        self._process = subprocess.Popen(
            [sys.executable, "manage.py", "demo", "--folder", str(folder), *arguments],
            cwd=CHECKOUT,
            env={**clean, "PYTHONUNBUFFERED": "1", **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_until_ready(self) -> None:
        """Raises RuntimeError with what the demo said when it ended first or took too long."""
        self.wait_for_line("Ctrl-C stops everything", START_SECONDS)
        self.base = next(found[1] for line in self.lines if (found := PAGE.match(line)))
        self.seconds = next(float(found[1]) for line in self.lines if (found := READY.match(line)))

    def wait_for_line(self, text: str, deadline: float) -> str:
        """The first line with this text in it. Raises RuntimeError when the demo ended first or took too long."""
        end = time.monotonic() + deadline
        while (found := next((line for line in self.lines if text in line), None)) is None:
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"The demo did not say {text!r}:\n" + "\n".join(self.lines))
            time.sleep(0.05)
        return found

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def password(self, name: str) -> str:
        return str(json.loads((self.folder / "sign-ins.json").read_text(encoding="utf-8"))[name])

    def opened(self) -> Left:
        """Every process of the demo, the ports they listen on, the socket files they made."""
        demo = psutil.Process(self.pid)
        processes = [demo, *demo.children(recursive=True)]
        ports, sockets, started = set(), set(), []
        for process in processes:
            try:
                connections = process.net_connections("all")
                started.append((process.pid, process.create_time(), process.name()))
            except psutil.NoSuchProcess:  # it was a short one, such as the launcher of the JVM
                continue
            for connection in connections:
                address: object = connection.laddr
                if isinstance(address, str) and address.startswith("/"):
                    sockets.add(Path(address))
                elif connection.status == psutil.CONN_LISTEN and isinstance(address, tuple):
                    ports.add(int(address[1]))
        return Left(
            tuple(started),
            tuple(sorted(ports)),
            tuple(sorted(sockets)),
        )

    def interrupt(self) -> int | None:
        """Ctrl-C; the exit code, None when it did not end."""
        self._process.send_signal(signal.SIGINT)
        return self.wait(STOP_SECONDS)

    def wait(self, deadline: float) -> int | None:
        try:
            self._process.wait(deadline)
        except subprocess.TimeoutExpired:
            return None
        self._reader.join(5)
        return self._process.returncode

    def end(self) -> None:
        """Whatever happened: nothing of it stays."""
        if self._process.poll() is None and self.interrupt() is None:
            demo = psutil.Process(self.pid)
            for process in [*demo.children(recursive=True), demo]:
                process.kill()
            self.wait(STOP_SECONDS)

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as out:
            for line in out:
                self.lines.append(line.rstrip("\n"))


def command(folder: Path, *arguments: str) -> str:
    """A command of the checkout against the demo's folder; its output. Raises RuntimeError with what it said."""
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=CHECKOUT,
        env={**{k: v for k, v in os.environ.items() if k not in OTHERS}, "KAFKADASH_VAR": str(folder)},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(arguments)} failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _lives(pid: int, created: float) -> bool:
    try:
        process = psutil.Process(pid)
        return abs(process.create_time() - created) < 1 and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
