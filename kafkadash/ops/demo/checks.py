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

from kafkadash.domain.refusals.commands import DATABASE_URL_WRONG
from kafkadash.embedded.ports import LOOPBACK, port_is_free
from kafkadash.embedded.postgres import install_folder
from kafkadash.embedded.process import ServerError
from kafkadash.embedded.valkey import server_binary
from kafkadash.ops.errors import OperationErrorCode
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
        raise ServerError(OperationErrorCode.PYTHON_TOO_OLD, version=sys.version.split()[0])
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
            raise ServerError(OperationErrorCode.PORT_TAKEN, port=asked)
        return asked
    candidates = list(range(FIRST_PORT, FIRST_PORT + PORTS_TRIED))
    if stored is not None and stored.isdigit():
        candidates.insert(0, int(stored))
    for port in candidates:
        if port_is_free(port):
            return port
    raise ServerError(OperationErrorCode.NO_FREE_PORT, first=FIRST_PORT, last=FIRST_PORT + PORTS_TRIED, host=LOOPBACK)


def _check_space(folder: Path, needed_mib: int) -> None:
    free = int(shutil.disk_usage(folder).free) // MIB
    if free < needed_mib:
        raise ServerError(OperationErrorCode.DISK_TOO_FULL, folder=folder, free=free, needed=needed_mib)


def _existing(path: Path) -> Path:
    """The path or its nearest parent that exists."""
    while not path.exists() and path.parent != path:
        path = path.parent
    return path


def _check_database(url: str) -> None:
    try:
        config = environ.Env.db_url_config(url)  # as the settings read it
    except ValueError:
        raise ServerError(DATABASE_URL_WRONG()) from None
    if not str(config.get("ENGINE", "")).startswith("django.db.backends.postgresql"):
        raise ServerError(OperationErrorCode.NO_POSTGRESQL)
    names = {"HOST": "host", "PORT": "port", "USER": "user", "PASSWORD": "password", "NAME": "dbname"}
    try:
        conninfo = make_conninfo(**{name: config[key] for key, name in names.items() if config.get(key)})
        psycopg.connect(conninfo, connect_timeout=CONNECT_SECONDS).close()
    except psycopg.Error as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else "it gave no reason"
        raise ServerError(OperationErrorCode.DATABASE_REFUSES, reason=reason) from error


def _check_redis(url: str) -> None:
    try:
        with redis.Redis.from_url(
            url, socket_timeout=CONNECT_SECONDS, socket_connect_timeout=CONNECT_SECONDS
        ) as client:
            client.ping()
    except (redis.RedisError, ValueError, OSError) as error:
        raise ServerError(OperationErrorCode.REDIS_REFUSES, reason=error) from error
