"""How much a request may send: decided before any of it is kept."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kafkadash.core import middleware as body_limit
from kafkadash.core.middleware import USUAL, BodyLimit, Message, Scope

PAGE = "/changes/7/draft/what/"


class App:
    """Takes the whole body and says yes."""

    def __init__(self) -> None:
        self.received = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            self.received += len(message["body"])
            more = message.get("more_body", False)
        await send({"type": "http.response.start", "status": 200, "headers": []})


async def sent(
    path: str, chunks: list[bytes], *, length: int | None, app: App, known: bool = True, more: bool = False
) -> list[Message]:
    headers = [] if length is None else [(b"content-length", str(length).encode())]
    waiting = [
        {"type": "http.request", "body": c, "more_body": more or n < len(chunks)} for n, c in enumerate(chunks, 1)
    ]
    answers: list[Message] = []

    async def receive() -> Message:
        return waiting.pop(0) if waiting else await asyncio.get_running_loop().create_future()

    async def send(message: Message) -> None:
        answers.append(message)

    async def is_signed_in(_: Scope) -> bool:
        return known

    limited = BodyLimit(app, [(r"/changes/\d+/draft/what/", 10_000_000)], is_signed_in)
    await limited({"type": "http", "path": path, "headers": headers}, receive, send)
    assert not waiting, "what is dropped is read to its end, so that the browser shows the answer"
    return answers


async def test_a_body_of_usual_size_goes_through() -> None:
    app = App()
    answers = await sent("/login/", [b"x" * 10], length=10, app=app)
    assert (answers[0]["status"], app.received) == (200, 10)


async def test_a_body_that_is_too_large_never_reaches_the_application() -> None:
    app = App()
    answers = await sent("/login/", [b"x" * 1_000_000] * 3, length=3_000_000, app=app)
    assert (answers[0]["status"], app.received) == (413, 0)


async def test_the_page_that_takes_files_gets_more_and_is_told_when_it_was_too_much() -> None:
    app = App()
    assert (await sent(PAGE, [b"x" * 3_000_000], length=3_000_000, app=app))[0]["status"] == 200
    answers = await sent(PAGE, [b"x" * 6_000_000] * 2, length=12_000_000, app=app)
    assert answers[0]["status"] == 303
    assert dict(answers[0]["headers"])[b"location"] == b"/changes/7/draft/what/?too_large=12000000"
    assert app.received == 3_000_000


async def test_a_body_without_a_length_is_cut_off_where_it_gets_too_large() -> None:
    answers = await sent("/login/", [b"x" * 1_000_000] * 4, length=None, app=App())
    assert answers[0]["status"] == 413
    assert (b"connection", b"close") in answers[0]["headers"]


@pytest.mark.parametrize("length", [3_000_000, None])
async def test_large_file__sent_without_a_session__never_reaches_the_application(length: int | None) -> None:
    app = App()
    answers = await sent(PAGE, [b"x" * 1_000_000] * 3, length=length, app=app, known=False)
    assert (answers[0]["status"], app.received <= USUAL) == (413, True)


async def test_body__stops_in_the_middle__is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_limit, "PART_SECONDS", 0.01)
    app = App()
    answers = await sent("/login/", [b"x"], length=2, app=app, more=True)
    assert (answers[0]["status"], app.received) == (413, 1)


async def test_body_without_a_length__too_large_with_its_last_part__is_answered_at_once() -> None:
    async with asyncio.timeout(body_limit.PART_SECONDS / 2):
        answers = await sent("/login/", [b"x" * (USUAL + 1)], length=None, app=App())
    assert answers[0]["status"] == 413


async def test_body_without_a_length__never_ends__is_answered_after_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_limit, "REST_SECONDS", 0.01)
    async with asyncio.timeout(body_limit.PART_SECONDS / 2):
        answers = await sent("/login/", [b"x" * (USUAL + 1), b"x"], length=None, app=App(), more=True)
    assert (answers[0]["status"], (b"connection", b"close") in answers[0]["headers"]) == (413, True)
