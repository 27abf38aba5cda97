"""The connection to Discord's gateway: discord.py's socket, with our own rules for when to connect again and how.

discord.py's client builds objects of everything and keeps them in memory. Here its parsers are replaced: every event is
passed on as Discord sends it, and nothing is kept.

Always true: a connection counts as alive only by answered heartbeats, never by other traffic. If heartbeats are not
answered, the connection is closed. A lost connection is resumed, so that Discord sends what came meanwhile; after
`MAX_RESUMES` connections that broke at once, a new session is started. A connection of ours never ends its session:
another process can resume it for about a minute.
"""

from __future__ import annotations

import asyncio
import logging
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import aiohttp
import discord
import yarl
from discord.gateway import DiscordWebSocket, ReconnectWebSocket
from discord.http import Route
from discord.state import ConnectionState

from palaver.core.dataclass import dataclass
from palaver.core.errors import ConnectionLost
from palaver.platforms.common.failures import RequestError, RequestFailed
from palaver.platforms.discord.failures import make_closed_error, make_platform_error

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from palaver.platforms.discord.client import DiscordClient

    OnEvent = Callable[[str, Any, "GatewaySession"], None]  # the name of the event, its data, the session with it

log = logging.getLogger(__name__)
logging.getLogger("discord.gateway").setLevel(logging.WARNING)  # below, it logs people's messages, and secrets

MAX_RESUMES: Final = 4  # in a row that broke at once; then a new session is started
MAX_SESSIONS: Final = 3  # in a row that broke at once; then the account is connected again after a pause
MIN_LASTING_SECONDS: Final = 30.0  # a connection that ends earlier has broken at once
CONNECT_SECONDS: Final = 60.0
RESUMABLE_CLOSE: Final = 4000  # Discord keeps the session, so that it can be resumed
MAX_REPLAY_SECONDS: Final = 15.0  # for what an earlier process has missed
MISSED_BEATS: Final = 2  # heartbeats without an answer, then the connection is dead


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayTiming:
    """The waits of the gateway; tests make them shorter."""

    first_pause: float = 1.0  # before the second attempt; each further one waits twice as long
    max_pause: float = 30.0
    beat_grace: float = 5.0  # for the answer to a heartbeat, besides the interval


@dataclass(frozen=True, slots=True)
class GatewaySession:
    """A session at Discord's gateway, and how far it was received: from there on it can be resumed."""

    id: str
    sequence: int
    url: str


class _EventTable(dict[str, Any]):
    """Stands for discord.py's parsers: each event is passed on under its name."""

    def __init__(self, on_event: Callable[[str, Any], None]) -> None:
        super().__init__()
        self._on_event = on_event

    def __missing__(self, name: str) -> Callable[[Any], None]:
        return partial(self._on_event, name)


class _SocketState(ConnectionState["GatewayClient"]):
    """The part of a client that discord.py's socket needs."""

    def _update_references(self, ws: DiscordWebSocket) -> None:
        self._get_client().socket = ws  # known from now on, also if it breaks while we sign in


class GatewayClient(discord.Client):
    def __init__(
        self,
        http: DiscordClient,
        *,
        intents: discord.Intents,
        on_event: OnEvent,
        on_alive: Callable[[], None],
        wait_for_room: Callable[[], Awaitable[None]],
        timing: GatewayTiming,
    ) -> None:
        discord.VoiceClient.warn_nacl = discord.VoiceClient.warn_dave = False  # no voice calls, so nothing is missing
        super().__init__(
            intents=intents,
            max_messages=None,
            chunk_guilds_at_startup=False,
            member_cache_flags=discord.MemberCacheFlags.none(),
        )
        self.loop = asyncio.get_running_loop()
        self.http = http
        self.socket: DiscordWebSocket | None = None
        self._on_event = on_event
        self._on_alive = on_alive
        self._wait_for_room = wait_for_room
        self._timing = timing
        self._connection.parsers = _EventTable(self._handle_event)
        self._session: GatewaySession | None = None  # that is resumed by the next connection
        self._on_missed_event: OnEvent | None = None  # while a session of an earlier process is replayed
        self._is_ready = False
        self._last_ack = 0.0

    def _get_state(self, **options: Any) -> ConnectionState[Any]:
        return _SocketState(
            dispatch=self.dispatch, handlers=self._handlers, hooks=self._hooks, http=self.http, **options
        )

    def dispatch(self, event: str, /, *args: Any, **kwargs: Any) -> None:
        """Do nothing: events reach `on_event`, in order and as they are."""

    async def replay(self, session: GatewaySession, on_event: OnEvent) -> None:
        """Pass on what Discord has kept for a session of an earlier process, if anything. Raises AccountRefused."""
        self._session, self._on_missed_event = session, on_event
        try:
            async with asyncio.timeout(MAX_REPLAY_SECONDS):
                await self._connect(yarl.URL(session.url))
        except (ConnectionLost, TimeoutError) as error:
            log.info("discord_session_not_replayed", extra={"reason": str(error)})
        finally:
            self._session = self._on_missed_event = None
            await self._close_socket()

    async def keep_connected(self) -> None:
        """Receive events until canceled. Raises AccountRefused and ConnectionLost."""
        url = await self._find_gateway()
        attempts = resumes = sessions = 0  # in a row that broke at once
        while True:
            started = time.monotonic()
            is_new = self._session is None
            try:
                await self._connect(url)
            finally:
                await self._close_socket()
            if time.monotonic() - started >= MIN_LASTING_SECONDS:
                attempts = resumes = sessions = 0
            attempts += 1
            sessions += is_new
            resumes = 0 if is_new else resumes + 1
            if resumes >= MAX_RESUMES:
                log.warning("discord_session_not_resumed", extra={"attempts": resumes})
                self._session = None
            if self._session is None:
                if sessions >= MAX_SESSIONS:
                    raise ConnectionLost.say(
                        "discord.connection_unstable", "Discord ends the connection again and again."
                    )
                url = await self._find_gateway()
            if attempts > 1 or self._session is None:
                pause = self._timing.first_pause * 2 ** min(max(attempts - 2, 0), 10)
                await asyncio.sleep(min(pause, self._timing.max_pause))

    async def _find_gateway(self) -> yarl.URL:
        try:
            fields = await self.http.request(Route("GET", "/gateway/bot"))
        except RequestError as error:
            raise make_platform_error(error) from None
        limit = fields["session_start_limit"]
        if limit["remaining"] < 1:
            minutes = limit["reset_after"] / 60_000
            raise ConnectionLost.say(
                "discord.connecting_too_often",
                "Discord lets this bot connect again in {minutes} minutes: it did so too often.",
                minutes=f"{minutes:.0f}",
            )
        return yarl.URL(fields["url"])

    async def _connect(self, url: yarl.URL) -> None:
        """Connect, and receive until the connection ends. Afterwards the session is known, if it can be resumed."""
        self._is_ready = False
        session = self._session
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                socket = await DiscordWebSocket.from_client(
                    self,
                    initial=True,  # discord.py waits five seconds before others
                    gateway=yarl.URL(session.url) if session else url,
                    session=session.id if session else None,
                    sequence=session.sequence if session else None,
                    resume=session is not None,
                )
            while True:
                await self._poll(socket)
        except ReconnectWebSocket as error:
            self._session = self._read_session() or self._session if error.resume else None
            log.info("discord_connection_ended", extra={"resumes": self._session is not None})
        except discord.ConnectionClosed as error:
            if error.code != 1000:
                raise make_closed_error(error.code) from None
            self._session = None
        except RequestFailed as error:
            raise make_platform_error(error) from None
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            self._session = self._read_session() or self._session
            log.info("discord_connection_broke", extra={"reason": type(error).__name__})
            if self.socket is not None:
                await self.socket.close(code=RESUMABLE_CLOSE)

    async def _poll(self, socket: DiscordWebSocket) -> None:
        """Receive one payload. Raises TimeoutError if heartbeats are not answered."""
        beats = socket._keep_alive
        if beats is None or beats.interval is None:
            raise TimeoutError
        deadline = beats._last_ack + MISSED_BEATS * beats.interval + self._timing.beat_grace
        async with asyncio.timeout(max(deadline - time.perf_counter(), 0)):
            await socket.poll_event()
        if self._is_ready and beats._last_ack != self._last_ack:
            self._last_ack = beats._last_ack
            self._on_alive()
        await self._wait_for_room()

    def _handle_event(self, name: str, data: Any) -> None:
        session = self._read_session()
        if session is None:
            return
        if self._on_missed_event is not None:
            if name == "RESUMED":
                raise ReconnectWebSocket(None, resume=False)  # everything that was missed has come
            self._on_missed_event(name, data, session)
            return
        if name in {"READY", "RESUMED"}:
            self._is_ready = True
            self._on_alive()
        self._on_event(name, data, session)

    def _read_session(self) -> GatewaySession | None:
        socket = self.socket
        if socket is None or socket.session_id is None or socket.sequence is None:
            return None
        return GatewaySession(socket.session_id, socket.sequence, str(socket.gateway))

    async def _close_socket(self) -> None:
        socket, self.socket = self.socket, None
        if socket is not None:
            await socket.close(code=RESUMABLE_CLOSE)
