"""What is logged: one event a line, in order, and never a secret."""

from __future__ import annotations

import io
import json
import logging
import warnings
from typing import TYPE_CHECKING, Any

import pytest
import structlog

from palaver.logs import GONE, configure_logs, without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def configured() -> Iterator[None]:
    """Puts logging back as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    names = ("httpx", "httpx2", "httpcore", "httpcore2", "uvicorn.error", "mcp", "asyncio")
    levels = {name: logging.getLogger(name).level for name in names}
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, was in levels.items():
        logging.getLogger(name).setLevel(was)
    logging.captureWarnings(False)
    structlog.reset_defaults()


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


SECRETS = {
    "Authorization: Bearer abcdef123456": "abcdef123456",
    "authorization='Basic dXNlcjpwYXNz'": "dXNlcjpwYXNz",
    "GET /x Cookie: palaver-8765=AbCdEf; other=1": "AbCdEf",
    "Set-Cookie: palaver=zzzzzz; HttpOnly": "zzzzzz",
    "open http://127.0.0.1:8765/sign-in#r2rHOT-JQJgjwKVRvjK1NTIICriwl0BOc6D": "r2rHOT-JQJgjwKVRvjK1NTIICriwl0BOc6D",
    "GET /api/shared/Zm9vYmFyYmF6cXV4 200": "Zm9vYmFyYmF6cXV4",
    "token pal_0123456789abcdefABCDEF was used": "0123456789abcdefABCDEF",
    "key sk-proj-abcdefghijklmnop refused": "abcdefghijklmnop",
    "AIzaSyA1234567890abcdefghijklmnopqrstuvw": "SyA1234567890abcdefghijklmnopqrstuvw",
    "postgresql://palaver:hunter2@db.example/palaver": "hunter2",
    '{"password": "correct horse"}': "correct",
    "password=hunter2&name=ada": "hunter2",
    "api_key: 'abc123'": "abc123",
    "bot 123456789:AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc": "AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc": "eyJzdWIiOiIxIn0",
}


@pytest.mark.parametrize(("text", "secret"), SECRETS.items())
@pytest.mark.parametrize("way", ["message", "argument", "field", "structlog", "exception"])
def test_no_secret_reaches_the_stream(configured: None, text: str, secret: str, way: str) -> None:
    stream = io.StringIO()
    configure_logs(stream)
    log = logging.getLogger("palaver.test")
    match way:
        case "message":
            log.warning(text.replace("%", "%%"))
        case "argument":
            log.warning("it was %s", text)
        case "field":
            log.warning("seen", extra={"what": {"inner": [text]}})
        case "structlog":
            structlog.stdlib.get_logger("palaver.test").warning("seen", what=text)
        case _:
            try:
                raise ValueError(text)
            except ValueError:
                log.exception("failed")
    assert stream.getvalue()
    assert secret not in stream.getvalue()
    assert GONE in stream.getvalue()


@pytest.mark.parametrize(
    "name", ["authorization", "Cookie", "set-cookie", "password", "new_password", "api_key", "token", "client_secret"]
)
def test_a_field_with_a_telling_name_is_removed_whatever_it_holds(configured: None, name: str) -> None:
    stream = io.StringIO()
    configure_logs(stream)
    logging.getLogger("palaver").warning("seen", extra={"headers": {name: "plain words"}, "input_tokens": 12})
    [line] = lines(stream)
    assert line["headers"] == {name: GONE}
    assert line["input_tokens"] == 12


@pytest.mark.parametrize(
    "text",
    [
        "turn t_ae25e9f40a68480a of session 20261115_141440_f2c9f0b5 has ended",
        "https://example.org/a?b=c",
        "input_tokens=100 output_tokens=10",
        "the sign-in page is at http://127.0.0.1:8765/sign-in",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert without_secrets(text) == text


def test_elsewhere_than_at_a_terminal_every_line_is_json(configured: None) -> None:
    stream = io.StringIO()
    configure_logs(stream)
    logging.getLogger("palaver.turns").info("turn %s was left", "t_1", extra={"session": "s"})
    structlog.stdlib.get_logger("palaver.web").warning("web.failed", code="store_busy")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("something is old", stacklevel=1)
    first, second, third = lines(stream)
    assert (first["event"], first["session"], first["level"], first["logger"]) == (
        "turn t_1 was left",
        "s",
        "info",
        "palaver.turns",
    )
    assert first["timestamp"].endswith("Z")
    assert (second["event"], second["code"]) == ("web.failed", "store_busy")
    assert "something is old" in third["event"]


def test_a_traceback_is_one_line_and_shows_no_values(configured: None) -> None:
    stream = io.StringIO()
    configure_logs(stream)
    hidden = "a value of the program"
    try:
        raise RuntimeError(len(hidden))
    except RuntimeError:
        logging.getLogger("palaver").exception("failed")
    [line] = lines(stream)
    assert "RuntimeError: 22" in line["exception"]
    assert stream.getvalue().count("a value of the program") <= 1  # the source line at most


def test_at_a_terminal_lines_are_for_people(configured: None) -> None:
    stream = Terminal()
    configure_logs(stream)
    logging.getLogger("palaver").warning("password=hunter2 was tried")
    assert "was tried" in stream.getvalue()
    assert "hunter2" not in stream.getvalue()
    assert not stream.getvalue().startswith("{")
