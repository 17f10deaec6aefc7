"""Codes of what people are refused, and of what fails, in this app; the texts are in ``messages``."""

from __future__ import annotations

from enum import StrEnum


class ServerErrorCode(StrEnum):
    """Codes; people search for the values."""

    # Servers that kafkadash starts itself, in a folder of one's own machine
    FILES_NOT_WRITTEN = "files-not-written"
    NEVER_STARTED = "never-started"
    DATABASE_RECORD_UNREADABLE = "database-record-unreadable"
    VALKEY_RECORD_UNREADABLE = "valkey-record-unreadable"
    NO_EMBEDDED_SERVER = "no-embedded-server"
    INITDB_FAILED = "initdb-failed"
    PROGRAM_TOO_SLOW = "program-too-slow"
    NO_USER_FOR_POSTGRESQL = "no-user-for-postgresql"
    NOT_STARTED = "not-started"
    NOT_RECORDED = "not-recorded"
    ENDED_EARLY = "ended-early"
    NOT_READY = "not-ready"
    FOLDER_IN_USE = "folder-in-use"
    PROCESSES_UNREADABLE = "processes-unreadable"
    NO_LOOPBACK_PORT = "no-loopback-port"
