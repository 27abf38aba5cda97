"""Sending through a real SMTP server: threads, groups, refusals, copies, and mails that may have arrived."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import aiosmtplib
import pytest

from palaver.core.errors import SendRejected, SendRetryable, SendUncertain, TargetUnreachable
from palaver.core.source import ChatType, Platform
from palaver.delivery.adapter import OutgoingFile
from palaver.platforms.email import adapter as adapter_module, client as client_module
from palaver.platforms.email.client import PARTIAL_SEND_ATTEMPT
from palaver.sessions.delivery import Address
from palaver.testing import MemoryInbox, MemoryLink
from palaver.testing.contract_platform import read_ten_bytes
from support.gateway import TIMEOUT_SECONDS
from support.platform_adapters import connect_adapter, wait_for_texts

from .conftest import make_outgoing, reply_to
from .mail_server import ADDRESS, ANNA, BOB, MailServer

if TYPE_CHECKING:
    from .conftest import MakeAdapter


# ---- threads ----------------------------------------------------------------------------------------------


async def test_an_answer_stands_in_the_thread_of_its_mail(server: MailServer, make_adapter: MakeAdapter) -> None:
    inbox = MemoryInbox()
    adapter = make_adapter()
    async with connect_adapter(adapter, inbox):
        first = await server.say("hello", subject="Lunch?", references=["root@x"])
        await wait_for_texts(inbox, "hello")
        answer = await adapter.send(reply_to(inbox))
        await server.say("again", subject="Re: Lunch?", references=[answer])
        await wait_for_texts(inbox, "hello", "again")
    [mail] = server.mails
    assert mail.recipients == (ANNA,)
    assert mail.message["Subject"] == "Re: Lunch?"
    assert mail.message["In-Reply-To"] == f"<{first}>"
    assert mail.message["References"].split() == ["<root@x>", f"<{first}>"]
    assert inbox.messages[0].source.thread_id == inbox.messages[1].source.thread_id
    assert inbox.messages[1].replied_message is not None
    assert inbox.messages[1].replied_message.is_own


async def test_after_a_restart_the_thread_is_found_in_the_mailbox(
    server: MailServer, make_adapter: MakeAdapter
) -> None:
    inbox = MemoryInbox()
    server.saves_sent = True
    async with connect_adapter(make_adapter(), inbox):
        await server.say("hello", subject="=?utf-8?q?Gr=C3=BC=C3=9Fe?=", references=["root@x"])
        await wait_for_texts(inbox, "hello")
    adapter = make_adapter()
    answer_id = await adapter.send(reply_to(inbox))
    await make_adapter().send(replace(reply_to(inbox, key="d_2.1"), reply_to=None))  # such as the result of a job
    answer, later = server.mails
    assert answer.message["Subject"] == "Re: Grüße"
    assert answer.message["References"].split()[0] == "<root@x>"
    assert later.message["In-Reply-To"] == f"<{answer_id}>"
    assert later.message["Subject"] == "Re: Grüße"


async def test_the_subject_of_another_person_is_not_taken_for_an_answer(
    server: MailServer, make_adapter: MakeAdapter
) -> None:
    """Servers look for a part of an id, and people choose their ids."""
    inbox = MemoryInbox()
    async with connect_adapter(make_adapter(), inbox):
        await server.say("hello", message_id="m", subject="Mine", sender=BOB)
        await wait_for_texts(inbox, "hello")
        await server.say("secret", message_id="m.secret@mail.example", subject="Secret of Anna")
        await server.say("same id", message_id="m", subject="Secret of Anna, too")
        await server.say("forged", message_id="m", subject="Forged", sender=BOB, dmarc="fail")
        await inbox.wait_until(lambda: len(inbox.texts) == 3, TIMEOUT_SECONDS)
    await make_adapter().send(reply_to(inbox, 0))
    [mail] = server.mails
    assert (mail.recipients, mail.message["Subject"], mail.message["References"]) == ((BOB,), "Re: Mine", "<m>")


async def test_a_thread_goes_on_only_among_the_same_people(server: MailServer, make_adapter: MakeAdapter) -> None:
    server.saves_sent = True
    await server.get_folder("Sent")
    thread = "0123456789abcdef"
    both = Address(Platform.EMAIL, f"{ANNA},{BOB}", thread)
    anna = Address(Platform.EMAIL, ANNA, thread)
    await server.say("x", message_id=f"palaver.x.{thread}@example.org", subject="Forged", sender=BOB)
    for number, address in enumerate((anna, both)):
        await server.say(
            "x", message_id=f"first{number}@x", subject=f"Subject {number}", to=[ADDRESS, *([BOB] * number)]
        )
        await make_adapter().send(make_outgoing(key=f"d_{number}.1", address=address, reply_to=f"first{number}@x"))
    await make_adapter().send(make_outgoing(key="d_5.1", address=anna))
    assert [mail.message["Subject"] for mail in server.mails] == ["Re: Subject 0", "Re: Subject 1", "Re: Subject 0"]


async def test_a_connection_that_was_ended_meanwhile_is_opened_again(
    server: MailServer, make_adapter: MakeAdapter
) -> None:
    adapter = make_adapter()
    await server.say("hello", subject="Lunch", message_id="first@x")
    address = Address(Platform.EMAIL, ANNA, "0123456789abcdef")
    for number in (1, 2):
        await adapter.send(make_outgoing(key=f"d_{number}.1", address=address, reply_to="first@x"))
        await server.imap.cut()
    assert [mail.message["Subject"] for mail in server.mails] == ["Re: Lunch", "Re: Lunch"]


async def test_a_mail_that_is_gone_is_answered_all_the_same(server: MailServer, make_adapter: MakeAdapter) -> None:
    address = Address(Platform.EMAIL, ANNA, "0123456789abcdef")
    await make_adapter().send(make_outgoing(address=address, reply_to="gone@x"))
    [mail] = server.mails
    assert (mail.message["In-Reply-To"], mail.message["Subject"]) == ("<gone@x>", "Re: your message")


async def test_an_address_alone_begins_a_thread(server: MailServer, make_adapter: MakeAdapter) -> None:
    adapter = make_adapter()
    first = await adapter.send(make_outgoing("# Report\n\nAll is well.", key="d_7.1"))
    file = OutgoingFile("ten.txt", "text/plain", 10, read_ten_bytes)
    await adapter.send(make_outgoing("", key="d_7.2", file=file))
    await adapter.send(make_outgoing("Another", key="d_8.1"))
    report, attached, another = server.mails
    assert (report.message["Subject"], report.message["In-Reply-To"]) == ("Report", None)
    assert report.message["Auto-Submitted"] == "auto-generated"
    assert (attached.message["Subject"], attached.message["In-Reply-To"]) == ("Re: Report", f"<{first}>")
    assert (another.message["Subject"], another.message["In-Reply-To"]) == ("Another", None)


async def test_a_group_is_answered_to_all(server: MailServer, make_adapter: MakeAdapter) -> None:
    inbox = MemoryInbox()
    adapter = make_adapter()
    async with connect_adapter(adapter, inbox):
        await server.say("hello all", to=[ADDRESS, BOB], cc=["carl@example.net"])
        await wait_for_texts(inbox, "hello all")
        await adapter.send(reply_to(inbox))
    assert inbox.messages[0].source.chat_type is ChatType.GROUP
    assert server.mails[0].recipients == (ANNA, BOB, "carl@example.net")


GROUP = Address(Platform.EMAIL, f"{ANNA},{BOB}", "0123456789abcdef")


async def test_one_refused_recipient_does_not_keep_the_mail_from_the_others(
    server: MailServer, make_adapter: MakeAdapter, caplog: pytest.LogCaptureFixture
) -> None:
    server.faults.recipients[BOB] = "550 5.1.1 No such person"
    await make_adapter().send(make_outgoing(address=GROUP))
    assert [mail.recipients for mail in server.mails] == [(ANNA,)]
    assert "email_recipients_refused" in caplog.text
    server.faults.recipients[ANNA] = "550 5.1.1 No such person"
    with pytest.raises(TargetUnreachable):
        await make_adapter().send(make_outgoing(address=GROUP))


async def test_a_recipient_who_has_to_wait_lets_all_wait_for_a_while(
    server: MailServer, make_adapter: MakeAdapter
) -> None:
    server.faults.recipients[BOB] = "450 4.7.1 Greylisted"
    with pytest.raises(SendRetryable):
        await make_adapter().send(make_outgoing(address=GROUP))
    assert server.mails == []
    await make_adapter().send(make_outgoing(address=GROUP, attempt=PARTIAL_SEND_ATTEMPT))
    assert [mail.recipients for mail in server.mails] == [(ANNA,)]


async def test_an_address_that_is_none_is_unreachable(make_adapter: MakeAdapter) -> None:
    for chat_id in ("anna", "anna@example.com\r\nRCPT TO:<x@y.z>"):
        with pytest.raises(TargetUnreachable, match="not an e-mail address"):
            await make_adapter().send(make_outgoing(address=Address(Platform.EMAIL, chat_id)))


async def test_an_address_with_other_letters_gets_its_mail(server: MailServer, make_adapter: MakeAdapter) -> None:
    await make_adapter().send(make_outgoing(address=Address(Platform.EMAIL, "änna@bücher.example")))
    assert [mail.recipients for mail in server.mails] == [("änna@xn--bcher-kva.example",)]


async def test_our_own_address_may_have_other_letters(
    server: MailServer, make_adapter: MakeAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = make_adapter(address="jürgen@example.org", username=ADDRESS)
    await adapter.send(make_outgoing())
    assert "jürgen@example.org" in server.mails[0].data.decode()
    supports = aiosmtplib.SMTP.supports_extension
    monkeypatch.setattr(aiosmtplib.SMTP, "supports_extension", lambda *args: "smtputf8" not in args and supports(*args))
    with pytest.raises(SendRejected, match="can't send from our address"):
        await adapter.send(make_outgoing())


async def test_a_mail_that_becomes_uncertain_during_the_last_look_is_looked_for_too(
    make_adapter: MakeAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter_module, "CONFIRM_DELAYS", (0.0, 0.0))
    adapter, looks, has_looked = make_adapter(), [0], asyncio.Event()

    async def look(_link: object) -> None:
        looks[0] += 1
        if looks[0] in {1, 3}:  # at the start, and during the last look for the mail before
            adapter._uncertain.set()
        elif looks[0] == 5:
            has_looked.set()

    monkeypatch.setattr(adapter, "_look_for_sent", look)
    task = asyncio.create_task(adapter._confirm_sent(MemoryLink(MemoryInbox())))
    await asyncio.wait_for(has_looked.wait(), TIMEOUT_SECONDS)
    task.cancel()
    await asyncio.wait({task})


async def test_a_cut_before_the_text_was_sent_is_certain(server: MailServer, make_adapter: MakeAdapter) -> None:
    server.smtp.cut_after = b"RCPT TO"
    with pytest.raises(SendRetryable):
        await make_adapter().send(make_outgoing())
    assert server.mails == []


async def test_a_server_that_does_not_answer_has_not_taken_the_mail(
    server: MailServer, make_adapter: MakeAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "SMTP_CONNECT_SECONDS", 0.1)
    server.smtp.hold()
    with pytest.raises(SendRetryable):
        await make_adapter().send(make_outgoing())
    server.smtp.release()


# ---- the Sent folder --------------------------------------------------------------------------------------


async def test_a_copy_of_each_answer_is_saved(server: MailServer, make_adapter: MakeAdapter) -> None:
    await server.get_folder("Sent")
    adapter = make_adapter(save_sent=True)
    await adapter.send(make_outgoing("Keep a copy"))
    await adapter.close()
    [copy] = await server.list_folder("Sent")
    assert b"Keep a copy" in copy


async def test_a_copy_that_cannot_be_saved_is_no_failure(
    server: MailServer, make_adapter: MakeAdapter, caplog: pytest.LogCaptureFixture
) -> None:
    adapter = make_adapter(save_sent=True, sent_folder="No such folder")
    assert await adapter.send(make_outgoing())
    await adapter.close()
    assert "email_copy_not_saved" in caplog.text


async def test_an_uncertain_mail_is_found_in_the_sent_folder(
    server: MailServer, make_adapter: MakeAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter_module, "CONFIRM_DELAYS", (0.01, 0.05, 0.2, 1.0))
    inbox = MemoryInbox()
    await server.get_folder("Sent")
    server.saves_sent = True
    adapter = make_adapter()
    async with connect_adapter(adapter, inbox):
        await inbox.wait_until(lambda: "sent" in inbox.cursors, TIMEOUT_SECONDS)
        server.faults.loses_answer = True
        with pytest.raises(SendUncertain):
            await adapter.send(make_outgoing(key="d_9.1"))
        await inbox.wait_until(lambda: "d_9.1" in inbox.confirmed, TIMEOUT_SECONDS)
    assert inbox.confirmed["d_9.1"] == server.mails[0].message_id


async def test_after_a_restart_what_was_sent_is_found_too(server: MailServer, make_adapter: MakeAdapter) -> None:
    inbox = MemoryInbox()
    await server.get_folder("Sent")
    async with connect_adapter(make_adapter(), inbox):
        await inbox.wait_until(lambda: "sent" in inbox.cursors, TIMEOUT_SECONDS)
    server.saves_sent = True
    await make_adapter().send(make_outgoing(key="d_9.1"))  # and the process dies before the outcome is stored
    async with connect_adapter(make_adapter(), inbox):
        await inbox.wait_until(lambda: "d_9.1" in inbox.confirmed, TIMEOUT_SECONDS)
