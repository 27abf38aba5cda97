"""A mail server on this machine: real IMAP (pymap, in memory) and real SMTP (aiosmtpd), with faults on demand.

People are played by `say`, which puts a mail into the mailbox of the agent as a receiving server would, with a result
of DMARC on top; `mails` has what the agent has sent.
"""

from __future__ import annotations

import asyncio
import warnings
from argparse import Namespace
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email import message_from_bytes
from email.headerregistry import ContentDispositionHeader
from email.message import EmailMessage
from email.policy import SMTP as SMTP_POLICY, default as default_policy
from typing import TYPE_CHECKING, Any

from aiosmtpd.smtp import (
    SMTP as SmtpProtocol,  # noqa: N811  (a class)
    AuthResult,
    Envelope,
)
from proxyprotocol.sock import SocketInfoLocal
from pymap.backend.dict import Config, DictBackend, Login
from pymap.backend.dict.mailbox import Message
from pymap.concurrent import Subsystem
from pymap.config import BackendCapability
from pymap.imap import IMAPServer
from pymap.parsing.message import AppendMessage
from pymap.parsing.primitives import List
from pymap.parsing.response import fetch
from pysasl import SASLAuth

from .tcp_proxy import TcpProxy, close_server

if TYPE_CHECKING:
    import ssl
    from collections.abc import Sequence

ADDRESS = "palaver@example.org"
PASSWORD = "correct horse battery"
AUTHSERV_ID = "mx.example.org"
ANNA = "anna@example.com"
BOB = "bob@example.net"
MAX_NUDGES = 50
NUDGE_SECONDS = 0.02


@dataclass(frozen=True)
class SentMail:
    """A mail that the agent has sent."""

    recipients: tuple[str, ...]
    message: EmailMessage
    data: bytes

    @property
    def message_id(self) -> str:
        return str(self.message["Message-ID"]).strip("<> ")

    @property
    def text(self) -> str:
        body = self.message.get_body(("plain",))
        return "" if body is None else body.get_content().strip()

    @property
    def file_names(self) -> tuple[str, ...]:
        return tuple(part.get_filename() or "" for part in self.message.iter_attachments())


@dataclass
class SmtpFaults:
    """What the SMTP server does next."""

    recipients: dict[str, str] = field(default_factory=dict)  # address → its answer, until it is taken out
    next_answers: list[str] = field(default_factory=list)  # to whole mails, one after the other
    loses_answer: bool = False  # take the next mail, and cut the line before the answer


class MailServer:
    """The mailbox of the agent, and the server that it sends with."""

    def __init__(
        self, *, tls: ssl.SSLContext | None = None, starttls: ssl.SSLContext | None = None, has_idle: bool = True
    ) -> None:
        self._tls = tls
        self._starttls = starttls
        self._has_idle = has_idle
        self._stack = AsyncExitStack()
        self._count = 0
        self._backend: Any = None
        self._config: Any = None
        self._nudges_left: dict[str, int] = {}  # by folder
        self.faults = SmtpFaults()
        self.mails: list[SentMail] = []
        self.saves_sent = False  # put what was sent into the Sent folder, as some providers do
        self.password = PASSWORD
        self.imap: TcpProxy
        self.smtp: TcpProxy

    # ---- starting ----------------------------------------------------------------------------------------

    async def start(self) -> None:
        self.imap = await self._start_proxy(await self._start_imap())
        nudging = asyncio.create_task(self._nudge())
        self._stack.callback(nudging.cancel)
        self.smtp = await self._start_proxy(await self._start_smtp())

    async def stop(self) -> None:
        await self._stack.aclose()

    async def __aenter__(self) -> MailServer:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _start_proxy(self, port: int) -> TcpProxy:
        proxy = TcpProxy(port)
        await proxy.start()
        self._stack.push_async_callback(proxy.stop)
        return proxy

    async def _start_imap(self) -> int:
        names = {"host": "127.0.0.1", "port": 0, "debug": False, "cert": None, "key": None, "tls": bool(self._starttls)}
        extra = {"passlib_cfg": None, "proxy_protocol": None, "inherited_sockets": None}
        demo = {"demo_data": False, "demo_user": ADDRESS, "demo_password": PASSWORD}
        arguments = Namespace(**names, **extra, **demo)
        self._config = _Config.from_args(
            arguments,
            secure_auth=False,
            invalid_user_sleep=0.0,
            hash_context=_PlainPasswords(),
            ssl_context=self._starttls,
            # Not on a thread: a check that waits for one when the server is stopped would never be awaited.
            cpu_subsystem=Subsystem.for_asyncio(),
        )
        self._config.has_idle = self._has_idle
        self._config.apply_context()
        self._backend = DictBackend(Login(self._config), self._config)
        await DictBackend._add_demo_user(self._config, self._backend.login)
        handle = IMAPServer(self._backend.login, self._config)

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await handle(reader, writer, SocketInfoLocal(writer))

        server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=self._tls)
        self._stack.push_async_callback(close_server, server)
        return int(server.sockets[0].getsockname()[1])

    async def _start_smtp(self) -> int:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(self._make_smtp, "127.0.0.1", 0, ssl=self._tls)
        self._stack.push_async_callback(close_server, server)
        return int(server.sockets[0].getsockname()[1])

    def _make_smtp(self) -> SmtpProtocol:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns that passwords come without TLS
            return SmtpProtocol(
                _Handler(self),
                authenticator=self._authenticate,
                auth_required=True,
                auth_require_tls=False,
                enable_SMTPUTF8=True,
                hostname="localhost",
                tls_context=self._starttls,
                require_starttls=self._starttls is not None,
            )

    def _authenticate(self, _server: object, _session: object, _envelope: object, _kind: str, data: Any) -> AuthResult:
        is_right = (data.login, data.password) == (ADDRESS.encode(), self.password.encode())
        return AuthResult(success=is_right, handled=True) if is_right else AuthResult(success=False, handled=False)

    # ---- the mailbox -------------------------------------------------------------------------------------

    async def get_folder(self, name: str = "INBOX") -> Any:
        async with self._backend.login.demo_user_identity.new_session() as session:
            if name not in [each.name for each in (await session.mailbox_set.list_mailboxes()).list()]:
                await session.mailbox_set.add_mailbox(name)
            return await session.mailbox_set.get_mailbox(name)

    async def deliver(self, data: bytes, *, folder: str = "INBOX", received_at: datetime | None = None) -> None:
        """Put a mail into a folder, as it is."""
        mailbox = await self.get_folder(folder)
        await mailbox.append(AppendMessage(data, received_at or datetime.now(UTC), frozenset()))
        self._nudges_left[folder] = MAX_NUDGES

    async def _nudge(self) -> None:
        """Tell idle connections again what has come: pymap does not tell those that begin to idle just then."""
        while True:
            await asyncio.sleep(NUDGE_SECONDS)
            for folder, count in list(self._nudges_left.items()):
                if count:
                    self._nudges_left[folder] = count - 1
                    (await self.get_folder(folder))._updated.set()

    async def list_folder(self, name: str = "INBOX") -> list[bytes]:
        """Return the mails of a folder."""
        mailbox = await self.get_folder(name)
        return [bytes(mailbox._messages[uid]._content._raw) for uid in sorted(mailbox._messages)]

    async def renumber(self) -> None:
        """Give the mails of the mailbox new numbers, as after a repair or a move to another server."""
        mailbox = await self.get_folder()
        old = list(mailbox._messages.values())
        mailbox._uid_validity += 1
        mailbox._messages.clear()
        mailbox._max_uid = 500
        for message in old:
            mailbox._max_uid += 1
            mailbox._messages[mailbox._max_uid] = Message.copy(message, uid=mailbox._max_uid)
        await self.imap.cut()

    def revoke(self) -> None:
        """Let the password be wrong from now on."""
        self.password = "another"
        self._config.hash_context.is_revoked = True

    # ---- people ------------------------------------------------------------------------------------------

    def make_mail(
        self,
        text: str,
        *,
        sender: str = ANNA,
        to: Sequence[str] = (ADDRESS,),
        cc: Sequence[str] = (),
        subject: str = "Question",
        message_id: str | None = None,
        references: Sequence[str] = (),
        html: str | None = None,
        files: Sequence[tuple[str, bytes]] = (),
        dmarc: str | None = "pass",
        headers: Sequence[tuple[str, str]] = (),
        charset: str = "utf-8",
        calendar: tuple[str, str] | None = None,
    ) -> bytes:
        """Return a mail as the receiving server stores it, with its verdict on the sender on top."""
        self._count += 1
        mail = EmailMessage(policy=SMTP_POLICY)
        mail["From"] = sender
        mail["To"] = ", ".join(to)
        if cc:
            mail["Cc"] = ", ".join(cc)
        if subject:
            mail["Subject"] = subject
        mail["Date"] = datetime.now(UTC)
        mail["Message-ID"] = f"<{message_id or f'm{self._count}@mail.example'}>"
        if references:
            mail["In-Reply-To"] = f"<{references[-1]}>"
            mail["References"] = " ".join(f"<{each}>" for each in references)
        for name, value in headers:
            mail[name] = value
        if text or html is None:
            mail.set_content(text, charset=charset)
        else:
            mail.set_content(html, subtype="html", charset=charset)
        if text and html is not None:
            mail.add_alternative(html, subtype="html")
        if calendar is not None:
            mail.add_alternative(calendar[1], subtype="calendar", params={"method": calendar[0]})
        for name, data in files:
            mail.add_attachment(data, maintype="application", subtype="octet-stream", filename=name)
        domain = sender.rpartition("@")[2].rstrip(">")
        verdict = f"Authentication-Results: {AUTHSERV_ID};\r\n dmarc={dmarc} (p=none) header.from={domain}\r\n"
        return (verdict.encode() if dmarc else b"") + mail.as_bytes()

    async def say(self, text: str, **fields: Any) -> str:
        """Write a mail to the agent as a person; return its id."""
        data = self.make_mail(text, **fields)
        await self.deliver(data)
        return str(message_from_bytes(data, policy=default_policy)["Message-ID"]).strip("<> ")


class _Handler:
    """Answers SMTP commands as the faults of the server say."""

    def __init__(self, server: MailServer) -> None:
        self._server = server

    async def handle_RCPT(  # noqa: N802
        self, _smtp: object, _session: object, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if (answer := self._server.faults.recipients.get(address)) is not None:
            return answer
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, smtp: SmtpProtocol, _session: object, envelope: Envelope) -> str:  # noqa: N802
        faults = self._server.faults
        if faults.next_answers:
            return faults.next_answers.pop(0)
        data = envelope.content if isinstance(envelope.content, bytes) else b""
        message = message_from_bytes(data, policy=default_policy)
        self._server.mails.append(SentMail(tuple(envelope.rcpt_tos), message, data))
        if self._server.saves_sent:
            await self._server.deliver(data, folder="Sent")
        if faults.loses_answer:
            faults.loses_answer = False
            assert isinstance(smtp.transport, asyncio.WriteTransport)
            smtp.transport.abort()
        return "250 OK"


class _Config(Config):
    """The settings of the IMAP server."""

    auth = SASLAuth.defaults()  # found once: it searches all installed packages
    has_idle = True

    @property
    def initial_auth(self) -> SASLAuth:
        return self.auth

    @property
    def tls_auth(self) -> SASLAuth:
        return self.auth

    @property
    def backend_capability(self) -> BackendCapability:
        return BackendCapability(idle=self.has_idle, object_id=True, multi_append=True)


class _StructureString(fetch.String):
    """Writes the disposition of a part as RFC 3501 says; pymap writes it as one text."""

    @classmethod
    def build(cls, value: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(value, ContentDispositionHeader):
            parameters = [each for pair in value.params.items() for each in pair]
            pairs = List([_build_string(each) for each in parameters]) if parameters else fetch.Nil()
            return List([_build_string(value.content_disposition or ""), pairs])
        return _build_string(value, *arguments, **options)


_build_string = fetch.String.build
fetch.String = _StructureString  # type: ignore[misc]


class _PlainPasswords:
    """Passwords without a hash: this server is only for tests, which sign in often."""

    is_revoked = False

    def copy(self) -> _PlainPasswords:
        return self

    def hash(self, value: str) -> str:
        return value

    def verify(self, value: str, digest: str) -> bool:
        return value == digest and not self.is_revoked
