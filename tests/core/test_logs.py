"""A planted password appears in no log, at no level, from nobody's logger, in neither form."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import structlog
from django.test import Client

from kafkadash.clusters.models import Cluster
from kafkadash.core.logs import HIDDEN, configure_logging, hide_values, log_formatter, remember_secrets, without_secrets
from kafkadash.kafka.api import KafkaFailure
from kafkadash.kafka.connect import admin_for

PLANTED = "pl4nted-p4ss\\w'ord"
LEVELS = ("debug", "info", "warning", "error", "critical")
FOREIGN = (
    "kafka",
    "kafka.conn",
    "celery",
    "celery.app.trace",
    "django",
    "django.request",
    "kombu",
    "uvicorn",
    "anybody",
)


@pytest.fixture(params=[True, False], ids=["json", "text"])
def written(request: pytest.FixtureRequest) -> Iterator[io.StringIO]:
    """What the product's handler writes, with every logger at its most talkative."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(log_formatter(as_json=request.param, before=[structlog.stdlib.add_log_level]))
    loggers = [logging.getLogger(name) for name in (None, "kafkadash", *FOREIGN)]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.DEBUG)
    logging.getLogger().addHandler(handler)
    yield stream
    logging.getLogger().removeHandler(handler)
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


def assert_hidden(stream: io.StringIO, planted: str = PLANTED) -> None:
    text = stream.getvalue()
    assert HIDDEN in text
    for form in (planted, repr(planted)[1:-1], json.dumps(planted)[1:-1]):
        assert form not in text


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    "key",
    ["password", "sasl_password", "SASL_PASSWORD", "client_secret", "token", "key_pem", "Authorization", "cookie"],
)
def test_a_secret_looking_key_hides_its_value(level: str, key: str, written: io.StringIO) -> None:
    values = {key: PLANTED, "nested": {"list": [{key: PLANTED}]}}
    getattr(structlog.get_logger("kafkadash.test"), level)("cluster.connecting", **values)
    assert "cluster.connecting" in written.getvalue()
    assert_hidden(written)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", FOREIGN)
def test_a_library_that_prints_its_configuration_shows_no_password(level: str, name: str, written: io.StringIO) -> None:
    log = getattr(logging.getLogger(name), level)
    config = {"sasl_mechanism": "PLAIN", "sasl_plain_username": "u", "sasl_plain_password": PLANTED}
    log("starting with %s", config)
    log("starting with %r", json.dumps(config))
    log("password=%s, retries=3", "hunter2hunter2")
    log("connecting to redis://:%s@localhost:6379/0", "hunter2hunter2")
    log('sasl.jaas.config=PlainLoginModule required username="u" password="hunter2hunter2";')
    assert_hidden(written)
    assert_hidden(written, "hunter2hunter2")
    assert "PLAIN" in written.getvalue()
    assert "retries=3" in written.getvalue()


@pytest.mark.parametrize("name", ["kafkadash.test", *FOREIGN])
def test_a_traceback_shows_no_password_that_this_process_has_read(name: str, written: io.StringIO) -> None:
    secret = "unmarked-9f8e7d6c"
    remember_secrets(secret)
    try:
        raise ValueError(f"cannot use {secret} here")
    except ValueError:
        logging.getLogger(name).exception("it went wrong")
        if name == "kafkadash.test":
            structlog.get_logger(name).exception("it went wrong")
    assert secret not in written.getvalue()
    assert "Traceback" in written.getvalue()
    assert f"cannot use {HIDDEN} here" in written.getvalue()


@pytest.mark.parametrize("level", LEVELS)
def test_a_secret_of_the_database_is_hidden_wherever_it_turns_up(level: str, db: None, written: io.StringIO) -> None:
    Cluster.objects.create(
        name="s",
        slug="s",
        bootstrap_servers="k:1",
        security_protocol="SASL_PLAINTEXT",
        sasl_password="from-the-database-1",
    )
    secret = Cluster.objects.get(slug="s").connection().security.sasl_password
    assert secret == "from-the-database-1"
    getattr(logging.getLogger("kafka.sasl"), level)("sending %r", b"\0user\0" + secret.encode())
    getattr(structlog.get_logger("kafkadash.test"), level)("odd", thing=object(), text=f"<{secret}>")
    assert_hidden(written, secret)


def test_the_kafka_client_at_its_most_talkative_shows_no_password(db: None, written: io.StringIO) -> None:
    cluster = Cluster.objects.create(
        name="s",
        slug="s",
        bootstrap_servers="127.0.0.1:1",
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_username="user",
        sasl_password=PLANTED,
    )
    admin = admin_for(cluster.connection())
    try:
        with pytest.raises(KafkaFailure) as caught:
            admin.describe_cluster(deadline=3)
    finally:
        admin.close()
    logging.getLogger("kafkadash.test").error("password=%s", PLANTED, exc_info=caught.value)
    assert_hidden(written)


def test_a_sign_in_shows_no_password(db: None, client: Client, written: io.StringIO) -> None:
    client.post("/login/", {"login": "ann", "password": "typed-by-ann-1"})
    assert "/login/" in written.getvalue()
    assert "typed-by-ann-1" not in written.getvalue()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgres://kd:s3cret@db/kd?sslmode=require", f"postgres://kd:{HIDDEN}@db/kd?sslmode=require"),
        ("redis://:p@ss@host:6379", f"redis://:{HIDDEN}@host:6379"),
        ("Authorization: Bearer abc.def", f"Authorization: {HIDDEN}"),
        ('{"api_token": "abc", "n": 1}', f'{{"api_token": {HIDDEN}, "n": 1}}'),
        ("{'password': 'it\\'s', 'n': 1}", f"{{'password': {HIDDEN}, 'n': 1}}"),
        ("sasl_username=eve sasl.username=eve", "sasl_username=eve sasl.username=eve"),
        ("sasl_username_password=abc", f"sasl_username_password={HIDDEN}"),
        ("sasl_mechanism=PLAIN sasl_password=abc", f"sasl_mechanism=PLAIN sasl_password={HIDDEN}"),
        ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nrest", f"{HIDDEN}\nrest"),
    ],
)
def test_what_is_hidden_in_a_text(text: str, shown: str) -> None:
    assert without_secrets(text) == shown
    assert without_secrets(shown) == shown, "a text is gone through more than once on its way"


@pytest.mark.parametrize(
    "text",
    [
        "http://127.0.0.1:8000/clusters/demo/",
        "the password was wrong",
        "3 tokens left",
        "no answer from kafka-1:9092 within 8 s",
        "kafka@example.org: 5 topics",
    ],
)
def test_ordinary_texts_are_left_alone(text: str) -> None:
    assert without_secrets(text) == text


def test_a_private_key_is_hidden_line_by_line() -> None:
    pem = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nline-of-a-key-2\n-----END PRIVATE KEY-----\n"
    remember_secrets(pem)
    assert without_secrets("bad line: line-of-a-key-2") == f"bad line: {HIDDEN}"
    assert without_secrets("-----BEGIN CERTIFICATE-----") == "-----BEGIN CERTIFICATE-----"


def test_hidden_values_can_be_stored_as_json() -> None:
    stored = hide_values({"password": "x", "n": 1, "none": None, "when": {1, 2}, "path": Path("/a")})
    assert json.loads(json.dumps(stored))["password"] == HIDDEN
    assert (stored["n"], stored["none"]) == (1, None)


def test_libraries_are_quiet_whatever_the_level_of_ours(reset_logging: None) -> None:
    configure_logging("DEBUG", as_json=False)
    assert not logging.getLogger("kafka.conn").isEnabledFor(logging.INFO)
    assert logging.getLogger("celery").isEnabledFor(logging.INFO)
    assert logging.getLogger("kafkadash.anything").isEnabledFor(logging.DEBUG)


def test_an_unknown_level_is_a_sentence(reset_logging: None) -> None:
    with pytest.raises(ValueError, match=r"LOG_LEVEL is 'LOUD'\. Use DEBUG"):
        configure_logging("LOUD", as_json=False)


def test_configured_twice_it_writes_once(reset_logging: None) -> None:
    configure_logging("INFO", as_json=False)
    configure_logging("INFO", as_json=False)
    assert sum(handler.get_name() == "kafkadash" for handler in logging.getLogger().handlers) == 1


def test_a_process_logs_to_standard_error_only() -> None:
    code = (
        "from kafkadash.core.logs import configure_logging; import logging, structlog, warnings;"
        "configure_logging('INFO', as_json=True);"
        "structlog.get_logger('kafkadash.x').info('ours', password='abc'); logging.getLogger('lib').warning('theirs');"
        "structlog.get_logger('kafkadash.x').debug('too much')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert done.stdout == ""
    assert [(line["event"], line["level"], line["logger"]) for line in lines] == [
        ("ours", "info", "kafkadash.x"),
        ("theirs", "warning", "lib"),
    ]
    assert lines[0]["password"] == HIDDEN
    assert lines[0]["timestamp"].endswith("Z")


@pytest.fixture
def reset_logging() -> Iterator[Callable[[], None]]:
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    yield lambda: None
    root.setLevel(level)
    for handler in [handler for handler in root.handlers if handler not in handlers]:
        root.removeHandler(handler)
    for handler in [handler for handler in handlers if handler not in root.handlers]:
        root.addHandler(handler)
