"""The demo on one's own machine"""

from kafkadash.domain.refusals.entry import Entry

_LOG = "Its log says why: {log}"

PYTHON_TOO_OLD = Entry("python-too-old", "", "kafkadash needs Python 3.11 or newer, this is {version}: run make setup.")
PORT_TAKEN = Entry("port-taken", "", "Port {port} is taken: name another one with --port, or leave --port out.")
NO_FREE_PORT = Entry("no-free-port", "", "No free port from {first} to {last} on {host}: name one (--port).")
DISK_TOO_FULL = Entry(
    "disk-too-full",
    "",
    "The disk of {folder} has {free} MiB free and the demo needs {needed} MiB: make room, or choose a folder on "
    "another disk (--folder DIR, and KAFKADASH_CACHE for Kafka's jars).",
)
NO_POSTGRESQL = Entry(
    "no-postgresql", "", "DATABASE_URL names no PostgreSQL: write postgres://user:password@host/name, or unset it."
)
DATABASE_REFUSES = Entry(
    "database-refuses",
    "",
    "The database in DATABASE_URL does not let us in ({reason}): correct it, or unset it for the embedded one.",
)
REDIS_REFUSES = Entry(
    "redis-refuses",
    "",
    "The Redis or Valkey in REDIS_URL does not answer ({reason}): correct it, or unset it for the embedded one.",
)
ANOTHER_DEMO = Entry(
    "another-demo",
    "",
    "Another demo runs in {folder}: stop it with Ctrl-C where it was started, or start this one with --folder DIR.",
)
SIGN_INS_UNREADABLE = Entry("sign-ins-unreadable", "", "{file} cannot be read: remove it, new passwords will be made.")
FOLDER_NOT_WRITABLE = Entry(
    "folder-not-writable",
    "",
    "The folder {folder} cannot be written to ({reason}): make it yours, or choose another one with --folder DIR.",
)
DEMO_CRASHED = Entry(
    "demo-crashed", "The demo failed in a way nobody thought of.", "The details are in {log}; report what it says."
)
DEMO_TEST_FAILED = Entry(
    "demo-test-failed", "The connection test of the demo's cluster {ended}.", "{why} Start the demo again."
)
DEMO_TOO_SLOW = Entry("demo-too-slow", "{otherwise} within {seconds:g} s.", "See the logs of the workers.")
PROCESS_TOO_SLOW = Entry("process-too-slow", "{name} did not end within {seconds:g} s.", _LOG)
PROCESS_FAILED = Entry("process-failed", "{name} failed ({how}).", _LOG)
PROCESS_ENDED = Entry(
    "process-ended", "{name} ended by itself ({how}), so the demo ends.", "See its log, then start the demo again."
)
