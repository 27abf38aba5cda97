"""Reads new mails of a mailbox in their order, and advances only after they are stored.

The cursor is the number (UID) of the last mail that was read, with the UIDVALIDITY that it belongs to. Whether a mail
is marked as read does not matter, and nothing in the mailbox is changed.

Always true: a mail that was in the mailbox before the first start is never answered. When the server gives its mails
new numbers (another UIDVALIDITY), those are read again that came at or after the last one; the inbox recognizes by
their Message-ID what was stored.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from palaver.core.errors import PalaverError
from palaver.gateway.intake import Intake
from palaver.platforms.email.authentication import SenderRefused
from palaver.platforms.email.body_text import MAX_TEXT_BYTES, MailParts, choose_parts, decode_text
from palaver.platforms.email.headers import MAX_HEADER_BYTES, ThreadCache, decode_file_name, parse_header
from palaver.platforms.email.imap import Folder, ImapConnection, ImapRefused
from palaver.platforms.email.imap_parsing import MimePart, ResponseUnreadable, Token, read_structure
from palaver.platforms.email.inbound import UNREADABLE_TEXT, MailIgnored, make_inbound, read_envelope
from palaver.sessions.inbound import Cursor, Inbound, InboundFile

if TYPE_CHECKING:
    from palaver.delivery.adapter import AccountLink
    from palaver.platforms.email.client import MailClient
    from palaver.platforms.email.manifest import EmailSettings

log = logging.getLogger(__name__)

IDLE_SECONDS: Final = 240.0  # then the command is renewed: servers end it after 29 minutes, routers much earlier
MAX_FETCH_ATTEMPTS: Final = 3  # for a mail that the server refuses to give out, in as many connections
REFUSED_CURSOR: Final = "refused"  # that mail, and how often it was refused
BUSY_SECONDS: Final = 1.0  # between two looks while files are downloaded
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
DATE_SLACK_SECONDS: Final = 2 * 86400  # that the clock of a sender may be wrong


class Position(NamedTuple):
    """A place in a mailbox; its text is the cursor."""

    uid_validity: int
    uid: int  # of the last mail that was read
    received_at: int  # when the server got that mail, in seconds
    recheck_until: int = 0  # mails up to this number were there when the numbers changed …
    recheck_since: int = 0  # … and are read only if they came at this time or later

    def __str__(self) -> str:
        return ":".join(map(str, self))

    @classmethod
    def from_text(cls, text: str) -> Position:
        return cls(*map(int, text.split(":")))


class MailReceiver:
    def __init__(self, settings: EmailSettings, client: MailClient) -> None:
        self._settings = settings
        self._client = client
        self._position = Position(0, 0, 0)
        self.threads = ThreadCache()
        self.unverified_count = 0  # mails that were not read because their senders are not verified
        self.last_refusal = ""  # why the last of them was not read

    async def run(self, link: AccountLink) -> None:
        """Receive mails until canceled. Raises ConnectionLost, AccountRefused and LeaseLost."""
        connection = await self._client.connect()
        try:
            folder = await connection.open_folder(self._settings.folder)
            await self._find_position(connection, folder, link)
            async with Intake(link) as intake:
                while True:
                    if self._position.uid < self._position.recheck_until:
                        await self._recheck(connection, intake, link)
                    await self._receive_found(connection, f"UID {self._position.uid + 1}:*", intake, link)
                    link.report_connected()
                    await self._wait(connection, intake)
        finally:
            await connection.close()

    async def _find_position(self, connection: ImapConnection, folder: Folder, link: AccountLink) -> None:
        stored = await link.load_cursor()
        last_uid = await connection.find_last_uid(folder)
        if stored is None:  # the first start: nothing old is answered
            self._position = Position(folder.uid_validity, last_uid, int(time.time()))
            await link.save_cursor(Cursor(str(self._position)))
            return
        position = Position.from_text(stored)
        if position.uid_validity != folder.uid_validity:
            log.warning("email_numbers_changed", extra={"folder": self._settings.folder})
            since = max(position.received_at, position.recheck_since)
            position = Position(folder.uid_validity, 0, since, recheck_until=last_uid, recheck_since=since)
            await link.save_cursor(Cursor(str(position)))
        self._position = position

    async def _recheck(self, connection: ImapConnection, intake: Intake, link: AccountLink) -> None:
        """Read those mails again, after the numbers have changed, that may have come after the last one."""
        last = self._position.recheck_until
        day = datetime.fromtimestamp(self._position.recheck_since, UTC) - timedelta(days=1)  # it has no time of day
        criteria = f"UID {self._position.uid + 1}:{last} SINCE {day.day}-{_MONTHS[day.month - 1]}-{day.year}"
        await self._receive_found(connection, criteria, intake, link, last)
        self._position = self._position._replace(uid=last)
        await intake.save_cursor(Cursor(str(self._position)))

    async def _receive_found(
        self, connection: ImapConnection, criteria: str, intake: Intake, link: AccountLink, last: float = math.inf
    ) -> None:
        start = self._position.uid
        for uid in await connection.search(criteria.encode()):
            if start < uid <= last:  # a server names the last mail even if there is no new one
                await self._receive(connection, uid, intake, link)
                link.report_connected()

    async def _receive(self, connection: ImapConnection, uid: int, intake: Intake, link: AccountLink) -> None:
        data = await self._fetch_header(connection, uid, link)
        raw_header = data.get("BODY[HEADER]")
        received_at = _parse_time(data.get("INTERNALDATE"))
        inbound = None
        if not isinstance(raw_header, bytes):
            log.info("email_gone", extra={"uid": uid})  # another mail program has moved or deleted it meanwhile
        elif self._is_new(uid, received_at, raw_header):
            inbound = await self._read_mail_safely(connection, uid, raw_header, received_at)
        self._position = self._position._replace(uid=uid, received_at=max(received_at, self._position.received_at))
        cursor = Cursor(str(self._position))
        if inbound is None:
            await intake.save_cursor(cursor)
        else:
            await intake.accept(inbound, cursor=cursor)

    async def _fetch_header(self, connection: ImapConnection, uid: int, link: AccountLink) -> dict[str, Token]:
        try:
            return await connection.fetch(uid, f"INTERNALDATE BODY.PEEK[HEADER]<0.{MAX_HEADER_BYTES}>")
        except ImapRefused as error:
            if not await self._should_pass_over(uid, link):
                raise
            log.warning("email_passed_over", extra={"uid": uid, "reason": str(error)})
            return {}

    async def _should_pass_over(self, uid: int, link: AccountLink) -> bool:
        """Count a refusal, and return whether it was the last attempt: a mail must not keep all others away.

        The count is stored: the next attempt is one of another connection, or of another process.
        """
        mail = f"{self._position.uid_validity}:{uid}"
        refused_mail, _, count = (await link.load_cursor(REFUSED_CURSOR) or "").rpartition(":")
        attempts = int(count) + 1 if refused_mail == mail else 1
        await link.save_cursor(Cursor(f"{mail}:{attempts}", REFUSED_CURSOR))
        return attempts >= MAX_FETCH_ATTEMPTS

    async def _read_mail_safely(
        self, connection: ImapConnection, uid: int, raw_header: bytes, received_at: int
    ) -> Inbound | None:
        """Read a mail; one that breaks the reader is passed over, so that it does not keep the others away."""
        try:
            return await self._read_mail(connection, uid, raw_header, received_at)
        except PalaverError:
            raise
        except Exception:  # anyone can send us anything: whatever it breaks, later mails must be read
            log.exception("email_passed_over", extra={"uid": uid})
            return None

    def _is_new(self, uid: int, received_at: int, raw_header: bytes) -> bool:
        """Whether a mail may have come after the last one that was read, when the server has changed its numbers."""
        since = self._position.recheck_since
        if uid > self._position.recheck_until:
            return True
        sent_at = _parse_time(parse_header(raw_header).get("date").encode())
        return received_at >= since and (sent_at == 0 or sent_at >= since - DATE_SLACK_SECONDS)

    async def _read_mail(
        self, connection: ImapConnection, uid: int, raw_header: bytes, received_at: int
    ) -> Inbound | None:
        try:
            envelope = read_envelope(raw_header, self._settings)
        except MailIgnored as reason:
            log.info("email_ignored", extra={"uid": uid, "reason": str(reason)})
            return None
        except SenderRefused as reason:
            self.unverified_count += 1
            self.last_refusal = str(reason)
            log.warning("email_sender_not_verified", extra={"uid": uid, "reason": str(reason)})
            return None
        try:
            text, files = await self._read_content(connection, uid)
        except MailIgnored as reason:
            log.info("email_ignored", extra={"uid": uid, "reason": str(reason)})
            return None
        self.threads.remember(envelope.chat_id, envelope.thread_id, envelope)
        make = partial(make_inbound, received_at=received_at, files=files, settings=self._settings)
        return await asyncio.to_thread(make, envelope, text)

    async def _read_content(self, connection: ImapConnection, uid: int) -> tuple[str, list[InboundFile]]:
        """Return the text of a mail and its files, which are fetched later; a damaged mail is not lost either.

        Raises MailIgnored for a reply to an invitation in which the person has written nothing.
        """
        try:
            data = await connection.fetch(uid, "BODYSTRUCTURE")
            parts = choose_parts(read_structure(data.get("BODYSTRUCTURE")))
            texts = [await self._read_text(connection, uid, part) for part in parts.texts]
            if parts.is_calendar_reply and not any(map(str.strip, texts)):
                raise MailIgnored("It only says whether a person accepts an invitation.")
        except (ResponseUnreadable, ImapRefused) as error:
            log.warning("email_unreadable", extra={"uid": uid, "reason": str(error)})
            return UNREADABLE_TEXT, []
        except (PalaverError, MailIgnored):
            raise
        except Exception:  # whatever its parts break, people are told that there is a mail
            log.exception("email_unreadable", extra={"uid": uid})
            return UNREADABLE_TEXT, []
        return "\n\n".join(text for text in texts if text.strip()), self._list_files(uid, parts)

    async def _read_text(self, connection: ImapConnection, uid: int, part: MimePart) -> str:
        found = await connection.fetch(uid, f"BODY.PEEK[{part.section}]<0.{MAX_TEXT_BYTES}>")
        data = found.get(f"BODY[{part.section}]")
        return await asyncio.to_thread(decode_text, part, data if isinstance(data, bytes) else b"")

    def _list_files(self, uid: int, parts: MailParts) -> list[InboundFile]:
        validity = self._position.uid_validity
        return [
            InboundFile(
                decode_file_name(part.file_name) or _make_name(part),
                partial(self._client.read_part, validity, uid, part),
                media_type=part.media_type,
                size=part.size * 3 // 4 if part.encoding == "base64" else part.size,
            )
            for part in parts.files
        ]

    async def _wait(self, connection: ImapConnection, intake: Intake) -> None:
        """Wait for new mail; what the server answers at the end of the wait is the sign that it is there."""
        if intake.is_busy:
            await intake.wait_for_change(BUSY_SECONDS)
        elif "IDLE" in connection.capabilities:
            await connection.wait_for_mail(IDLE_SECONDS)
        else:
            await asyncio.sleep(self._settings.poll_seconds)
            await connection.run("NOOP", b"NOOP")


def _parse_time(token: Token) -> int:
    """Return a time in seconds; 0 if there is none."""
    if not isinstance(token, bytes):
        return 0
    try:
        return int(parsedate_to_datetime(token[:100].decode("ascii", "replace").strip()).timestamp())
    except (ValueError, TypeError, OverflowError, IndexError):
        return 0


def _make_name(part: MimePart) -> str:
    if part.media_type == "message/rfc822":
        return f"mail-{part.section}.eml"
    kind = part.media_type.partition("/")[2]
    return f"file-{part.section}.{kind if kind.isalnum() and len(kind) <= 5 else 'bin'}"
