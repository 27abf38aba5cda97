"""Receiving and sending against a real IMAP server and a real SMTP server, with faults."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any

import pytest

from palaver.core.errors import AccountRefused, ConnectionLost, SendRejected, SendRetryable
from palaver.delivery.adapter import OutgoingFile
from palaver.platforms.email import client as client_module, imap, receiver
from palaver.platforms.email.adapter import EmailAdapter
from palaver.platforms.email.inbound import UNREADABLE_TEXT
from palaver.platforms.email.receiver import MAX_FETCH_ATTEMPTS, Position
from palaver.testing import MemoryInbox, MemoryLink
from palaver.testing.contract_platform import read_ten_bytes
from support.gateway import TIMEOUT_SECONDS, wait_until
from support.platform_adapters import connect_adapter, make_place, wait_for_texts

from .certificates import make_certificate
from .conftest import make_adapter_for, make_outgoing, make_settings, reply_to
from .mail_server import ADDRESS, PASSWORD, MailServer

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import MakeAdapter

LONG_AGO = datetime.now(UTC) - timedelta(days=30)


# ---- where to begin ---------------------------------------------------------------------------------------


async def test_the_first_start_answers_nothing_old(server: MailServer, make_adapter: MakeAdapter) -> None:
    inbox = MemoryInbox()
    await server.say("old")
    async with connect_adapter(make_adapter(), inbox):
        await server.say("new")
        await wait_for_texts(inbox, "new")
    assert Position.from_text(inbox.cursors[""]).uid == 102


async def test_after_new_numbers_only_new_mails_are_read(server: MailServer, make_adapter: MakeAdapter) -> None:
    inbox = MemoryInbox()
    await server.deliver(server.make_mail("from before"), received_at=LONG_AGO)
    async with connect_adapter(make_adapter(), inbox):
        await server.say("first")
        await wait_for_texts(inbox, "first")
    await server.say("meanwhile")
    await server.renumber()
    async with connect_adapter(make_adapter(), inbox):
        await wait_for_texts(inbox, "first", "meanwhile")
        await server.say("last")
        await wait_for_texts(inbox, "first", "meanwhile", "last")


async def test_a_mail_that_only_looks_new_after_a_move_is_not_answered(
    server: MailServer, make_adapter: MakeAdapter
) -> None:
    """A server that moves mails may stamp all of them with today."""
    inbox = MemoryInbox()
    async with connect_adapter(make_adapter(), inbox):
        pass
    old, count = re.subn(rb"(?m)^Date: .*", b"Date: " + format_datetime(LONG_AGO).encode(), server.make_mail("ancient"))
    assert count == 1
    await server.deliver(old)
    await server.renumber()
    async with connect_adapter(make_adapter(), inbox):
        await server.say("new")
        await wait_for_texts(inbox, "new")


async def test_dying_in_the_middle_of_new_numbers_answers_nothing_old(
    server: MailServer, make_adapter: MakeAdapter
) -> None:
    inbox = MemoryInbox()
    async with connect_adapter(make_adapter(), inbox):
        await server.say("first")
        await wait_for_texts(inbox, "first")
    for number in range(3):
        await server.deliver(server.make_mail(f"from before {number}"), received_at=LONG_AGO)
    await server.renumber()
    async with connect_adapter(make_adapter(), inbox):
        pass
    position = Position.from_text(inbox.cursors[""])
    inbox.cursors[""] = str(position._replace(uid=501))  # it died after the first of them
    async with connect_adapter(make_adapter(), inbox):
        await server.say("new")
        await wait_for_texts(inbox, "first", "new")


async def test_reading_changes_nothing_in_the_mailbox(server: MailServer, make_adapter: MakeAdapter) -> None:
    inbox = MemoryInbox()
    async with connect_adapter(make_adapter(), inbox):
        await server.say("hello")
        await wait_for_texts(inbox, "hello")
    [mail] = (await server.get_folder())._messages.values()
    assert mail.permanent_flags == frozenset()


# ---- connections ------------------------------------------------------------------------------------------


async def test_a_server_that_cannot_push_is_asked() -> None:
    inbox = MemoryInbox()
    async with MailServer(has_idle=False) as server:
        settings = make_settings(server).model_copy(update={"poll_seconds": 0.02})  # people may set a second or more
        adapter = EmailAdapter(settings, make_place())
        async with connect_adapter(adapter, inbox):
            await server.say("hello")
            await wait_for_texts(inbox, "hello")
            info = await adapter.probe()
    assert "checked every 0.02 seconds" in info.details[0]
    assert b"IDLE" not in server.imap.sent


async def test_idle_is_renewed_and_its_end_is_progress(
    server: MailServer, make_adapter: MakeAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("palaver.platforms.email.receiver.IDLE_SECONDS", 0.01)
    inbox = MemoryInbox()
    async with connect_adapter(make_adapter(), inbox):
        await inbox.wait_until(lambda: inbox.connected_count > 5, TIMEOUT_SECONDS)
    assert server.imap.sent.count(b"DONE\r\n") >= 4


async def test_a_server_that_hangs_is_left(
    server: MailServer, make_adapter: MakeAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("palaver.platforms.email.receiver.IDLE_SECONDS", 0.01)
    monkeypatch.setattr(imap, "COMMAND_SECONDS", 0.1)
    server.imap.hold_after = b"DONE"
    with pytest.raises(ConnectionLost, match="does not answer"):
        await asyncio.wait_for(make_adapter().run(MemoryLink(MemoryInbox())), TIMEOUT_SECONDS)
    server.imap.release()


async def test_a_cut_while_idle_is_noticed_at_once(server: MailServer, make_adapter: MakeAdapter) -> None:
    inbox = MemoryInbox()
    task = asyncio.create_task(make_adapter().run(MemoryLink(inbox)))
    await wait_until(lambda: b"IDLE" in server.imap.sent)
    await server.imap.cut()
    with pytest.raises(ConnectionLost):
        await asyncio.wait_for(task, TIMEOUT_SECONDS)


async def test_tls_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context, trusted = make_certificate(tmp_path)
    _, other = make_certificate(tmp_path, address="127.0.0.2")
    tls = {"imap_security": "tls", "smtp_security": "tls"}
    async with MailServer(tls=context) as server:
        adapter = make_adapter_for(server, ca_file=trusted, **tls)
        assert (await adapter.probe()).name == ADDRESS
        await adapter.send(make_outgoing("encrypted"))
        await adapter.close()
        for ca_file in (None, other):
            with pytest.raises(AccountRefused, match=r"certificate of 127\.0\.0\.1 is not valid"):
                await make_adapter_for(server, ca_file=ca_file, **tls).probe()
        monkeypatch.setattr(imap, "CONNECT_SECONDS", 0.05)
        with pytest.raises(ConnectionLost, match="does not answer"):  # it waits for the encryption
            await make_adapter_for(server).probe()
    assert PASSWORD.encode() not in server.imap.sent
    assert [mail.text for mail in server.mails] == ["encrypted"]


async def test_starttls_is_required_when_it_is_set(tmp_path: Path, server: MailServer) -> None:
    context, trusted = make_certificate(tmp_path)
    starttls: dict[str, Any] = {"imap_security": "starttls", "smtp_security": "starttls", "ca_file": trusted}
    async with MailServer(starttls=context) as encrypted:
        adapter = make_adapter_for(encrypted, **starttls)
        await adapter.probe()
        await adapter.send(make_outgoing("encrypted"))
        await adapter.close()
        with pytest.raises(AccountRefused, match="certificate"):
            await make_adapter_for(encrypted, **{**starttls, "ca_file": None}).probe()
    assert b"AUTHENTICATE" not in encrypted.imap.sent
    for settings in ({"imap_security": "starttls"}, {"smtp_security": "starttls"}):  # the server does not offer it
        with pytest.raises((AccountRefused, ConnectionLost)):
            await make_adapter_for(server, **settings).probe()
    assert b"AUTH PLAIN" not in server.smtp.sent


async def test_a_password_that_only_smtp_refuses_is_told(server: MailServer, make_adapter: MakeAdapter) -> None:
    server.password = "another"
    with pytest.raises(AccountRefused, match="SMTP") as refused:
        await make_adapter().probe()
    assert PASSWORD not in str(refused.value)
    with pytest.raises(SendRetryable) as retryable:
        await make_adapter().send(make_outgoing())
    assert retryable.value.whole_account


async def test_a_folder_that_does_not_exist_is_told(server: MailServer, make_adapter: MakeAdapter) -> None:
    with pytest.raises(ConnectionLost, match="Check the setting folder"):
        await make_adapter(folder="Agent/Näme").probe()
    assert b'EXAMINE "Agent/N&AOQ-me"' in server.imap.sent


async def test_what_is_missing_is_said(server: MailServer, make_adapter: MakeAdapter) -> None:
    assert (await make_adapter().probe()).warnings == ()
    [warning] = (await make_adapter(authserv_id=None).probe()).warnings
    assert "Authentication-Results" in warning
    [warning] = (await make_adapter(allow_unverified_senders=True).probe()).warnings
    assert "pretend" in warning


# ---- receiving --------------------------------------------------------------------------------------------


async def test_an_unverified_sender_is_refused_and_the_reason_shown(
    server: MailServer, make_adapter: MakeAdapter, caplog: pytest.LogCaptureFixture
) -> None:
    inbox = MemoryInbox()
    adapter = make_adapter()
    async with connect_adapter(adapter, inbox):
        await server.say("I am Anna, really", dmarc="fail")
        await server.say("I am Anna")
        await wait_for_texts(inbox, "I am Anna")
        info = await adapter.probe()
    assert "email_sender_not_verified" in caplog.text
    assert "DMARC did not pass for example.com (result: fail)" in info.details[0]


async def test_files_come_both_ways(
    server: MailServer, make_adapter: MakeAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "CHUNK_BYTES", 1000)
    data = bytes(range(256)) * 20
    inbox = MemoryInbox()
    adapter = make_adapter()
    async with connect_adapter(adapter, inbox):
        await server.say("see", files=[("Grüße.bin", data), ("b.txt", b"x")])
        await wait_for_texts(inbox, "see")
        files = inbox.messages[0].files
        received = [b"".join([chunk async for chunk in file.open()]) for file in files]
        file = OutgoingFile("ten.txt", "text/plain", 10, read_ten_bytes)
        await adapter.send(reply_to(inbox, file=file, body=""))
        with pytest.raises(SendRejected, match="larger"):
            await adapter.send(make_outgoing("", file=replace(file, size=10**9)))
    assert [file.name for file in files] == ["Grüße.bin", "b.txt"]
    assert received == [data, b"x"]
    [attachment] = server.mails[0].message.iter_attachments()
    assert (attachment.get_filename(), attachment.get_payload(decode=True)) == ("ten.txt", b"0123456789")


async def test_damaged_and_huge_mails_do_not_stop_the_others(server: MailServer, make_adapter: MakeAdapter) -> None:
    inbox = MemoryInbox()
    verified = server.make_mail("x").partition(b"\r\n\r\n")[0].replace(b"Content-", b"X-")
    deep = b"".join(b"Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n" % (n, n) for n in range(70))
    async with connect_adapter(make_adapter(), inbox):
        await server.deliver(verified + b"\r\n" + deep + b"\r\nx\r\n")
        await server.deliver(b"\xff\xfe\x00 not a mail")
        await server.deliver(b"")
        await server.deliver(server.make_mail("x" * 1_000_000))
        await server.say("after all")
        await inbox.wait_until(lambda: "after all" in inbox.texts, TIMEOUT_SECONDS)
    unreadable, huge, last = inbox.texts
    assert unreadable == UNREADABLE_TEXT
    assert huge.endswith("left out.]")
    assert last == "after all"


async def test_a_mail_that_breaks_the_reader_does_not_stop_the_others(
    server: MailServer, make_adapter: MakeAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_once(*arguments: Any) -> str:
        monkeypatch.undo()
        raise ZeroDivisionError

    inbox = MemoryInbox()
    async with connect_adapter(make_adapter(), inbox):
        monkeypatch.setattr(receiver, "decode_text", fail_once)
        await server.say("unlucky")
        await wait_for_texts(inbox, UNREADABLE_TEXT)
        monkeypatch.setattr(receiver, "read_envelope", fail_once)
        await server.say("unlucky, too")
        await server.say("fine")
        await wait_for_texts(inbox, UNREADABLE_TEXT, "fine")


async def test_a_mail_that_the_server_cannot_read_is_tried_again_and_then_passed_over(
    server: MailServer, make_adapter: MakeAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each connection has an adapter of its own."""
    inbox = MemoryInbox()
    async with connect_adapter(make_adapter(), inbox):
        pass
    await server.say("damaged on the disk of the server")
    await server.say("fine")
    fetch = imap.ImapConnection.fetch

    async def refuse_first(self: imap.ImapConnection, uid: int, items: str) -> Any:
        if uid == 101:
            raise imap.ImapRefused("FETCH", b"NO [SERVERBUG] internal error")
        return await fetch(self, uid, items)

    monkeypatch.setattr(imap.ImapConnection, "fetch", refuse_first)
    for _ in range(MAX_FETCH_ATTEMPTS - 1):
        with pytest.raises(ConnectionLost, match="SERVERBUG"):
            await make_adapter().run(MemoryLink(inbox))
    async with connect_adapter(make_adapter(), inbox):
        await wait_for_texts(inbox, "fine")


async def test_an_html_mail_is_read(server: MailServer, make_adapter: MakeAdapter) -> None:
    inbox = MemoryInbox()
    async with connect_adapter(make_adapter(), inbox):
        await server.say("plain", html="<p>html</p>")
        data = server.make_mail("<p>only <b>html</b></p>", subject="x").replace(b"text/plain", b"text/html")
        await server.deliver(data)
        await wait_for_texts(inbox, "plain", "only html")
