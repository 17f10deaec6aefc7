"""All settings of kafkadash, from the environment. ``<NAME>_FILE`` names a file that holds the value.

The embedded default needs no settings: ``manage.py demo`` starts its own PostgreSQL and Valkey, makes its own keys and
stores all of it in ``var/environment`` for other commands of the same checkout. Production sets ``DATABASE_URL``,
``REDIS_URL``, ``SECRET_KEY``, ``FIELD_KEYS`` and ``ALLOWED_HOSTS``.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

from kafkadash.core.logs import configure_logging
from kafkadash.core.messages import message_text
from kafkadash.core.setting_errors import SettingErrorCode, SettingKind

BASE_DIR = Path(__file__).resolve().parent.parent


class SettingSource(environ.FileAwareEnv):  # type: ignore[misc]
    """Says which setting cannot be used, and what to do, instead of what went wrong in reading it."""

    def get_value(self, var: str, cast: Any = None, **options: Any) -> Any:
        try:
            return super().get_value(var, cast, **options)
        except ValueError:
            if cast not in _KINDS:
                raise
            value = super().get_value(var)
            raise _refused(SettingErrorCode.SETTING_NOT_USABLE, name=var, value=value, kind=_KINDS[cast]) from None

    def networks(self, var: str) -> list[str]:
        """Addresses count as networks of one address."""
        texts: list[str] = self.list(var, default=[])
        for text in texts:
            try:
                ip_network(text)
            except ValueError:
                kind = SettingKind.NETWORKS
                raise _refused(SettingErrorCode.SETTING_NOT_USABLE, name=var, value=text, kind=kind) from None
        return texts

    def db_url_config(self, url: Any, engine: str | None = None) -> Any:
        try:
            return super().db_url_config(url, engine)
        except ValueError:
            raise _refused(SettingErrorCode.DATABASE_URL_WRONG) from None

    def email_url_config(self, url: Any, backend: str | None = None) -> Any:
        try:
            read = super().email_url_config(url, backend)
        except (ValueError, ImproperlyConfigured):
            raise _refused(SettingErrorCode.EMAIL_URL_WRONG) from None
        if url.scheme.startswith("smtp") and not read["EMAIL_HOST"]:
            raise _refused(SettingErrorCode.EMAIL_URL_WRONG)
        if url.scheme.startswith("smtp"):
            read["EMAIL_BACKEND"] = "kafkadash.notifications.mail.BoundedMailBackend"
        return read


def _refused(code: SettingErrorCode, /, **params: Any) -> ImproperlyConfigured:
    return ImproperlyConfigured(message_text(code, **params))


_KINDS = {int: SettingKind.WHOLE_NUMBER, float: SettingKind.NUMBER}
env = SettingSource()
VAR_DIR = Path(env.str("KAFKADASH_VAR", default=str(BASE_DIR / "var")))
_given_names = frozenset(os.environ)
if (VAR_DIR / "environment").is_file():
    environ.Env.read_env(VAR_DIR / "environment")  # never overwrites what is set in the environment
# What the file added: the next demo must not take the addresses of the one before for the user's wish.
NAMES_FROM_FILE = frozenset(os.environ) - _given_names

DEBUG = env.bool("DEBUG", default=False)
SECRET_KEY = env.str("SECRET_KEY", default="")
# Keys of before: sessions that were signed with them stay valid until the keys are taken away.
SECRET_KEY_FALLBACKS: list[str] = env.list("SECRET_KEY_FALLBACKS", default=[])
SHORTEST_SECRET_KEY = 32
if any(len(key) < SHORTEST_SECRET_KEY for key in (SECRET_KEY, *SECRET_KEY_FALLBACKS) if key):
    raise _refused(SettingErrorCode.SECRET_KEY_TOO_SHORT, least=SHORTEST_SECRET_KEY)
FIELD_KEYS: list[str] = env.list("FIELD_KEYS", default=[])
ALLOWED_HOSTS: list[str] = env.list("ALLOWED_HOSTS", default=["127.0.0.1", "localhost", "[::1]"])
CSRF_TRUSTED_ORIGINS: list[str] = env.list("CSRF_TRUSTED_ORIGINS", default=[])
# Addresses or networks of proxies whose X-Forwarded-For names who sent a request; others are taken as they come.
TRUSTED_PROXIES: list[str] = env.list("TRUSTED_PROXIES", default=[])
# /metrics is served to requests with the token or from one of the networks, and to users who may view all clusters.
METRICS_TOKEN = env.str("METRICS_TOKEN", default="").strip()
METRICS_NETWORKS: list[str] = env.networks("METRICS_NETWORKS")
SHORTEST_METRICS_TOKEN = 16
if METRICS_TOKEN and len(METRICS_TOKEN) < SHORTEST_METRICS_TOKEN:
    raise _refused(SettingErrorCode.METRICS_TOKEN_TOO_SHORT, least=SHORTEST_METRICS_TOKEN)

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "allauth",
    "allauth.account",
    "allauth.usersessions",
    "django_structlog",
    "kafkadash.accounts",
    "kafkadash.clusters",
    "kafkadash.notifications",
    "kafkadash.watchdog",
    "kafkadash.jobs",
    "kafkadash.monitoring",
    "kafkadash.export",
    "kafkadash.history",
    "kafkadash.changes",
    "kafkadash.topic_rules",
    "kafkadash.planning",
    "kafkadash.verify",
    "kafkadash.execution",
    "kafkadash.short_runs",
    "kafkadash.configs",
    "kafkadash.elections",
    "kafkadash.topics",
    "kafkadash.topic_alter",
    "kafkadash.group_changes",
    "kafkadash.broker_life",
    "kafkadash.throttle_removal",
    "kafkadash.move_cancels",
    "kafkadash.maintenance",
    "kafkadash.findings",
    "kafkadash.timeline",
    "kafkadash.live",
    "kafkadash.ops",
    "kafkadash.metrics",
    # The playground and the demo: not part of a production image.
    *(["kafkadash.devtools"] if find_spec("kafkadash.devtools") else []),
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "kafkadash.core.static_files.CompressedStaticFiles",  # answers for static files, which may be kept
    "kafkadash.core.middleware.no_store",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "kafkadash.accounts.sessions.IdleSessions",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django_structlog.middlewares.RequestMiddleware",
]

ROOT_URLCONF = "kafkadash.urls"
ASGI_APPLICATION = "kafkadash.asgi.application"

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "kafkadash.accounts.context.page",
                "kafkadash.changes.lists.page",
            ],
        },
    }
]

# Threads of one process that may hold a connection at once, plus two: the publisher and a spare.
WORKER_THREADS = env.int("WORKER_THREADS", default=6)
DATABASES: dict[str, Any] = {}
if env.str("DATABASE_URL", default=""):
    _database = env.db_url("DATABASE_URL")
    DATABASES["default"] = {
        **_database,
        "ENGINE": "kafkadash.core.database",
        "CONN_MAX_AGE": 0,
        "ATOMIC_REQUESTS": False,
        "OPTIONS": {
            "connect_timeout": 5,
            **_database.get("OPTIONS", {}),  # what stands behind the "?", for example host or sslmode
            "pool": {
                "min_size": 1,
                "max_size": env.int("DATABASE_POOL", default=WORKER_THREADS + 4),
                # A server that is back within this time was a slow page and nothing else.
                "timeout": env.float("DATABASE_WAIT", default=5),
            },
            "application_name": env.str("KAFKADASH_PROCESS", default="kafkadash"),
        },
    }
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Redis or Valkey carries Celery messages and live frames, and nothing that must not be lost.
REDIS_URL = env.str("REDIS_URL", default="")
CHANNEL_LAYERS: dict[str, Any] = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        # Encrypted, so that who reaches Redis can neither read what is shown nor put anything on people's pages.
        "CONFIG": {
            "hosts": [REDIS_URL],
            "prefix": "kafkadash",
            "symmetric_encryption_keys": [f"kafkadash.live:{key}" for key in (SECRET_KEY, *SECRET_KEY_FALLBACKS)],
        },
    }
}

CELERY_BROKER_URL = REDIS_URL.replace("unix://", "redis+socket://", 1)
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_BROKER_TRANSPORT_OPTIONS = {"visibility_timeout": 600, "socket_connect_timeout": 3, "socket_keepalive": True}
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_STORE_ERRORS_EVEN_IF_IGNORED = False
CELERY_TASK_DEFAULT_QUEUE = "collect"
CELERY_TASK_ROUTES = {
    "tick": {"queue": "tick"},
    "collect": {"queue": "collect"},
    "run_job": {"queue": "jobs"},
    "execute": {"queue": "execute"},
    "execute_items": {"queue": "execute"},
    "write_segments": {"queue": "collect"},
    "ingest": {"queue": "collect"},
    "notify": {"queue": "notify"},
}
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_REDIRECT_STDOUTS = False
CELERY_TIMEZONE = "UTC"
# No message expires: that is judged by the time of day of two machines, and one whose clock is off would drop all.
CELERY_BEAT_SCHEDULER = "kafkadash.beat:MonotonicScheduler"
CELERY_BEAT_SCHEDULE = {"tick": {"task": "tick", "schedule": 1.0}}

# How often each kind of fact is read from a cluster, in seconds; a cluster may override it in ``Cluster.cadence``.
COLLECT_INTERVALS: dict[str, float] = {
    "answers": env.float("INTERVAL_ANSWERS", default=15),
    "reassignments": env.float("INTERVAL_REASSIGNMENTS", default=10),
    "quorum": env.float("INTERVAL_QUORUM", default=10),
    "metadata": env.float("INTERVAL_METADATA", default=30),
    "log_dirs": env.float("INTERVAL_LOG_DIRS", default=60),
    "configs": env.float("INTERVAL_CONFIGS", default=30),
    "versions": env.float("INTERVAL_VERSIONS", default=600),
    "groups": env.float("INTERVAL_GROUPS", default=30),
    "traffic": env.float("INTERVAL_TRAFFIC", default=60),
    "catch_up": env.float("INTERVAL_CATCH_UP", default=30),
    "canary": env.float("INTERVAL_CANARY", default=30),
    "transactions": env.float("INTERVAL_TRANSACTIONS", default=300),
}
# These kinds are read at this pace instead where that is cheap: where a refresh then takes less than this share of one
# processor core of the worker (``CollectorRun.processor_s``). Never slower than above.
COLLECT_INTERVALS_CHEAP: dict[str, float] = {
    "answers": env.float("INTERVAL_ANSWERS_CHEAP", default=5),
    "quorum": env.float("INTERVAL_QUORUM_CHEAP", default=5),
    "metadata": env.float("INTERVAL_METADATA_CHEAP", default=10),
    "configs": env.float("INTERVAL_CONFIGS_CHEAP", default=10),
    "transactions": env.float("INTERVAL_TRANSACTIONS_CHEAP", default=60),
}
COLLECT_CHEAP_SHARE = env.float("COLLECT_CHEAP_SHARE", default=0.01)
# While anything moves, these kinds are read at this pace instead.
COLLECT_INTERVALS_MOVING: dict[str, float] = {
    "reassignments": env.float("INTERVAL_MOVING", default=2),
    "quorum": env.float("INTERVAL_MOVING", default=2),
}
# While replicas are behind that no reassignment adds, their log ends are read at this pace.
COLLECT_INTERVAL_BEHIND = env.float("INTERVAL_BEHIND", default=5)
# Networks in which Kafka may be connected, such as 10.20.0.0/16; everywhere if empty. It holds for what a name resolves
# to and for what brokers advertise as well.
KAFKA_NETWORKS: list[str] = env.networks("KAFKA_NETWORKS")
# Longest time one question to a cluster may take, in seconds.
KAFKA_DEADLINE = env.float("KAFKA_DEADLINE", default=8)
# Refused credentials are tried again after longer and longer pauses, this many seconds at most.
REFUSED_RETRY_MAX = env.float("REFUSED_RETRY_MAX", default=600)
# After so many refusals in a row they are not tried any more until a person changes something.
REFUSED_TRIES = env.int("REFUSED_TRIES", default=12)
# Where collectors leave segments and the pipeline its lake, results and checkpoints, each in a folder of its own: a URI
# that PyArrow and Spark both understand (file:, hdfs:, s3a:).
PIPELINE_URI = env.str("PIPELINE_URI", default=(VAR_DIR / "pipeline").as_uri())
# Seconds between two flushes of segments, 10 to 30: each is a file per kind.
SEGMENT_FLUSH_SECONDS = env.float("SEGMENT_FLUSH_SECONDS", default=10)
# Facts that wait because segments cannot be written: when they are more bytes than this, the oldest rows are dropped.
SEGMENT_OUTBOX_BYTES = env.int("SEGMENT_OUTBOX_BYTES", default=500_000_000)
# For tests only: as FAIL_POINTS, of the writer of segments (``export.flusher``).
SEGMENT_FAIL_POINTS = env.str("SEGMENT_FAIL_POINTS", default="")
# Seconds between two looks at what the pipeline has handed back.
INGEST_INTERVAL = env.float("INGEST_INTERVAL", default=1)
# For tests only: the point at which the ingest kills its process (``history.ingest``).
INGEST_FAIL_POINT = env.str("INGEST_FAIL_POINT", default="")
# Seconds between two steps of a run while anything moves.
EXECUTE_INTERVAL = env.float("EXECUTE_INTERVAL", default=2)
# A collector or a run's worker that has not renewed its lease for this long is considered gone, in seconds.
LEASE_TTL = env.float("LEASE_TTL", default=30)
# For tests only: the same of the worker of runs of items (``short_runs.fail_points``).
SHORT_RUN_FAIL_POINTS = env.str("SHORT_RUN_FAIL_POINTS", default="")
# For tests only: a file of points at which the worker of runs kills itself (``execution.worker.fail_points``).
FAIL_POINTS = env.str("FAIL_POINTS", default="")
# How long what was observed is kept, in hours.
# Before that, nothing is approved or started by a role that was given in the browser, and no policy is loosened.
RIGHTS_WAIT_HOURS = env.float("RIGHTS_WAIT_HOURS", default=24)
KEEP_COLLECTIONS_HOURS = env.float("KEEP_COLLECTIONS_HOURS", default=24)
# Lag of groups for charts: each sample for so long, then the worst of each five minutes.
KEEP_LAG_WHOLE_HOURS = env.float("KEEP_LAG_WHOLE_HOURS", default=1)
KEEP_LAG_HOURS = env.float("KEEP_LAG_HOURS", default=24)
# Records and bytes in by the minute, and figures of a cluster with them.
KEEP_TRAFFIC_HOURS = env.float("KEEP_TRAFFIC_HOURS", default=25)
KEEP_CANARY_HOURS = env.float("KEEP_CANARY_HOURS", default=24)
KEEP_QUORUM_HOURS = env.float("KEEP_QUORUM_HOURS", default=24)
# Leader changes of the quorum, and what left the cluster: brokers, nodes of the quorum, throttles of both.
KEEP_LEADERS_HOURS = env.float("KEEP_LEADERS_HOURS", default=24 * 30)
KEEP_GONE_HOURS = env.float("KEEP_GONE_HOURS", default=24 * 30)
KEEP_ENDED_REASSIGNMENTS_HOURS = env.float("KEEP_ENDED_REASSIGNMENTS_HOURS", default=24 * 30)
# Events of the timeline that collectors found between two readings, and the most that are kept of one cluster.
KEEP_EVENTS_HOURS = env.float("KEEP_EVENTS_HOURS", default=24 * 90)
MOST_EVENTS = env.int("MOST_EVENTS", default=500_000)
KEEP_CLOSED_FINDINGS_HOURS = env.float("KEEP_CLOSED_FINDINGS_HOURS", default=24 * 90)
# Messages to receivers of notifications, with their events.
KEEP_NOTIFICATIONS_HOURS = env.float("KEEP_NOTIFICATIONS_HOURS", default=24 * 30)
# Rows of runs that ended; their reports stay with their requests.
KEEP_MOVES_HOURS = env.float("KEEP_MOVES_HOURS", default=24 * 180)
# Segments in their folder, whether a pipeline has read them or not.
KEEP_SEGMENTS_HOURS = env.float("KEEP_SEGMENTS_HOURS", default=24 * 7)
KEEP_JOBS_HOURS = env.float("KEEP_JOBS_HOURS", default=24 * 7)
# Files of results, counted from when they were taken in; what was set aside stays longer, to be looked at.
KEEP_RESULTS_HOURS = env.float("KEEP_RESULTS_HOURS", default=1)
KEEP_SET_ASIDE_HOURS = env.float("KEEP_SET_ASIDE_HOURS", default=24 * 7)
# What the pipeline made of all samples.
KEEP_MINUTE_ROLLUPS_DAYS = env.float("KEEP_MINUTE_ROLLUPS_DAYS", default=90)
KEEP_HOUR_ROLLUPS_DAYS = env.float("KEEP_HOUR_ROLLUPS_DAYS", default=2 * 365)
KEEP_DAY_ROLLUPS_DAYS = env.float("KEEP_DAY_ROLLUPS_DAYS", default=10 * 365)
KEEP_LEDGER_DAYS = env.float("KEEP_LEDGER_DAYS", default=30)

# One plan, which a process of its own makes: seconds it may take, bytes of memory (address space) it may use.
PLAN_DEADLINE = env.float("PLAN_DEADLINE", default=300)
PLAN_WAIT = env.float("PLAN_WAIT", default=30)  # seconds that planning waits for the next refresh of old facts
PLAN_MEMORY = env.int("PLAN_MEMORY", default=3_000_000_000)

# Live updates: how long a socket may block on one send, how often rights are asked again, how often it says it lives.
LIVE_SEND_TIMEOUT = env.float("LIVE_SEND_TIMEOUT", default=5)
LIVE_RECHECK_SECONDS = env.float("LIVE_RECHECK_SECONDS", default=60)
LIVE_HEARTBEAT_SECONDS = env.float("LIVE_HEARTBEAT_SECONDS", default=15)
# Sockets that one person may have open at one web process; browsers close those of pages that nobody looks at.
LIVE_SOCKETS_PER_USER = env.int("LIVE_SOCKETS_PER_USER", default=50)
LIVE_FLUSH_SECONDS = env.float("LIVE_FLUSH_SECONDS", default=1)

AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "kafkadash.accounts.passwords.VariedPasswordValidator"},
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/"
ACCOUNT_ADAPTER = "kafkadash.accounts.adapter.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_SESSION_REMEMBER = False
ACCOUNT_LOGOUT_ON_GET = False
# Mail server for notifications, such as smtp+tls://user:password@mail.example.com:587; none if empty.
EMAIL_URL = env.str("EMAIL_URL", default="")
if EMAIL_URL:
    vars().update(env.email_url("EMAIL_URL"))
else:
    EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"
EMAIL_TIMEOUT = 10
EMAIL_FROM = env.str("EMAIL_FROM", default="")
# Address of kafkadash for people, such as https://kafkadash.example.com; without it notifications have no links.
PUBLIC_URL = env.str("PUBLIC_URL", default="")
# Networks that are not public and in which receivers of notifications may be, such as 10.20.0.0/16.
NOTIFICATION_NETWORKS: list[str] = env.networks("NOTIFICATION_NETWORKS")
# Dead-man URL of a monitoring service, such as https://hc-ping.com/ID: it gets a POST each minute while collection
# works.
DEAD_MAN_URL = env.str("DEAD_MAN_URL", default="")
if DEAD_MAN_URL and not (urlsplit(DEAD_MAN_URL).scheme in ("http", "https") and urlsplit(DEAD_MAN_URL).hostname):
    raise _refused(SettingErrorCode.DEAD_MAN_URL_WRONG)
# Where PagerDuty takes events; accounts in the EU have https://events.eu.pagerduty.com/v2/enqueue.
PAGERDUTY_URL = env.str("PAGERDUTY_URL", default="https://events.pagerduty.com/v2/enqueue")

# Sign-in attempts are counted in the database, so the count survives a restart and holds across processes.
CACHES: dict[str, Any] = {
    "default": {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "cache",
        # Counts of wrong tries to sign in are kept here: too few places, and other names push one's own count out.
        "OPTIONS": {"MAX_ENTRIES": 100_000},
    },
}

# What fields of a form may hold together; the size of whole requests is decided before (``core.middleware``).
DATA_UPLOAD_MAX_MEMORY_SIZE = 51_000_000

SESSION_COOKIE_AGE = 12 * 3600
# A session ends when nobody had a page of it open, and asked for none, for so long. People on call watch for hours
# without a click: an open page counts as use.
SESSION_IDLE_SECONDS = env.int("SESSION_IDLE_SECONDS", default=2 * 3600)
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SECURE_COOKIES = env.bool("SECURE_COOKIES", default=False)
SESSION_COOKIE_SECURE = SECURE_COOKIES
CSRF_COOKIE_SECURE = SECURE_COOKIES
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if env.bool("BEHIND_TLS_PROXY", default=False) else None

CONTENT_SECURITY_POLICY: dict[str, Any] = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "base-uri": ["'none'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
        "object-src": ["'none'"],
    }
}

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = VAR_DIR / "static"
SERVESTATIC_USE_FINDERS = True

LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"

LOG_LEVEL = env.str("LOG_LEVEL", default="INFO")
LOGGING_CONFIG = None
configure_logging(level=LOG_LEVEL, as_json=env.bool("LOG_JSON", default=not os.isatty(2)))
