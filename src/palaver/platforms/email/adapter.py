"""One mailbox: mails come in by IMAP, and answers go out by SMTP in the thread of the mail that they answer."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from palaver.core.errors import (
    ConnectionLost,
    LeaseLost,
    PalaverError,
    PlatformError,
    SendRejected,
    SendUncertain,
    TargetUnreachable,
)
from palaver.core.source import Platform
from palaver.core.tasks import BackgroundTasks, run_together
from palaver.core.texts import say
from palaver.delivery.adapter import AccountInfo, AccountLink, Adapter, OutgoingFile, OutgoingMessage
from palaver.platforms.email import headers, outbound
from palaver.platforms.email.authentication import SenderRefused
from palaver.platforms.email.client import MailClient
from palaver.platforms.email.headers import MAX_SUBJECT_CHARS, ThreadState, get_domain, parse_header, parse_own_id
from palaver.platforms.email.imap import ImapRefused
from palaver.platforms.email.inbound import MailIgnored, list_addresses, read_envelope
from palaver.platforms.email.manifest import CAPABILITIES, MAX_FILE_BYTES, EmailSettings
from palaver.platforms.email.receiver import MailReceiver
from palaver.sessions.inbound import Cursor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.platforms.manifest import AccountPlace

log = logging.getLogger(__name__)

SILENCE_SECONDS: Final = 420.0
LOOKUP_SECONDS: Final = 10.0  # for the mail that is answered, if it is not remembered
CLOSE_SECONDS: Final = 5.0  # for copies of what was sent
CONFIRM_DELAYS: Final = (1.0, 10.0, 60.0, 300.0)  # after an uncertain mail: when to look for it in the Sent folder
SENT_DELAY: Final = timedelta(seconds=30)  # until a mail that the server has taken is certainly in the Sent folder
SENT_CURSOR: Final = "sent"
NO_AUTHSERV_WARNING: Final = say(
    "email.no_authserv_warning",
    "authserv_id is not set, so no sender can be verified and no mail is answered. Open a mail in"
    " this mailbox, show its source, and copy the first word after the topmost"
    " Authentication-Results: (such as mx.example.org) into authserv_id.",
)
UNVERIFIED_WARNING: Final = say(
    "email.unverified_warning",
    "allow_unverified_senders is on: anyone who can send mail to this mailbox can pretend to be"
    " anyone. Use it only where no stranger can send mail.",
)


class EmailAdapter(Adapter):
    platform = Platform.EMAIL
    capabilities = CAPABILITIES
    marks_sending = True

    def __init__(self, settings: EmailSettings, place: AccountPlace) -> None:
        self.account = place.account
        self.capabilities = replace(CAPABILITIES, finds_sent=settings.provider_saves_sent())
        self.silence_seconds = max(SILENCE_SECONDS, 3 * settings.poll_seconds)
        self._settings = settings
        self._client = MailClient(settings)
        self._receiver = MailReceiver(settings, self._client)
        self._threads = self._receiver.threads
        self._uncertain = asyncio.Event()  # a mail may have been sent: look for it
        self._copies = BackgroundTasks("palaver-email-copy")  # of sent mails, on their way to the Sent folder

    # ---- receiving -------------------------------------------------------------------------------------------

    async def probe(self) -> AccountInfo:
        """Sign in to both servers, and say what is missing."""
        connection = await self._client.connect()
        try:
            await connection.open_folder(self._settings.folder)
            has_idle = "IDLE" in connection.capabilities
        except ImapRefused as error:
            raise ConnectionLost.say(
                "email.check_setting_folder", "{reason}. Check the setting folder.", reason=error
            ) from None
        finally:
            await connection.close()
        await self._client.check_smtp()
        address = self._settings.address
        warnings: tuple[str, ...] = ()
        if self._settings.allow_unverified_senders:
            warnings = (UNVERIFIED_WARNING,)
        elif not self._settings.authserv_id:
            warnings = (NO_AUTHSERV_WARNING,)
        details = tuple(self._list_details(has_idle=has_idle))
        return AccountInfo(user_id=address, name=address, warnings=warnings, details=details)

    def _list_details(self, *, has_idle: bool) -> list[str]:
        details: list[str] = []
        if not has_idle:
            details.append(
                say(
                    "email.polling",
                    "The server can't push new mail: it is checked every {seconds} seconds.",
                    seconds=f"{self._settings.poll_seconds:g}",
                )
            )
        if self._receiver.unverified_count:
            details.append(
                say(
                    "email.unverified_senders",
                    "Mails not read because their sender is not verified: {count}. The last one: {reason}",
                    count=self._receiver.unverified_count,
                    reason=self._receiver.last_refusal,
                )
            )
        return details

    async def run(self, link: AccountLink) -> None:
        """Receive mails, and find out about mails that may have been sent."""
        await run_together(self._receiver.run(link), self._confirm_sent(link))

    async def _confirm_sent(self, link: AccountLink) -> None:
        """Look for mails of ours in the Sent folder: at the start, and after each one that may have been sent."""
        delays: Sequence[float] = (0.0,)
        while True:
            for delay in delays:
                await asyncio.sleep(delay)
                try:
                    await self._look_for_sent(link)
                except LeaseLost:
                    raise
                except PalaverError as error:
                    log.info("email_sent_folder_not_read", extra={"reason": str(error)})
            await self._uncertain.wait()
            self._uncertain.clear()
            delays = CONFIRM_DELAYS

    async def _look_for_sent(self, link: AccountLink) -> None:
        cursor = await link.load_cursor(SENT_CURSOR)
        raw_headers, following = await self._client.list_sent(cursor)
        for raw_header in raw_headers:
            message_id = headers.find_message_id(parse_header(raw_header)) or ""
            if (own := parse_own_id(message_id, self._settings.address)) is not None:
                await link.confirm(own.key, message_id)
        if following is not None and following != cursor:
            await link.save_cursor(Cursor(following, SENT_CURSOR))

    async def close(self) -> None:
        """Let copies of sent mails arrive, and close the connections."""
        await self._copies.end(CLOSE_SECONDS)
        await self._client.close()

    # ---- sending ---------------------------------------------------------------------------------------------

    async def send(self, message: OutgoingMessage) -> str:
        """Send a mail to everybody in the chat; return its Message-ID."""
        recipients = headers.split_addresses(message.address.chat_id)
        if recipients is None:
            raise TargetUnreachable.say(
                "email.bad_recipient",
                "{address} is not an e-mail address. Write it like ada@example.org, or several with commas.",
                address=repr(message.address.chat_id[:100]),
            )
        head = await self._make_head(message, recipients)
        mail = await self._build(head, message)
        try:
            refused = await self._client.send_mail(recipients, mail, attempt=message.attempt, mark=message.mark_sending)
        except SendUncertain:
            self._uncertain.set()
            raise
        if refused:
            log.warning("email_recipients_refused", extra={"count": len(refused), "mail": head.message_id})
        thread_id = headers.find_thread_of(message.key, message.address)
        self._threads.remember(message.address.chat_id, thread_id, head)
        if self._settings.should_save_sent():
            self._copies.start(self._save_copy(mail))
        return head.message_id

    async def find_sent(self, message: OutgoingMessage, sent_at: datetime) -> str | None:
        """Look for a mail in the Sent folder, where the provider itself puts each mail that it takes."""
        message_id = headers.make_own_id(message.key, message.address, self._settings.address)
        try:
            async with asyncio.timeout(LOOKUP_SECONDS):
                found = await self._client.find_headers(message_id, is_sent=True)
        except (PlatformError, TimeoutError) as error:
            raise SendUncertain.say(
                "email.sent_not_read",
                "Palaver stopped or lost the connection while sending this mail, and can't look for it in the Sent"
                " folder: {reason}",
                reason=str(error) or type(error).__name__,
            ) from None
        if any(headers.find_message_id(parse_header(each)) == message_id for each in found):
            return message_id
        if datetime.now(UTC) - sent_at < SENT_DELAY:
            raise SendUncertain.say(
                "email.not_in_sent_yet",
                "Palaver stopped or lost the connection while sending this mail. It is not in the Sent folder yet.",
            )
        return None

    async def _build(self, head: outbound.MailHead, message: OutgoingMessage) -> bytes:
        if message.file is None:
            mail = await asyncio.to_thread(outbound.build_mail, head, message.body)
        else:
            mail = await asyncio.to_thread(outbound.build_file_mail, head, message.file, await _read_file(message.file))
        return await asyncio.to_thread(mail.as_bytes)

    async def _make_head(self, message: OutgoingMessage, recipients: list[str]) -> outbound.MailHead:
        address, own = message.address, self._settings.address
        parent = await self._find_parent(message, recipients)
        if parent is not None:
            subject = outbound.make_reply_subject(parent.subject)
            references = outbound.shorten_references([*parent.references, parent.message_id])
        elif address.thread_id is None:
            subject = outbound.derive_subject(message.body, message.file)
            references = (first,) if (first := headers.make_first_part_id(message.key, address, own)) else ()
        else:
            subject = outbound.make_reply_subject("")
            references = (message.reply_to,) if message.reply_to else ()
        return outbound.MailHead(
            message_id=headers.make_own_id(message.key, address, own),
            sender=own,
            sender_name=self._settings.name,
            recipients=recipients,
            subject=subject,
            references=references,
            is_reply=address.thread_id is not None,
        )

    async def _find_parent(self, message: OutgoingMessage, recipients: list[str]) -> ThreadState | None:
        """Return the mail that a message answers, or the last one of its thread; None if it begins a thread."""
        chat_id, thread_id = message.address.chat_id, headers.find_thread_of(message.key, message.address)
        last = self._threads.find(chat_id, thread_id)
        if message.reply_to is None:
            if last is not None or message.address.thread_id is None:
                return last
            return await self._find_sent(thread_id, recipients)
        found = self._threads.find(chat_id, thread_id, message.reply_to)
        found = found or await self._find_received(message.reply_to, recipients)
        if found is None and last is not None:  # the mail is gone: answer it with what is known of its thread
            found = ThreadState(message.reply_to, last.subject, (*last.references, last.message_id))
        return found

    async def _find_received(self, message_id: str, people: list[str]) -> ThreadState | None:
        """Return a mail in the mailbox, if it is from these people: anyone may have sent one with the same id."""
        for raw_header in await self._find_headers(message_id, is_sent=False):
            with contextlib.suppress(MailIgnored, SenderRefused):
                envelope = read_envelope(raw_header, self._settings)
                if (envelope.message_id, envelope.people) == (message_id, frozenset(people)):
                    return envelope
        return None

    async def _find_sent(self, thread_id: str, people: list[str]) -> ThreadState | None:
        """Return the last mail of ours in a thread of these people: others may have a thread with the same name."""
        own_address = self._settings.address
        for raw_header in await self._find_headers(f".{thread_id}@{get_domain(own_address)}", is_sent=True):
            header = parse_header(raw_header)
            message_id = headers.find_message_id(header) or ""
            own = parse_own_id(message_id, own_address)
            if own is not None and own.thread_id == thread_id and set(list_addresses(header, "to")) == set(people):
                subject = headers.decode_words(header.get("subject"), MAX_SUBJECT_CHARS)
                return ThreadState(message_id, subject, tuple(headers.list_references(header)))
        return None

    async def _find_headers(self, id_text: str, *, is_sent: bool) -> list[bytes]:
        try:
            async with asyncio.timeout(LOOKUP_SECONDS):
                return await self._client.find_headers(id_text, is_sent=is_sent)
        except (PlatformError, TimeoutError) as error:
            log.info("email_thread_not_found", extra={"reason": str(error)})
            return []

    async def _save_copy(self, mail: bytes) -> None:
        try:
            await self._client.save_sent(mail)
        except PlatformError as error:  # the mail itself is sent
            log.warning("email_copy_not_saved", extra={"reason": str(error)})


async def _read_file(file: OutgoingFile) -> bytes:
    data = bytearray()
    if file.size <= MAX_FILE_BYTES:
        async with contextlib.aclosing(file.read()) as chunks:  # type: ignore[type-var]
            async for chunk in chunks:
                data += chunk
                if len(data) > MAX_FILE_BYTES:
                    break
            else:
                return bytes(data)
    raise SendRejected.say(
        "email.file_too_large",
        "The file is larger than {limit} MB, which most mail servers refuse.",
        limit=MAX_FILE_BYTES // 1_000_000,
    )
