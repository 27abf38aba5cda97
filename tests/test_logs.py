"""Logging: one event per line, and never a secret."""

from __future__ import annotations

import io
import json
import logging
import warnings
from typing import TYPE_CHECKING, Any

import pytest

from palaver.core import logs
from palaver.core.logs import REMOVED, configure_logging, remove_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def restore_logging() -> Iterator[None]:
    """Restores the configuration of logging after the test."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    names = ("httpx", "httpx2", "httpcore", "httpcore2", "uvicorn.error", "mcp", "asyncio")
    levels = {name: logging.getLogger(name).level for name in names}
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, level_before in levels.items():
        logging.getLogger(name).setLevel(level_before)
    logging.captureWarnings(False)


def parse_lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


SECRETS_IN_TEXT = {
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
    "POST https://api.telegram.org/bot123456789:AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bd/getMe": (
        "AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bd"
    ),
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc": "eyJzdWIiOiIxIn0",
}


@pytest.mark.parametrize(("text", "secret"), SECRETS_IN_TEXT.items())
@pytest.mark.parametrize("logged_as", ["message", "argument", "field", "exception"])
def test_no_secret_reaches_the_output(restore_logging: None, text: str, secret: str, logged_as: str) -> None:
    stream = io.StringIO()
    configure_logging(stream)
    log = logging.getLogger("palaver.test")
    match logged_as:
        case "message":
            log.warning(text.replace("%", "%%"))
        case "argument":
            log.warning("value: %s", text)
        case "field":
            log.warning("event", extra={"field": {"inner": [text]}})
        case _:
            try:
                raise ValueError(text)
            except ValueError:
                log.exception("event")
    assert stream.getvalue()
    assert secret not in stream.getvalue()
    assert REMOVED in stream.getvalue()


@pytest.mark.parametrize(
    "name", ["authorization", "Cookie", "set-cookie", "password", "new_password", "api_key", "token", "client_secret"]
)
def test_a_field_with_a_secret_name_is_removed_whatever_its_value(restore_logging: None, name: str) -> None:
    stream = io.StringIO()
    configure_logging(stream)
    logging.getLogger("palaver").warning("event", extra={"headers": {name: "plain words"}, "input_tokens": 12})
    [line] = parse_lines(stream)
    assert line["headers"] == {name: REMOVED}
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
def test_other_text_is_unchanged(text: str) -> None:
    assert remove_secrets(text) == text


def test_without_a_terminal_every_line_is_json(restore_logging: None) -> None:
    stream = io.StringIO()
    configure_logging(stream)
    logging.getLogger("palaver.turns").info("turn %s was released", "t_1", extra={"session": "s"})
    logging.getLogger("palaver.web").warning("web.failed", extra={"code": "store_busy"})
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("this is deprecated", stacklevel=1)
    first, second, third = parse_lines(stream)
    assert (first["event"], first["session"], first["level"], first["logger"]) == (
        "turn t_1 was released",
        "s",
        "info",
        "palaver.turns",
    )
    assert first["timestamp"].endswith("Z")
    assert (second["event"], second["code"]) == ("web.failed", "store_busy")
    assert "this is deprecated" in third["event"]


def test_a_traceback_is_one_line_and_shows_no_values_of_variables(restore_logging: None) -> None:
    stream = io.StringIO()
    configure_logging(stream)
    local_value = "a value of the program"
    try:
        raise RuntimeError(len(local_value))
    except RuntimeError:
        logging.getLogger("palaver").exception("event")
    [line] = parse_lines(stream)
    assert "RuntimeError: 22" in line["exception"]
    assert stream.getvalue().count("a value of the program") <= 1  # at most in the source line


def test_at_a_terminal_lines_are_formatted_for_people(restore_logging: None) -> None:
    stream = Terminal()
    configure_logging(stream)
    logging.getLogger("palaver").warning("password=hunter2 was rejected")
    assert "was rejected" in stream.getvalue()
    assert "hunter2" not in stream.getvalue()
    assert not stream.getvalue().startswith("{")


def test_at_a_terminal_fields_follow_the_event_and_a_traceback_is_below(restore_logging: None) -> None:
    stream = Terminal()
    configure_logging(stream)
    try:
        raise RuntimeError("broken")
    except RuntimeError:
        logging.getLogger("palaver.web").exception("failed", extra={"place": "Lisbon", "name_of": "a\x1b[2J b"})
    first, *others = stream.getvalue().splitlines()
    assert first.endswith("failed\x1b[0m [palaver.web] place=Lisbon name_of='a\\x1b[2J b'")
    assert others[0] == "Traceback (most recent call last):"
    assert others[-1] == "RuntimeError: broken"


# ---- repeated lines --------------------------------------------------------------------------------------


class FakeTime:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def fake_time(restore_logging: None, monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    fake = FakeTime()
    monkeypatch.setattr("palaver.core.logs.time.monotonic", fake)
    return fake


def test_a_warning_that_repeats_is_written_once_per_interval_with_a_count(fake_time: FakeTime) -> None:
    stream = io.StringIO()
    configure_logging(stream)
    log = logging.getLogger("palaver.web.server")
    for _ in range(10_000):
        log.warning("accept_failed", extra={"error": "no files"})
    fake_time.seconds += logs.INTERVAL_SECONDS
    log.warning("accept_failed", extra={"error": "no files"})
    first, count, second = parse_lines(stream)
    assert first["event"] == second["event"] == "accept_failed"
    assert (count["event"], count["repeated_event"], count["left_out"]) == ("log_lines_left_out", "accept_failed", 9999)
    assert (count["level"], count["logger"]) == ("warning", "palaver.web.server")


def test_warnings_with_different_fields_are_all_written_up_to_a_limit(fake_time: FakeTime) -> None:
    stream = io.StringIO()
    configure_logging(stream)
    for number in range(1000):
        logging.getLogger("palaver").warning("delivery_uncertain", extra={"delivery": number})
        logging.getLogger("other").error("turn_failed", extra={"turn": number})
        logging.getLogger("third").error("failed: %s", number)
    assert len(parse_lines(stream)) == 3 * logs.MAX_LINES_PER_KIND


def test_the_count_of_left_out_lines_is_written_with_any_later_line_or_at_the_end(fake_time: FakeTime) -> None:
    stream = io.StringIO()
    configure_logging(stream)
    for event in ("one", "one", "two", "two"):
        logging.getLogger("palaver").warning(event)
        fake_time.seconds += 3
    fake_time.seconds += 3
    logging.getLogger("palaver").info("something else")
    logging.getLogger().handlers[0].close()
    events = [(line["event"], line.get("repeated_event")) for line in parse_lines(stream)]
    assert events == [
        *(("one", None), ("two", None)),
        *(("log_lines_left_out", "one"), ("something else", None), ("log_lines_left_out", "two")),
    ]


def test_information_is_never_left_out(fake_time: FakeTime) -> None:
    stream = io.StringIO()
    configure_logging(stream)
    for _ in range(100):
        logging.getLogger("palaver").info("server_ready")
    assert len(parse_lines(stream)) == 100


def test_the_same_error_with_a_traceback_is_written_once(fake_time: FakeTime) -> None:
    stream = io.StringIO()
    configure_logging(stream)
    for error in (OSError("too many open files"), OSError("too many open files"), ValueError("another")):
        try:
            raise error
        except (OSError, ValueError):
            logging.getLogger("palaver").exception("failed")
    assert len(parse_lines(stream)) == 2
