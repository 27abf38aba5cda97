"""Talks to the servers of one mailbox. The only module of this adapter that uses the network, with `imap`.

Two connections to the IMAP server: one waits for new mail, and is the caller's; the other fetches files, looks up mails
and keeps copies of what was sent, when it is needed. SMTP has one connection for each mail.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from typing import TYPE_CHECKING

import aiosmtplib

from palaver.core.errors import (
    AccountRefused,
    ConnectionLost,
    DeliveryError,
    PlatformError,
    SendRetryable,
    SendUncertain,
)
from palaver.core.texts import say
from palaver.platforms.common.failures import make_unreachable_error
from palaver.platforms.email.body_text import TransferDecoder
from palaver.platforms.email.headers import MAX_HEADER_BYTES, clean_line
from palaver.platforms.email.imap import (
    Folder,
    ImapConnection,
    describe_broken_connection,
    make_certificate_error,
    make_sign_in_outage,
)
from palaver.platforms.email.outbound import classify_refusal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from palaver.platforms.email.imap_parsing import MimePart
    from palaver.platforms.email.manifest import EmailSettings, Security

SMTP_CONNECT_SECONDS = 10.0
SMTP_COMMAND_SECONDS = 10.0
SMTP_DATA_SECONDS = 20.0  # and more for a large mail
MIN_UPLOAD_BYTES_PER_SECOND = 200_000
PARTIAL_SEND_ATTEMPT = 4  # from this attempt on, those get a mail whose servers take it, and the others do not
CHUNK_BYTES = 256 * 1024  # of a file, encoded
MAX_FOUND_MAILS = 5  # with similar ids, of which one is looked for
SENT_BATCH = 200  # mails whose ids are read at once
REFUSED_SEND_SECONDS = 300.0
WAKE_SECONDS = 5.0  # for a connection that was not used for a while


class MailClient:
    def __init__(self, settings: EmailSettings) -> None:
        self._settings = settings
        self._context: ssl.SSLContext | None = None
        self._worker: ImapConnection | None = None
        self._folder: tuple[str, Folder] | None = None  # that the worker has opened
        self._working = asyncio.Lock()
        self._sent_folder = settings.sent_folder
        self._has_looked_for_sent = False

    # ---- IMAP ------------------------------------------------------------------------------------------------

    async def connect(self) -> ImapConnection:
        """Return a new connection to the mailbox. Raises ConnectionLost and AccountRefused."""
        settings = self._settings
        context = await self._load_context()
        connection = ImapConnection(settings.imap_host, settings.get_imap_port(), settings.imap_security, context)
        await connection.open(settings.login, settings.password.get_secret_value())
        return connection

    async def _load_context(self) -> ssl.SSLContext:
        if self._context is None:
            try:  # in a thread: it reads all certificates
                self._context = await asyncio.to_thread(ssl.create_default_context, cafile=self._settings.ca_file)
            except OSError as error:
                raise AccountRefused.say(
                    "email.ca_file_unreadable", "ca_file can't be read: {reason}.", reason=error.strerror or error
                ) from None
        return self._context

    @contextlib.asynccontextmanager
    async def _use_worker(self, folder: str) -> AsyncIterator[tuple[ImapConnection, Folder]]:
        """Use the second connection, with a folder opened. Raises ConnectionLost and AccountRefused."""
        async with self._working:
            worker = await self._wake_worker()
            if self._folder is None or self._folder[0] != folder:
                self._folder = None  # a folder that can't be opened closes the one before
                self._folder = folder, await worker.open_folder(folder)
            yield worker, self._folder[1]

    async def _wake_worker(self) -> ImapConnection:
        """Return the second connection, which knows all mails; a new one if the server has ended it meanwhile."""
        if self._worker is not None and self._worker.is_open:
            with contextlib.suppress(ConnectionLost):
                await self._worker.run("NOOP", b"NOOP", seconds=WAKE_SECONDS)
                return self._worker
            await self._worker.close()
        self._folder = None
        self._worker = await self.connect()
        return self._worker

    async def read_part(self, validity: int, uid: int, part: MimePart) -> AsyncIterator[bytes]:
        """Yield the content of a part of a mail, a chunk at a time. Raises ConnectionLost."""
        offset = 0
        decoder = TransferDecoder(part.encoding)
        while offset < max(part.size, 1):
            async with self._use_worker(self._settings.folder) as (worker, folder):
                if folder.uid_validity != validity:
                    raise ConnectionLost.say("email.mails_renumbered", "The server has given its mails new numbers.")
                found = await worker.fetch(uid, f"BODY.PEEK[{part.section}]<{offset}.{CHUNK_BYTES}>")
            data = found.get(f"BODY[{part.section}]")
            if not isinstance(data, bytes):
                raise ConnectionLost.say("email.mail_gone", "The mail is no longer in the mailbox.")
            if not data:
                break
            offset += len(data)
            yield decoder.decode(data)
        yield decoder.finish()

    async def find_headers(self, id_text: str, *, is_sent: bool) -> list[bytes]:
        """Return the headers of the last mails whose ids contain a text, the last one first. Raises PlatformError.

        They may be mails of any sender: servers look for a part of an id, and senders choose their ids.
        """
        folder = await self._find_sent_folder() if is_sent else self._settings.folder
        if folder is None:
            raise ConnectionLost.say("email.no_sent_folder", "The mailbox has no folder for sent mails.")
        async with self._use_worker(folder) as (worker, _):
            quoted_id = id_text.encode("ascii", "ignore").replace(b"\\", b"\\\\").replace(b'"', b'\\"')
            uids = await worker.search(b'HEADER Message-ID "' + quoted_id + b'"')
            items = f"BODY.PEEK[HEADER]<0.{MAX_HEADER_BYTES}>"
            found = [await worker.fetch(uid, items) for uid in reversed(uids[-MAX_FOUND_MAILS:])]
        return [header for each in found if isinstance(header := each.get("BODY[HEADER]"), bytes)]

    async def _find_sent_folder(self) -> str | None:
        if self._sent_folder is None and not self._has_looked_for_sent:
            async with self._use_worker(self._settings.folder) as (worker, _):
                self._sent_folder = await worker.find_sent_folder()
            self._has_looked_for_sent = True
        return self._sent_folder

    async def save_sent(self, mail: bytes) -> None:
        """Put a copy of a mail into the folder of sent mails, if there is one. Raises ConnectionLost."""
        folder = await self._find_sent_folder()
        if folder is not None:
            async with self._use_worker(self._settings.folder) as (worker, _):
                await worker.append(folder, mail)

    async def list_sent(self, cursor: str | None) -> tuple[list[bytes], str | None]:
        """Return the headers with the ids of the sent mails after a cursor, and the cursor after them.

        Without a cursor, and when the server has given its mails new numbers, it begins at the end.
        """
        name = await self._find_sent_folder()
        if name is None:
            return [], cursor
        async with self._use_worker(name) as (worker, folder):
            validity, _, last = (cursor or "").partition(":")
            if validity != str(folder.uid_validity) or not last.isdigit():
                return [], f"{folder.uid_validity}:{await worker.find_last_uid(folder)}"
            uids = [uid for uid in await worker.search(f"UID {int(last) + 1}:*".encode()) if uid > int(last)]
            found = []
            for start in range(0, len(uids), SENT_BATCH):
                batch = uids[start : start + SENT_BATCH]
                items = "BODY.PEEK[HEADER.FIELDS (MESSAGE-ID)]<0.2000>"
                data = await worker.fetch_all(f"{batch[0]}:{batch[-1]}", items)
                headers = [each.get("BODY[HEADER.FIELDS (MESSAGE-ID)]") for each in data.values()]
                found += [header for header in headers if isinstance(header, bytes)]
            return found, f"{folder.uid_validity}:{uids[-1] if uids else last}"

    async def close(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            await worker.close()

    # ---- SMTP ------------------------------------------------------------------------------------------------

    async def check_smtp(self) -> None:
        """Sign in to the SMTP server. Raises ConnectionLost and AccountRefused."""
        host = self._settings.smtp_host
        try:
            async with self._open_smtp():
                pass
        except aiosmtplib.SMTPAuthenticationError as error:
            if error.code < 500:
                raise make_sign_in_outage(host) from None
            raise AccountRefused.say(
                "email.smtp_sign_in_refused",
                "{host} refuses the user name or the password (SMTP). Most providers want an app password here.",
                host=host,
            ) from None
        except ssl.SSLCertVerificationError as error:
            raise make_certificate_error(host, error) from None
        except aiosmtplib.SMTPNotSupported:
            raise AccountRefused.say(
                "email.smtp_lacks_sign_in",
                "{host} offers no encryption or no sign-in. Check smtp_port and smtp_security.",
                host=host,
            ) from None
        except (aiosmtplib.SMTPException, OSError) as error:
            raise ConnectionLost.say(
                "email.smtp_unreachable",
                "{host} can't be reached at port {port} (SMTP, {error}). Check smtp_host, smtp_port and smtp_security.",
                host=host,
                port=str(self._settings.get_smtp_port()),
                error=type(error).__name__,
            ) from None

    @contextlib.asynccontextmanager
    async def _open_smtp(self) -> AsyncIterator[aiosmtplib.SMTP]:
        settings = self._settings
        security: Security = settings.smtp_security
        smtp = aiosmtplib.SMTP(
            hostname=settings.smtp_host,
            port=settings.get_smtp_port(),
            username=settings.login,
            password=settings.password.get_secret_value(),
            use_tls=security == "tls",
            start_tls=security == "starttls",
            tls_context=await self._load_context() if security != "none" else None,
            local_hostname="[127.0.0.1]",  # as mail programs do: the mail server need not know the name of this machine
            timeout=SMTP_COMMAND_SECONDS,
        )
        with contextlib.closing(smtp):
            await smtp.connect(timeout=SMTP_CONNECT_SECONDS)
            yield smtp
            with contextlib.suppress(aiosmtplib.SMTPException, OSError):
                await smtp.quit(timeout=1.0)

    async def send_mail(
        self, recipients: Sequence[str], mail: bytes, *, attempt: int, mark: Callable[[], Awaitable[None]]
    ) -> list[str]:
        """Send a mail; return the recipients whom the server has refused, if others get it. Raises DeliveryError.

        `mark` is called when the server waits for the mail.
        """
        async with contextlib.AsyncExitStack() as stack:
            try:
                smtp = await stack.enter_async_context(self._open_smtp())
            except (aiosmtplib.SMTPException, OSError, ValueError, PlatformError) as error:  # nothing was sent
                raise _make_connect_error(error, self._settings.smtp_host) from None
            refused = await self._name_recipients(smtp, recipients, attempt)
            await mark()
            await self._send_data(smtp, mail)
            return refused

    async def _name_recipients(self, smtp: aiosmtplib.SMTP, recipients: Sequence[str], attempt: int) -> list[str]:
        host = self._settings.smtp_host
        needs_utf8 = not all(each.isascii() for each in (self._settings.address, *recipients))
        options = ["SMTPUTF8", "BODY=8BITMIME"] if needs_utf8 and smtp.supports_extension("smtputf8") else []
        encoding = "utf-8" if options else "ascii"
        refusals: dict[str, DeliveryError] = {}
        try:
            await smtp.mail(self._settings.address, options=options, encoding=encoding)
            for recipient in recipients:
                try:
                    await smtp.rcpt(recipient, encoding=encoding)
                except aiosmtplib.SMTPRecipientRefused as error:
                    refusals[recipient] = classify_refusal(error.code, error.message, host, is_recipient=True)
                except UnicodeEncodeError:
                    refusals[recipient] = classify_refusal(553, "The server can't send to this address", host)
        except aiosmtplib.SMTPResponseException as error:
            raise classify_refusal(error.code, error.message, host) from None
        except UnicodeEncodeError:
            raise classify_refusal(553, "The server can't send from our address", host) from None
        except (aiosmtplib.SMTPException, OSError) as error:
            raise SendRetryable(describe_broken_connection(host, error)) from None
        waits = [each for each in refusals.values() if isinstance(each, SendRetryable)]
        if len(refusals) == len(recipients):
            raise next(iter(waits or refusals.values()))
        if waits and attempt < PARTIAL_SEND_ATTEMPT:
            raise waits[0]
        return list(refusals)

    async def _send_data(self, smtp: aiosmtplib.SMTP, mail: bytes) -> None:
        host = self._settings.smtp_host
        seconds = SMTP_DATA_SECONDS + len(mail) / MIN_UPLOAD_BYTES_PER_SECOND
        try:
            async with asyncio.timeout(seconds):
                await smtp.data(mail, timeout=seconds)
        except aiosmtplib.SMTPDataError as error:
            raise classify_refusal(error.code, error.message, host) from None
        except (aiosmtplib.SMTPException, OSError) as error:
            raise SendUncertain.say(
                "email.not_confirmed",
                "{host} did not say whether it has taken the mail ({error}).",
                host=host,
                error=type(error).__name__,
            ) from None


def _make_connect_error(error: Exception, host: str) -> DeliveryError:
    if isinstance(error, aiosmtplib.SMTPAuthenticationError) and error.code >= 500:
        return SendRetryable(
            say("email.refuses_password", "{host} refuses the user name or the password.", host=host),
            retry_after=REFUSED_SEND_SECONDS,
            whole_account=True,
        )
    if isinstance(error, aiosmtplib.SMTPResponseException):
        answer = f"{host} has answered with {error.code}: {clean_line(error.message)[:200]}"
        return SendRetryable(answer, retry_after=60.0, whole_account=True)
    return make_unreachable_error(host, error)
