"""Codes of what people are refused, and of what fails, in this app; the texts are in ``messages``."""

from __future__ import annotations

from enum import StrEnum


class DemoErrorCode(StrEnum):
    """Codes; people search for the values."""

    PYTHON_TOO_OLD = "python-too-old"
    PORT_TAKEN = "port-taken"
    NO_FREE_PORT = "no-free-port"
    DISK_TOO_FULL = "disk-too-full"
    NO_POSTGRESQL = "no-postgresql"
    DATABASE_REFUSES = "database-refuses"
    REDIS_REFUSES = "redis-refuses"
    ANOTHER_DEMO = "another-demo"
    DATA_OF_ANOTHER_VERSION = "demo-data-of-another-version"
    SIGN_INS_UNREADABLE = "sign-ins-unreadable"
    FOLDER_NOT_WRITABLE = "folder-not-writable"
    DEMO_CRASHED = "demo-crashed"
    DEMO_TEST_FAILED = "demo-test-failed"
    DEMO_TOO_SLOW = "demo-too-slow"
    PROCESS_TOO_SLOW = "process-too-slow"
    PROCESS_FAILED = "process-failed"
    PROCESS_ENDED = "process-ended"
