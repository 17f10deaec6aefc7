"""Folders of an embedded server: paths short enough for sockets, and reachable for the user that the server runs as.

``unprivileged_user`` is that user where kafkadash was started by root and the server refuses to run as root.
"""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import subprocess
import tempfile
import time
from pathlib import Path

import psutil

from kafkadash.devtools.embedded.errors import ServerErrorCode
from kafkadash.devtools.embedded.process import ServerError

# sun_path is 108 bytes on Linux and 104 on macOS, with the closing zero.
SOCKET_PATH_BYTES = 103
# Survives a restart of the machine where it exists (Filesystem Hierarchy Standard).
LASTING_TEMP = Path("/var/tmp")  # noqa: S108 - mkdtemp makes a private folder in it
PREFIX = "kafkadash-"
# Says in a private folder which state folder it was made for.
BELONGS_NAME = ".belongs-to"
SWEEP_AFTER_SECONDS = 3600.0


def socket_fits(path: Path) -> bool:
    return len(os.fsencode(path)) <= SOCKET_PATH_BYTES


def private_folder(state_dir: Path, owner: tuple[int, int] | None = None, *, lasting: bool = False) -> Path:
    """A new folder with a short path that only `owner` (uid, gid; default: this user) may enter.

    The state folder has to name it in one of its JSON files: private folders that nobody names any more are removed
    at the next call. `lasting` prefers a place that is not emptied when the machine restarts.
    """
    parent = Path(tempfile.gettempdir())
    if lasting and os.access(LASTING_TEMP, os.W_OK | os.X_OK):
        parent = LASTING_TEMP
    if not socket_fits(parent / f"{PREFIX}12345678" / "a-longish-name.sock"):
        parent = Path("/tmp")  # noqa: S108 - as above
    _sweep(parent)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    (folder / BELONGS_NAME).write_text(str(state_dir), encoding="utf-8")
    if owner is not None:
        os.chown(folder, *owner)
    return folder


def socket_folder(
    state_dir: Path, beside: Path, socket_name: str, recorded: Path | None, owner: tuple[int, int] | None = None
) -> Path:
    """`beside` if a socket in it fits, else a private folder: the `recorded` one again if it can be had.

    Clients that were given the old path find the server again after a restart.
    """
    if socket_fits(beside / socket_name):
        return beside
    if recorded is not None and recorded != beside:
        uid = owner[0] if owner is not None else os.geteuid()
        try:
            recorded.mkdir(mode=0o700)
            if owner is not None:
                os.chown(recorded, *owner)
            return recorded
        except FileExistsError:
            status = recorded.lstat()
            if stat.S_ISDIR(status.st_mode) and status.st_uid == uid and not status.st_mode & 0o077:
                return recorded
        except OSError:  # its parent went with a restart of the machine: a new one is as good
            return private_folder(state_dir, owner)
    return private_folder(state_dir, owner)


def is_reachable(path: Path, user: tuple[int, int]) -> bool:
    """Return whether (uid, gid) may pass through all folders above `path`, and enter that folder or read that file.

    Only mode bits are checked.
    """
    path = path.resolve()
    own_bit = stat.S_IXOTH if path.is_dir() else stat.S_IROTH
    return all(_may_pass(folder, user, stat.S_IXOTH) for folder in path.parents) and _may_pass(path, user, own_bit)


def _may_pass(path: Path, user: tuple[int, int], other_bit: int) -> bool:
    status = path.stat()
    if status.st_uid == user[0]:
        return bool(status.st_mode & (other_bit << 6))
    if status.st_gid == user[1]:
        return bool(status.st_mode & (other_bit << 3))
    return bool(status.st_mode & other_bit)


def _sweep(parent: Path) -> None:
    """Remove private folders whose state folder was deleted or names another one by now."""
    forgotten = [folder for folder in parent.glob(f"{PREFIX}*") if _is_forgotten(folder)]
    if not forgotten:
        return
    in_use = _working_folders()
    for folder in forgotten:
        if not any(used.is_relative_to(folder) for used in in_use):
            shutil.rmtree(folder, ignore_errors=True)


def _is_forgotten(folder: Path) -> bool:
    note = folder / BELONGS_NAME
    try:
        # A young one may not have been named yet.
        if time.time() - note.stat().st_mtime < SWEEP_AFTER_SECONDS:
            return False
        state_dir = Path(note.read_text(encoding="utf-8"))
        if not state_dir.exists():
            # Without the folder above it, the state is on a disk that is not there just now.
            return state_dir.parent.exists()
        return not any(str(folder) in record.read_text(encoding="utf-8") for record in state_dir.glob("*.json"))
    except (OSError, ValueError):  # no note, or not ours to read
        return False


def _working_folders() -> list[Path]:
    folders = []
    for process in psutil.process_iter():
        try:
            folders.append(Path(process.cwd()))
        except psutil.Error:  # ended, or somebody else's: then its folder is not ours either
            continue
    return folders


USER_NAME = "kafkadash"
USERADD_NAME_EXISTS = 9  # useradd(8)
ATTEMPTS = 5
USERADD_SECONDS = 30.0


def unprivileged_user() -> tuple[int, int] | None:
    """(uid, gid) to switch to, None when this process is not root and so needs no other user.

    The system user `kafkadash` is made at the first call. Raises ServerError when that does not work.
    """
    if os.geteuid() != 0:
        return None
    return _lookup() or _create_user()


def _lookup() -> tuple[int, int] | None:
    try:
        entry = pwd.getpwnam(USER_NAME)
    except KeyError:
        return None
    return entry.pw_uid, entry.pw_gid


def _create_user() -> tuple[int, int]:
    useradd = shutil.which("useradd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    why = "there is no useradd command"
    for _ in range(ATTEMPTS if useradd is not None else 0):
        # Another start may hold the lock of the user database: it is asked for again then.
        command = [str(useradd), "--system", "--user-group", "--no-create-home", "--shell", "/bin/false", USER_NAME]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=USERADD_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            why = f"useradd did not end within {USERADD_SECONDS:g} s"
            break
        why = done.stderr.strip()
        if done.returncode in (0, USERADD_NAME_EXISTS) and (user := _lookup()) is not None:
            return user
    raise ServerError(ServerErrorCode.NO_USER_FOR_POSTGRESQL, user=USER_NAME, said=why)
