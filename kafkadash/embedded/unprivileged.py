"""The user that a server runs as when kafkadash itself was started by root and the server refuses root."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess

from kafkadash.embedded.errors import ServerErrorCode
from kafkadash.embedded.process import ServerError

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
    return _lookup() or _make()


def _lookup() -> tuple[int, int] | None:
    try:
        entry = pwd.getpwnam(USER_NAME)
    except KeyError:
        return None
    return entry.pw_uid, entry.pw_gid


def _make() -> tuple[int, int]:
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
