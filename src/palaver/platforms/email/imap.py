"""A small IMAP client on asyncio: one connection, one command at a time, bounded sizes and waits.

Always true: no response of the server takes more than `MAX_RESPONSE_BYTES` of memory; the rest is read and dropped. All
responses to a command have a limit, too, and every command has a time limit. Errors never contain what was sent: it may
be the password.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import re
import ssl
from typing import TYPE_CHECKING

from palaver.core.dataclass import dataclass
from palaver.core.errors import AccountRefused, ConnectionLost
from palaver.core.texts import say
from palaver.platforms.email.headers import clean_line
from palaver.platforms.email.imap_parsing import ResponseUnreadable, Token, read_fetch_data, tokenize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from palaver.platforms.email.manifest import Security

MAX_RESPONSE_BYTES = 2 * 1024 * 1024
MAX_INLINE_LINE_BYTES = 50_000  # a longer line is read in a thread: a sender decides how many parts a mail has
MAX_RESPONSES = 100_000  # to one command
MAX_COMMAND_BYTES = 16 * 1024 * 1024  # of all responses to one command
MAX_UID_DIGITS = 10
CONNECT_SECONDS = 20.0
COMMAND_SECONDS = 60.0
_READ_BYTES = 64 * 1024

_LITERAL = re.compile(rb"\{(\d{1,15})\+?\}$")
_NEWS = re.compile(rb"\* \d+ EXISTS", re.IGNORECASE)
_PLAIN_TEXT = re.compile(rb"[\x20-\x7e]*")
# What a server says when it is only busy: the password may be right.
_TEMPORARY = (b"UNAVAILABLE", b"INUSE", b"LIMIT", b"too many", b"try again", b"temporar", b"SERVERBUG")


class ImapRefused(ConnectionLost):
    """The server has answered NO or BAD."""

    def __init__(self, command: str, answer: bytes) -> None:
        self.answer = answer
        text = clean_line(answer[:200].decode("utf-8", "replace")).rstrip(".")
        super().__init__(f"The IMAP server refuses {command}: {text}")


@dataclass(frozen=True, slots=True)
class Response:
    """One response; `fragments` are its lines and, at odd positions, its literals."""

    fragments: list[bytes]
    is_complete: bool = True  # False: it was too large, and only a part was kept

    @property
    def line(self) -> bytes:
        return self.fragments[0]

    def tokenize(self) -> list[Token]:
        """Return its tokens, without the `*` at its start. Raises ResponseUnreadable."""
        if not self.is_complete:
            raise ResponseUnreadable("The response is too large.")
        return tokenize(self.fragments)[1:]

    def read_fetch(self) -> dict[str, Token]:
        return read_fetch_data(self.tokenize())


@dataclass(frozen=True, slots=True)
class Folder:
    uid_validity: int
    uid_next: int | None  # the number that the next mail gets, if the server says so


class ImapConnection:
    """One connection to a server. After an error it is closed, and cannot be used again."""

    def __init__(self, host: str, port: int, security: Security, context: ssl.SSLContext | None) -> None:
        self._host = host
        self._port = port
        self._security = security
        self._context = context
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._fragments: list[bytes] = []  # of the response that is being read
        self._kept_bytes = 0  # of them
        self._line_start = b""  # what is kept of a line that is too long and has not ended
        self._literal_left: int | None = None  # bytes of a literal that are still to come
        self._count = 0  # of commands
        self._has_news = False  # the server has said that there are more mails, since the last search
        self.capabilities: frozenset[str] = frozenset()

    @property
    def is_open(self) -> bool:
        return self._writer is not None and not self._writer.is_closing()

    # ---- opening ---------------------------------------------------------------------------------------------

    async def open(self, user: str, password: str) -> None:
        """Connect and sign in. Raises ConnectionLost and AccountRefused."""
        with self._closing_on_error():
            async with asyncio.timeout(CONNECT_SECONDS):
                await self._connect()
                greeting = await self._read_response()
                if not greeting.line.upper().startswith(b"* OK"):
                    raise ConnectionLost.say(
                        "email.connections_refused",
                        "{host} does not accept connections at the moment.",
                        host=self._host,
                    )
                if self._security == "starttls":
                    await self._start_tls()
            await self._load_capabilities()
            await self._sign_in(user, password)
            await self._load_capabilities()

    async def _connect(self) -> None:
        context = self._context if self._security == "tls" else None
        try:
            self._reader, self._writer = await asyncio.open_connection(
                self._host, self._port, ssl=context, limit=MAX_RESPONSE_BYTES
            )
        except ssl.SSLCertVerificationError as error:
            raise AccountRefused.say(
                "email.bad_certificate",
                "The certificate of {host} is not valid: {reason}. Check the name of the server, or set"
                " ca_file for a server with its own certificate.",
                host=self._host,
                reason=error.verify_message,
            ) from None
        except ssl.SSLError as error:
            raise ConnectionLost.say(
                "email.no_tls",
                "{host} does not speak TLS at port {port} ({error}). Check imap_port and imap_security.",
                host=self._host,
                port=str(self._port),
                error=error.reason,
            ) from None
        except TimeoutError:
            raise
        except OSError as error:
            raise ConnectionLost.say(
                "email.imap_unreachable",
                "{host} can't be reached at port {port} ({error}). Check imap_host and imap_port.",
                host=self._host,
                port=str(self._port),
                error=type(error).__name__,
            ) from None

    async def _start_tls(self) -> None:
        try:
            await self.run("STARTTLS", b"STARTTLS")
        except ImapRefused:
            raise AccountRefused.say(
                "email.no_starttls", "{host} does not offer STARTTLS. Set imap_security to tls.", host=self._host
            ) from None
        assert self._writer is not None and self._context is not None  # noqa: S101, PT018
        await self._refuse_unencrypted_data()
        try:
            await self._writer.start_tls(self._context, server_hostname=self._host)
        except ssl.SSLCertVerificationError as error:
            raise make_certificate_error(self._host, error) from None
        await self._refuse_unencrypted_data()  # what has come meanwhile; a server waits for our next command

    async def _refuse_unencrypted_data(self) -> None:
        """Raise ConnectionLost if there is something to read: it may come from an attacker on the line."""
        assert self._reader is not None  # noqa: S101
        for _ in range(2):  # the first look lets the event loop take what is there
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0):
                    if not await self._reader.read(1):
                        raise EOFError
                    raise ConnectionLost.say(
                        "email.data_before_encryption",
                        "{host} has sent data before the encryption began.",
                        host=self._host,
                    )

    async def _load_capabilities(self) -> None:
        for response in await self.run("CAPABILITY", b"CAPABILITY"):
            words = response.line.decode("ascii", "replace").upper().split()
            if words[1:2] == ["CAPABILITY"]:
                self.capabilities = frozenset(words[2:])

    async def _sign_in(self, user: str, password: str) -> None:
        try:
            if "AUTH=PLAIN" in self.capabilities:
                secret = base64.b64encode(f"\0{user}\0{password}".encode())
                await self.run("AUTHENTICATE", b"AUTHENTICATE PLAIN", secret)
            else:
                await self.run("LOGIN", b"LOGIN " + _quote(user) + b" " + _quote(password))
        except ImapRefused as error:
            if any(word.lower() in error.answer.lower() for word in _TEMPORARY):
                raise make_sign_in_outage(self._host) from None
            raise AccountRefused.say(
                "email.imap_sign_in_refused",
                "{host} refuses the user name or the password. Most providers want an app password here, and"
                " IMAP has to be switched on in the settings of the mailbox.",
                host=self._host,
            ) from None

    # ---- commands --------------------------------------------------------------------------------------------

    async def run(
        self, name: str, command: bytes, *literals: bytes, seconds: float = COMMAND_SECONDS
    ) -> list[Response]:
        """Run a command; return the responses to it. What `literals` has is sent each time the server asks for more.

        Raises ImapRefused if the server says NO, and ConnectionLost.
        """
        with self._closing_on_error():
            async with asyncio.timeout(seconds):
                tag = await self._send_command(command)
                waiting = list(literals)
                responses: list[Response] = []
                size = 0
                while True:
                    response = await self._read_response()
                    if response.line.startswith(b"+"):
                        await self._write((waiting.pop(0) if waiting else b"") + b"\r\n")
                    elif response.line.startswith(tag + b" "):
                        answer = response.line[len(tag) + 1 :]
                        if not answer.upper().startswith(b"OK"):
                            raise ImapRefused(name, answer)
                        return responses
                    else:
                        responses.append(response)
                        size += sum(map(len, response.fragments))
                        if len(responses) > MAX_RESPONSES or size > MAX_COMMAND_BYTES:
                            raise ConnectionLost.say(
                                "email.answer_too_long",
                                "{host} sends too much as an answer to {command}.",
                                host=self._host,
                                command=name,
                            )

    async def open_folder(self, name: str) -> Folder:
        """Open a folder for reading: nothing in it is changed."""
        responses = await self.run("EXAMINE", b"EXAMINE " + quote_folder(name))
        text = b"\n".join(response.line for response in responses)
        validity = re.search(rb"\[UIDVALIDITY (\d{1,15})\]", text, re.IGNORECASE)
        following = re.search(rb"\[UIDNEXT (\d{1,15})\]", text, re.IGNORECASE)
        if validity is None:
            raise ConnectionLost.say(
                "email.no_uidvalidity", "{host} gives mails no lasting numbers (UIDVALIDITY).", host=self._host
            )
        return Folder(int(validity[1]), int(following[1]) if following else None)

    async def find_last_uid(self, folder: Folder) -> int:
        """Return the number of the last mail in the folder that is open; 0 if it has none."""
        if folder.uid_next is not None:
            return folder.uid_next - 1
        return max(await self.search(b"ALL"), default=0)

    async def search(self, criteria: bytes) -> list[int]:
        """Return the numbers (UIDs) of the mails that match, in order."""
        self._has_news = False
        numbers: set[int] = set()
        for response in await self.run("SEARCH", b"UID SEARCH " + criteria):
            words = response.line.split()
            if not response.is_complete or any(len(word) > MAX_UID_DIGITS for word in words[2:] if word.isdigit()):
                raise ConnectionLost.say(
                    "email.mail_list_too_long",
                    "{host} sends a list of mails that can't be read: it is too long.",
                    host=self._host,
                )
            if words[1:2] and words[1].upper() == b"SEARCH":
                numbers.update(int(word) for word in words[2:] if word.isdigit())
        return sorted(numbers)

    async def fetch(self, uid: int, items: str) -> dict[str, Token]:
        """Return the data of a mail; empty if it is gone, or if its data cannot be read."""
        return (await self.fetch_all(str(uid), items)).get(uid, {})

    async def fetch_all(self, uids: str, items: str) -> dict[int, dict[str, Token]]:
        """Return the data of mails by their numbers; one whose data cannot be read is left out.

        Servers also say what has changed in other mails meanwhile, and may say several things of the same mail.
        """
        found: dict[int, dict[str, Token]] = {}
        for response in await self.run("FETCH", f"UID FETCH {uids} (UID {items})".encode()):
            with contextlib.suppress(ResponseUnreadable):
                if len(response.line) < MAX_INLINE_LINE_BYTES:
                    data = response.read_fetch()
                else:
                    data = await asyncio.to_thread(response.read_fetch)
                uid = data.get("UID")
                if isinstance(uid, bytes) and uid.isdigit() and len(uid) <= MAX_UID_DIGITS:
                    found.setdefault(int(uid), {}).update(data)
        return found

    async def find_sent_folder(self) -> str | None:
        """Return the folder that the server says is for sent mails."""
        if "SPECIAL-USE" not in self.capabilities and "XLIST" not in self.capabilities:
            command = b'LIST "" "*"'  # servers may name the use of folders without saying so
        else:
            command = b'LIST (SPECIAL-USE) "" "*"' if "SPECIAL-USE" in self.capabilities else b'XLIST "" "*"'
        try:
            responses = await self.run("LIST", command)
        except ImapRefused:
            return None
        names = []
        for response in responses:
            with contextlib.suppress(ResponseUnreadable):
                match response.tokenize():
                    case [_, list(flags), _, bytes(name)]:
                        folder = read_folder(name)
                        if any(isinstance(flag, bytes) and flag.lower() == b"\\sent" for flag in flags):
                            return folder
                        names.append(folder)
        return next((name for name in names if name.lower() in {"sent", "inbox.sent", "sent items"}), None)

    async def append(self, folder: str, mail: bytes) -> None:
        """Put a mail into a folder, as read."""
        command = b"APPEND " + quote_folder(folder) + b" (\\Seen) {" + str(len(mail)).encode() + b"}"
        await self.run("APPEND", command, mail)

    async def wait_for_mail(self, seconds: float) -> None:
        """Wait until the server says that a mail has come since the last search, at most so long (IDLE)."""
        if self._has_news:
            return
        with self._closing_on_error():
            async with asyncio.timeout(COMMAND_SECONDS):
                tag = await self._send_command(b"IDLE")
                while not (response := await self._read_response()).line.startswith(b"+"):
                    if response.line.startswith(tag + b" "):
                        raise ImapRefused("IDLE", response.line[len(tag) + 1 :])
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    while not self._has_news:
                        await self._read_response()
            async with asyncio.timeout(COMMAND_SECONDS):
                await self._write(b"DONE\r\n")
                while not (await self._read_response()).line.startswith(tag + b" "):
                    pass

    async def close(self) -> None:
        """End the connection without waiting for the server."""
        writer, self._writer = self._writer, None
        if writer is not None:
            if not writer.is_closing():
                with contextlib.suppress(OSError, RuntimeError):
                    writer.write(b"Z LOGOUT\r\n")
            writer.close()
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(1):
                    await writer.wait_closed()

    # ---- the line --------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _closing_on_error(self) -> Iterator[None]:
        """Close the connection when a command has not ended, and tell errors of the network in one way."""
        try:
            yield
        except ImapRefused:
            raise
        except BaseException as error:  # also when it is canceled: the rest of the answer would be read as the next one
            if self._writer is not None:
                self._writer.transport.abort()
                self._writer = None
            if isinstance(error, TimeoutError):
                raise ConnectionLost.say("email.not_answer", "{host} does not answer.", host=self._host) from None
            if isinstance(error, OSError | EOFError):
                cause = EOFError() if isinstance(error, EOFError) else error  # asyncio has a subclass of it
                raise ConnectionLost(describe_broken_connection(self._host, cause)) from None
            raise

    async def _send_command(self, command: bytes) -> bytes:
        if b"\r" in command or b"\n" in command or b"\0" in command:
            raise ValueError("A command is one line.")
        self._count += 1
        tag = f"P{self._count}".encode()
        await self._write(tag + b" " + command + b"\r\n")
        return tag

    async def _write(self, data: bytes) -> None:
        if self._writer is None:
            raise ConnectionLost.say("email.connection_closed", "The connection to {host} is closed.", host=self._host)
        self._writer.write(data)
        await self._writer.drain()

    async def _read_response(self) -> Response:
        """Read one response. Canceling it loses nothing: what has come is kept for the next call."""
        assert self._reader is not None  # noqa: S101  (a command was written before)
        while True:
            if self._literal_left is not None:
                await self._read_literal(self._reader, self._literal_left)
            line = await self._read_line(self._reader)
            self._kept_bytes += len(line)
            if self._kept_bytes <= MAX_RESPONSE_BYTES:
                self._fragments.append(line)
            elif not self._fragments:
                self._fragments.append(line[-64:])
            if (literal := _LITERAL.search(line[-20:])) is not None:
                self._literal_left = int(literal[1])
                continue
            response = Response(self._fragments, self._kept_bytes <= MAX_RESPONSE_BYTES)
            self._fragments, self._kept_bytes = [], 0
            self._has_news = self._has_news or _NEWS.match(response.line) is not None
            return response

    async def _read_line(self, reader: asyncio.StreamReader) -> bytes:
        """Read a line; of one that is too long, only the end is kept, which says whether a literal follows."""
        while True:
            try:
                line, self._line_start = self._line_start + await reader.readuntil(b"\r\n"), b""
                return line[:-2]
            except asyncio.LimitOverrunError as error:
                excess = await reader.readexactly(error.consumed)
                self._kept_bytes += len(excess)
                self._line_start = excess[-64:]

    async def _read_literal(self, reader: asyncio.StreamReader, left: int) -> None:
        """Read a literal; one that is too large is dropped as it comes."""
        if self._kept_bytes + left <= MAX_RESPONSE_BYTES:
            self._fragments.append(await reader.readexactly(left))
            self._kept_bytes += left
        else:
            while left > 0:
                dropped = len(await reader.readexactly(min(left, _READ_BYTES)))
                self._kept_bytes += dropped
                left = self._literal_left = left - dropped
        self._literal_left = None


def make_certificate_error(host: str, error: ssl.SSLCertVerificationError) -> AccountRefused:
    return AccountRefused.say(
        "email.certificate_not_valid",
        "The certificate of {host} is not valid: {reason}.",
        host=host,
        reason=error.verify_message,
    )


def make_sign_in_outage(host: str) -> ConnectionLost:
    return ConnectionLost.say("email.sign_in_unavailable", "{host} can't sign the account in at the moment.", host=host)


def describe_broken_connection(host: str, error: BaseException) -> str:
    return say(
        "email.connection_broke", "The connection to {host} broke ({error}).", host=host, error=type(error).__name__
    )


def _quote(text: str) -> bytes:
    data = text.encode()
    if not _PLAIN_TEXT.fullmatch(data):
        raise AccountRefused.say(
            "email.ascii_credentials_only",
            "The server can't take a user name or password with letters beyond ASCII.",
        )
    return b'"' + data.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'


def quote_folder(name: str) -> bytes:
    """Return the name of a folder as the protocol wants it: in modified UTF-7 (RFC 3501)."""
    pieces = []
    for piece in re.findall(r"[\x20-\x7e]+|[^\x20-\x7e]+", name):
        if piece.isascii():
            pieces.append(piece.replace("&", "&-"))
        else:
            encoded = base64.b64encode(piece.encode("utf-16-be", "replace")).rstrip(b"=").replace(b"/", b",")
            pieces.append(f"&{encoded.decode()}-")
    return _quote("".join(pieces))


def read_folder(name: bytes) -> str:
    """Return the name of a folder from modified UTF-7."""

    def decode(match: re.Match[str]) -> str:
        signs = match[1].replace(",", "/")
        return base64.b64decode(signs + "=" * (-len(signs) % 4)).decode("utf-16-be", "replace") if signs else "&"

    return re.sub(r"&([A-Za-z0-9+,]*)-", decode, name.decode("utf-8", "replace"))
