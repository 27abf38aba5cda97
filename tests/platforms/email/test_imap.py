"""The IMAP client with a server that answers what a test says: also with what no honest server would send."""

from __future__ import annotations

import asyncio
import re
import ssl
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import pytest

from palaver.core.errors import AccountRefused, ConnectionLost
from palaver.platforms.email import imap
from palaver.platforms.email.imap import MAX_RESPONSE_BYTES, ImapConnection, ImapRefused, quote_folder, read_folder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from palaver.platforms.email.manifest import Security

PASSWORD = 'a "b" \\c'
SIGN_IN = {b"CAPABILITY": b"* CAPABILITY IMAP4rev1 IDLE\r\n", b"LOGIN": b""}


@asynccontextmanager
async def serve(
    answers: dict[bytes, bytes], *, greeting: bytes = b"* OK ready\r\n", security: Security = "none"
) -> AsyncIterator[tuple[ImapConnection, list[bytes]]]:
    """Answer commands: with what is given for them and OK, or with what is given alone if it has a `{tag}`."""
    commands: list[bytes] = []
    ended = asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            writer.write(greeting)
            while line := await reader.readline():
                commands.append(line)
                tag, name, *_ = re.split(rb"[ \r]", line)
                answer = {**SIGN_IN, **answers}.get(name, b"")
                writer.write(answer.replace(b"{tag}", tag) if b"{tag}" in answer else answer + tag + b" OK done\r\n")
                await writer.drain()
        writer.close()
        ended.set()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    context = ssl.create_default_context()
    connection = ImapConnection("127.0.0.1", server.sockets[0].getsockname()[1], security, context)
    try:
        yield connection, commands
    finally:
        await connection.close()
        await ended.wait()
        server.close()


async def test_a_password_with_quotes_is_sent_as_it_is() -> None:
    async with serve({}) as (connection, commands):
        await connection.open("ada", PASSWORD)
    assert b'P2 LOGIN "ada" "a \\"b\\" \\\\c"\r\n' in commands


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"{tag} NO [AUTHENTICATIONFAILED] Invalid credentials\r\n", AccountRefused),
        (b"{tag} NO [UNAVAILABLE] Temporary problem\r\n", ConnectionLost),
        (b"{tag} NO Too many simultaneous connections\r\n", ConnectionLost),
        (b"{tag} BAD what?\r\n", AccountRefused),
    ],
)
async def test_a_wrong_password_is_told_from_a_busy_server(answer: bytes, error: type[Exception]) -> None:
    async with serve({b"LOGIN": answer}) as (connection, _):
        with pytest.raises(error) as raised:
            await connection.open("ada", PASSWORD)
    assert PASSWORD not in str(raised.value)
    assert not connection.is_open


async def test_a_server_that_is_not_there_is_told_with_its_port() -> None:
    async with serve({}) as (connection, _):
        await connection.open("ada", PASSWORD)
        unreachable = ImapConnection("127.0.0.1", 1, "none", None)
        with pytest.raises(ConnectionLost, match=r"127\.0\.0\.1 can't be reached at port 1 .* Check imap_host"):
            await unreachable.open("ada", PASSWORD)


async def test_a_server_that_says_goodbye_is_tried_again() -> None:
    async with serve({}, greeting=b"* BYE too busy\r\n") as (connection, _):
        with pytest.raises(ConnectionLost):
            await connection.open("ada", PASSWORD)


async def test_what_comes_before_the_encryption_is_not_trusted() -> None:
    answer = b"{tag} OK begin\r\n* CAPABILITY IMAP4rev1 AUTH=PLAIN\r\n"
    async with serve({b"STARTTLS": answer}, security="starttls") as (connection, commands):
        with pytest.raises(ConnectionLost, match="before the encryption"):
            await connection.open("ada", PASSWORD)
    assert commands == [b"P1 STARTTLS\r\n"]


async def test_much_that_comes_before_the_encryption_is_not_trusted_either() -> None:
    """It may fill exactly what is read at once, so that the rest waits behind it."""
    start, end = b"* OK ", b"\r\nP1 OK begin\r\n"
    answer = start + b"x" * (64 * 1024 - len(start) - len(end)) + end.replace(b"P1", b"{tag}")
    async with serve({b"STARTTLS": answer + b"* CAPABILITY X\r\n"}, security="starttls") as (connection, _):
        with pytest.raises(ConnectionLost, match="before the encryption"):
            await connection.open("ada", PASSWORD)


@pytest.mark.parametrize(
    "huge",
    [
        b"* 1 FETCH (UID 1 X " + b"(" * (MAX_RESPONSE_BYTES + 10) + b"\r\n",
        b"* 1 FETCH (UID 1 X {%d}\r\n" % (MAX_RESPONSE_BYTES + 10) + b"x" * (MAX_RESPONSE_BYTES + 10) + b")\r\n",
        b"* 1 FETCH (UID 1 X" + b' "' + b"x" * MAX_RESPONSE_BYTES + b'" Y {5}\r\n(\r\n"(' + b")\r\n",
        b'* 1 FETCH (UID 1 X "\r\n',
        b"* 1 FETCH (UID 1 X ((((\r\n",
        b"* 1 FETCH\r\n",
        b"* FETCH (\r\n",
        b"*\r\n\r\n+ hello\r\n",
    ],
)
async def test_a_response_that_is_too_large_or_damaged_is_passed_over(huge: bytes) -> None:
    good = b"* 2 FETCH (UID 2 X {3}\r\n)(\r)\r\n"
    async with serve({b"UID": huge + good}) as (connection, _):
        await connection.open("ada", PASSWORD)
        assert await connection.fetch(2, "X") == {"UID": b"2", "X": b")(\r"}
        await connection.run("NOOP", b"NOOP")  # nothing of it is left to be read as the answer


async def test_what_the_server_says_of_other_mails_meanwhile_is_not_taken_for_the_one_that_was_asked_for() -> None:
    """A person reads along in a mail program, and the flags of other mails change."""
    news = b"* 1 FETCH (FLAGS (\\Seen) UID 1)\r\n"
    async with serve({b"UID": news + b"* 2 FETCH (UID 2 X y)\r\n* 2 FETCH (FLAGS () UID 2)\r\n"}) as (connection, _):
        await connection.open("ada", PASSWORD)
        assert await connection.fetch(2, "X") == {"UID": b"2", "X": b"y", "FLAGS": []}


@pytest.mark.parametrize("line", [b"* 1 EXPUNGE\r\n", b"* " + b"x" * 1_000_000 + b"\r\n"])
async def test_a_server_that_never_ends_is_left(line: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imap, "MAX_RESPONSES", 1000)
    async with serve({b"NOOP": line * (1100 if len(line) < 100 else 20) + b"{tag} OK\r\n"}) as (connection, _):
        await connection.open("ada", PASSWORD)
        with pytest.raises(ConnectionLost, match="too much"):
            await connection.run("NOOP", b"NOOP")


async def test_a_response_of_endless_literals_takes_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imap, "MAX_RESPONSE_BYTES", 10_000)
    answer = b"* X " + b"a{0}\r\n" * 10_000 + b"\r\n"
    async with serve({b"NOOP": answer}) as (connection, _):
        await connection.open("ada", PASSWORD)
        [response] = await connection.run("NOOP", b"NOOP")
    assert not response.is_complete
    assert sum(map(len, response.fragments)) <= 10_000


@pytest.mark.parametrize("numbers", [b" ".join([b"1234567"] * 300_000), b"1" * 5000])
async def test_a_list_of_mails_that_cannot_be_read_is_told(numbers: bytes) -> None:
    async with serve({b"UID": b"* SEARCH " + numbers + b"\r\n"}) as (connection, _):
        await connection.open("ada", PASSWORD)
        with pytest.raises(ConnectionLost, match="list of mails"):
            await connection.search(b"ALL")


async def test_a_refused_command_leaves_the_connection_usable() -> None:
    async with serve({b"EXAMINE": b"{tag} NO no such \x1b[31mfolder.\r\n"}) as (connection, _):
        await connection.open("ada", PASSWORD)
        with pytest.raises(ImapRefused, match=r"NO no such \[31mfolder$"):
            await connection.open_folder("x")
        await connection.run("NOOP", b"NOOP")


async def test_a_command_is_one_line() -> None:
    async with serve({}) as (connection, commands):
        await connection.open("ada", PASSWORD)
        with pytest.raises(ValueError, match="one line"):
            await connection.search(b'HEADER X "\r\nP9 DELETE INBOX')
    assert not any(b"DELETE" in command for command in commands)


async def test_a_mail_that_came_during_another_command_is_news() -> None:
    answers = {b"UID": b"* SEARCH 1\r\n* 7 EXISTS\r\n"}
    async with serve(answers) as (connection, commands):
        await connection.open("ada", PASSWORD)
        assert await connection.search(b"ALL") == [1]
        await connection.wait_for_mail(60)  # returns at once
    assert not any(b"IDLE" in command for command in commands)


@pytest.mark.parametrize(
    ("name", "encoded"),
    [("Sent", b'"Sent"'), ("A & B", b'"A &- B"'), ("Gesendet/Größe 日本", b'"Gesendet/Gr&APYA3w-e &ZeVnLA-"')],
)
def test_names_of_folders_are_encoded(name: str, encoded: bytes) -> None:
    assert quote_folder(name) == encoded
    assert read_folder(encoded.strip(b'"')) == name
