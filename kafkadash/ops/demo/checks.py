"""What must be true before anything is started; everything wrong is one sentence with the way out."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import environ
import psycopg
import redis
from psycopg.conninfo import make_conninfo

from kafkadash.embedded.ports import LOOPBACK, port_is_free
from kafkadash.embedded.postgres import install_folder
from kafkadash.embedded.process import ServerError
from kafkadash.embedded.valkey import server_binary
from kafkadash.playground import jars
from kafkadash.playground.java import find_java

MINIMUM_PYTHON = (3, 11)
MIB = 1024 * 1024
# The sample data with all replicas, the copy that a move makes, and as much again to breathe.
FREE_MIB = 3000
# Kafka's jars and a class archive.
FREE_CACHE_MIB = 200
FIRST_PORT = 8000
PORTS_TRIED = 200
CONNECT_SECONDS = 5


def check(folder: Path, environment: Mapping[str, str]) -> str:
    """Return what was found, in a few words. Raises ServerError for the first thing that is wrong.

    `environment` is the user's: DATABASE_URL and REDIS_URL replace the embedded servers,
    KAFKADASH_DEMO_FREE_MIB the free space asked for.
    """
    if sys.version_info < MINIMUM_PYTHON:
        raise ServerError(f"kafkadash needs Python 3.11 or newer, this is {sys.version.split()[0]}: run make setup.")
    _check_space(folder, int(environment.get("KAFKADASH_DEMO_FREE_MIB", FREE_MIB)))
    _check_space(_existing(jars.cache_dir()), FREE_CACHE_MIB)
    if url := environment.get("DATABASE_URL"):
        _check_database(url)
    else:
        install_folder()
    if url := environment.get("REDIS_URL"):
        _check_redis(url)
    else:
        server_binary()
    java = find_java()
    return f"Python {sys.version.split()[0]}, Java {java.version}"


def choose_port(asked: int | None, stored: str | None) -> int:
    """The port for the pages: the one asked for, or last time's, or the first free one from 8000 on."""
    if asked is not None:
        if not port_is_free(asked):
            raise ServerError(f"Port {asked} is taken: name another one with --port, or leave --port out.")
        return asked
    candidates = list(range(FIRST_PORT, FIRST_PORT + PORTS_TRIED))
    if stored is not None and stored.isdigit():
        candidates.insert(0, int(stored))
    for port in candidates:
        if port_is_free(port):
            return port
    raise ServerError(f"No free port from {FIRST_PORT} to {FIRST_PORT + PORTS_TRIED} on {LOOPBACK}: name one (--port).")


def _check_space(folder: Path, needed_mib: int) -> None:
    free = int(shutil.disk_usage(folder).free) // MIB
    if free < needed_mib:
        raise ServerError(
            f"The disk of {folder} has {free} MiB free and the demo needs {needed_mib} MiB: make room, or choose a "
            "folder on another disk (--folder DIR, and KAFKADASH_CACHE for Kafka's jars)."
        )


def _existing(path: Path) -> Path:
    """The path or its nearest parent that exists."""
    while not path.exists() and path.parent != path:
        path = path.parent
    return path


def _check_database(url: str) -> None:
    config = environ.Env.db_url_config(url)  # as the settings read it
    if not str(config.get("ENGINE", "")).startswith("django.db.backends.postgresql"):
        raise ServerError("DATABASE_URL names no PostgreSQL: write postgres://user:password@host/name, or unset it.")
    names = {"HOST": "host", "PORT": "port", "USER": "user", "PASSWORD": "password", "NAME": "dbname"}
    try:
        conninfo = make_conninfo(**{name: config[key] for key, name in names.items() if config.get(key)})
        psycopg.connect(conninfo, connect_timeout=CONNECT_SECONDS).close()
    except psycopg.Error as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ServerError(
            f"The database in DATABASE_URL does not let us in ({reason}): correct it, or unset it for the embedded one."
        ) from error


def _check_redis(url: str) -> None:
    try:
        with redis.Redis.from_url(
            url, socket_timeout=CONNECT_SECONDS, socket_connect_timeout=CONNECT_SECONDS
        ) as client:
            client.ping()
    except (redis.RedisError, ValueError, OSError) as error:
        raise ServerError(
            f"The Redis or Valkey in REDIS_URL does not answer ({error}): correct it, or unset it for the embedded one."
        ) from error
