"""Child processes: start, wait until ready, stop, and find again after a crash of the supervisor.

Every child is written into a ledger, a JSON file in the state folder, right after its start. A supervisor that is
killed leaves its children running; the next start reads the ledger and ends exactly those. An entry names a process by
id *and* creation time, so a process id that the system has reused never matches.

Linux could end the children by itself (PR_SET_PDEATHSIG), but that signal is sent when the *thread* that started the
child ends, which kills healthy children of a threaded supervisor. The ledger works on every system.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from kafkadash.core.environment import drop_secrets
from kafkadash.core.errors import UserError
from kafkadash.devtools.embedded.errors import ServerErrorCode
from kafkadash.devtools.embedded.files import lock_file, read_tail, write_atomically

LEDGER_NAME = "processes.json"
LEDGER_LOCK_NAME = "processes.lock"
LEDGER_FORMAT = 1

# Creation times come from the boot time, which the kernel rounds to a second and shifts when the clock is corrected.
CREATE_TIME_TOLERANCE = 2.0
POLL_SECONDS = 0.03


class ServerError(UserError):
    """A server could not be started or reached; the text is for a person and names the way out."""


class FolderInUseError(ServerError):
    """Another live supervisor owns the processes of this state folder."""


@dataclass(frozen=True, slots=True)
class ProcessEntry:
    """Entry of the ledger.

    `create_time` and `owner_create_time` are seconds since the epoch. `stage` orders stopping: lower stages end before
    higher ones are asked to. `owner_pid` is None for processes that are meant to outlive the one that started them.
    `remove` lists private folders outside the state folder that go when the process goes.
    """

    name: str
    pid: int
    create_time: float
    stop_signal: int = signal.SIGTERM
    stage: int = 0
    owner_pid: int | None = None
    owner_create_time: float | None = None
    remove: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChildProcess:
    """A process that was started from a state folder, by this Python process or by an earlier one."""

    state_dir: Path
    entry: ProcessEntry
    log: Path | None = None

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def pid(self) -> int:
        return self.entry.pid

    def alive(self) -> bool:
        return _live_process(self.entry) is not None

    def exit_code(self) -> int | None:
        """The exit code when this Python process started the child and it ended, negative for a signal; else None."""
        popen = _popens.get(self.pid)
        return popen.poll() if popen is not None else None

    def memory_bytes(self) -> int | None:
        """Resident memory, or None when the process is gone."""
        process = _live_process(self.entry)
        if process is None:
            return None
        try:
            return int(process.memory_info().rss)
        except psutil.Error:
            return None

    def wait_ready(self, ready: Callable[[], bool], deadline: float) -> None:
        """Return when `ready()` is true.

        Raises ServerError when the child ends first or when `deadline` seconds have passed; the text holds the last
        lines of the child's log. The child is not stopped here.
        """
        wait_all([(self, ready)], deadline)

    def stop(self, deadline: float = 10.0) -> None:
        """Ask the process to end, kill it after `deadline` seconds, take it out of the ledger."""
        stop_all([self], deadline)

    def kill(self) -> None:
        """SIGKILL now, take it out of the ledger."""
        _send_signal(self.entry, signal.SIGKILL)
        _await_end([self.entry], 10.0)
        _forget_entries(self.state_dir, [self.entry])

    def last_words(self) -> str:
        """The log's last lines as the end of an error message; empty without a log."""
        if self.log is None:
            return ""
        lines = read_tail(self.log)
        return f" Last lines of {self.log}:\n" + "\n".join(lines) if lines else f" {self.log} is empty."


def spawn(
    state_dir: Path,
    name: str,
    argv: Sequence[str | Path],
    *,
    log: Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    user: tuple[int, int] | None = None,
    stop_signal: int = signal.SIGTERM,
    stage: int = 0,
    detached: bool = False,
    remove: Sequence[Path] = (),
) -> ChildProcess:
    """Start a child in its own session (Ctrl-C in the terminal does not reach it) and enter it in the ledger.

    `env` is added to this process's environment without its secrets; `user` is (uid, gid) to run as, for root only.
    `detached` children have no owner: any later process may stop them, and none is told that the folder is in use.
    Output is appended to `log`. Raises ServerError when the program, the log or the ledger cannot be used; nothing is
    left running then.
    """
    args = [str(arg) for arg in argv]
    switch = {"user": user[0], "group": user[1], "extra_groups": [user[1]]} if user is not None else {}
    try:
        state_dir.mkdir(parents=True, exist_ok=True)
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as out:
            popen = subprocess.Popen(
                args,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env={**drop_secrets(os.environ), **(env or {})},
                cwd=cwd,
                start_new_session=True,
                **switch,  # type: ignore[call-overload]
            )
    except OSError as error:
        raise ServerError(ServerErrorCode.NOT_STARTED, name=name, fault=error, folder=state_dir) from error
    _popens[popen.pid] = popen
    try:
        create_time = psutil.Process(popen.pid).create_time()
        owner = None if detached else psutil.Process()
        entry = ProcessEntry(
            name=name,
            pid=popen.pid,
            create_time=create_time,
            stop_signal=int(stop_signal),
            stage=stage,
            owner_pid=owner.pid if owner is not None else None,
            owner_create_time=owner.create_time() if owner is not None else None,
            remove=tuple(str(path) for path in remove),
        )
        with _edit_ledger(state_dir) as entries:
            entries.append(entry)
    except BaseException as error:
        popen.kill()
        popen.wait()
        if isinstance(error, psutil.Error | OSError):
            raise ServerError(
                ServerErrorCode.NOT_RECORDED, name=name, file=state_dir / LEDGER_NAME, fault=error
            ) from error
        raise
    return ChildProcess(state_dir, entry, log)


def live_children(state_dir: Path) -> list[ChildProcess]:
    """The live processes in the folder's ledger, whoever started them."""
    return [ChildProcess(state_dir, entry) for entry in _read_ledger(state_dir) if _live_process(entry) is not None]


def recorded(state_dir: Path) -> list[ChildProcess]:
    """Everything in the folder's ledger; a process that ended without anybody stopping it is still there."""
    return [ChildProcess(state_dir, entry) for entry in _read_ledger(state_dir)]


def find_child(state_dir: Path, name: str, log: Path | None = None) -> ChildProcess | None:
    """The live process of that name, or None."""
    for child in live_children(state_dir):
        if child.name == name:
            return ChildProcess(state_dir, child.entry, log)
    return None


def wait_all(pending: Iterable[tuple[ChildProcess, Callable[[], bool]]], deadline: float) -> None:
    """`wait_ready` for several children at once; the first that ends fails the whole."""
    left = list(pending)
    end = time.monotonic() + deadline
    while left := [(child, ready) for child, ready in left if not ready()]:
        for child, _ in left:
            if not child.alive():
                code = child.exit_code()
                how = f" with exit code {code}" if code is not None else ""
                raise ServerError(ServerErrorCode.ENDED_EARLY, name=child.name, how=how, log=child.last_words())
        if time.monotonic() > end:
            child, _ = left[0]
            raise ServerError(ServerErrorCode.NOT_READY, name=child.name, seconds=deadline, log=child.last_words())
        time.sleep(POLL_SECONDS)


def stop_all(processes: Iterable[ChildProcess], deadline: float = 10.0) -> None:
    """Stop stage by stage: within a stage all at once, `deadline` seconds for each stage, then SIGKILL."""
    by_stage: dict[int, list[ChildProcess]] = {}
    for child in processes:
        by_stage.setdefault(child.entry.stage, []).append(child)
    for _, stage in sorted(by_stage.items()):
        entries = [child.entry for child in stage]
        for entry in entries:
            _send_signal(entry, entry.stop_signal)
        for entry in _await_end(entries, deadline):
            _send_signal(entry, signal.SIGKILL)
        _await_end(entries, 10.0)
        for child in stage:
            _forget_entries(child.state_dir, [child.entry])


def reap_leftovers(state_dir: Path, deadline: float = 10.0, names: Collection[str] | None = None) -> list[str]:
    """End what an earlier supervisor left behind in this folder; return the names of what was still running.

    With `names` only those; never what this very process started. Raises FolderInUseError, and touches nothing, when
    another supervisor that is alive owns one of them.
    """
    entries = [
        entry
        for entry in _read_ledger(state_dir)
        if (names is None or entry.name in names) and not owned_by_us(ChildProcess(state_dir, entry))
    ]
    for entry in entries:
        if _live_process(entry) is not None and _owner_lives(entry):
            raise FolderInUseError(
                ServerErrorCode.FOLDER_IN_USE, folder=state_dir, name=entry.name, pid=entry.owner_pid
            )
    live = [ChildProcess(state_dir, entry) for entry in entries if _live_process(entry) is not None]
    stop_all(live, deadline)
    _forget_entries(state_dir, entries)
    return [child.name for child in live]


def owned_by_us(child: ChildProcess) -> bool:
    """Return whether this very process started the child."""
    return child.entry.owner_pid == os.getpid() and _owner_lives(child.entry)


# Our own children must be waited for, or they stay as zombies that keep their process id.
_popens: dict[int, subprocess.Popen[bytes]] = {}
_ledger_guard = threading.Lock()


@contextlib.contextmanager
def _edit_ledger(state_dir: Path) -> Iterator[list[ProcessEntry]]:
    """The ledger's entries, to be changed in place; written back when the block ends without an error."""
    with _ledger_guard, lock_file(state_dir / LEDGER_LOCK_NAME):
        entries = _read_ledger(state_dir)
        yield entries
        document = {"format": LEDGER_FORMAT, "processes": [asdict(entry) for entry in entries]}
        write_atomically(state_dir / LEDGER_NAME, json.dumps(document, indent=1) + "\n")


def _read_ledger(state_dir: Path) -> list[ProcessEntry]:
    path = state_dir / LEDGER_NAME
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["format"] != LEDGER_FORMAT:
            raise ServerError(ServerErrorCode.PROCESSES_UNREADABLE, file=path, fault="written by another version")
        return [ProcessEntry(**{**item, "remove": tuple(item["remove"])}) for item in document["processes"]]
    except (FileNotFoundError, NotADirectoryError):  # where there cannot be a folder, that is said by who makes one
        return []
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ServerError(ServerErrorCode.PROCESSES_UNREADABLE, file=path, fault=error) from error


def _forget_entries(state_dir: Path, entries: Sequence[ProcessEntry]) -> None:
    """Take ended processes out of the ledger, and their private folders from the disk."""
    for entry in entries:
        for folder in entry.remove:
            shutil.rmtree(folder, ignore_errors=True)
        popen = _popens.pop(entry.pid, None)
        if popen is not None and popen.poll() is None:
            _popens[entry.pid] = popen
    if not state_dir.is_dir():
        return
    gone = {(entry.pid, entry.create_time) for entry in entries}
    with _edit_ledger(state_dir) as current:
        current[:] = [entry for entry in current if (entry.pid, entry.create_time) not in gone]


def _live_process(entry: ProcessEntry) -> psutil.Process | None:
    """The live process that the entry means, None when it ended, even if its id is in use again."""
    popen = _popens.get(entry.pid)
    if popen is not None and popen.poll() is not None:
        return None
    try:
        process = psutil.Process(entry.pid)
        same = abs(process.create_time() - entry.create_time) <= CREATE_TIME_TOLERANCE
        # A zombie has ended; only its parent, which may be another supervisor, can remove it. Of our own child `poll`
        # knows better: its first thread may be a zombie while others still end, and only then there is an exit code.
        ended = popen is None and process.status() == psutil.STATUS_ZOMBIE
        return process if same and not ended else None
    except psutil.NoSuchProcess:
        return None


def _owner_lives(entry: ProcessEntry) -> bool:
    if entry.owner_pid is None or entry.owner_create_time is None:
        return False
    return _live_process(ProcessEntry("owner", entry.owner_pid, entry.owner_create_time)) is not None


def _send_signal(entry: ProcessEntry, signal_number: int) -> None:
    process = _live_process(entry)
    if process is not None:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(signal_number)


def _await_end(entries: Sequence[ProcessEntry], deadline: float) -> list[ProcessEntry]:
    """Wait until all have ended; return those still there after `deadline` seconds."""
    end = time.monotonic() + deadline
    left = list(entries)
    while left := [entry for entry in left if _live_process(entry) is not None]:
        if time.monotonic() > end:
            break
        time.sleep(POLL_SECONDS)
    return left
