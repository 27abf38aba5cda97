"""One HTTP connection: uvicorn's protocol, with a deadline for everything that the server waits for.

At any moment a connection is in one phase:

    headers     the client has not sent a complete request yet      deadline: `header_seconds`
    body        the rest of the body is missing                     deadline: `body_seconds`, and more for what has come
    busy        the server works on the request                     no deadline
    sending     the client does not read the (rest of the) response deadline: `send_seconds`
    discarding  the response was sent, and the body still comes     deadline: `discard_seconds`
    idle        the client may send another request                 deadline: uvicorn's `timeout_keep_alive`

Always true: in every phase but `busy`, the connection ends by itself, or makes room for another (`Connections`).
"""

from __future__ import annotations

import resource
import time
from collections import defaultdict
from email.utils import formatdate
from enum import Enum, auto
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from palaver.core.dataclass import dataclass

if TYPE_CHECKING:
    import asyncio


MAX_CONNECTIONS: Final = 4096  # more would not help one process
MIN_CONNECTIONS: Final = 16
REFUSAL_SECONDS: Final = 60.0  # for so long a refused connection counts as a problem
_ADDRESS_SHARE: Final = 4  # one address gets this part of all connections
MIN_BODY_BYTES_PER_SECOND: Final = 4096
_TIMED_OUT: Final = (
    b"HTTP/1.1 408 Request Timeout\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 47\r\n"
    b"Connection: close\r\n\r\nThe request did not arrive completely in time.\n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """The numbers of connections that may be open at once."""

    total: int
    per_address: int  # does not hold for trusted proxies, behind which there are many clients

    @classmethod
    def from_open_files(cls) -> ConnectionLimits:
        """Derive the limits from the number of files that this process may open."""
        open_files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if open_files == resource.RLIM_INFINITY:
            open_files = 2 * MAX_CONNECTIONS
        total = max(MIN_CONNECTIONS, min(MAX_CONNECTIONS, open_files // 2))
        return cls(total=total, per_address=total // _ADDRESS_SHARE)


def raise_open_file_limit() -> None:
    """Let this process open as many files as it can use, if the system allows more than it has by default."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    useful = 2 * MAX_CONNECTIONS
    wanted = useful if hard == resource.RLIM_INFINITY else min(useful, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class Connections:
    """The open connections of a server."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._refused_at: float | None = None
        self._addresses: dict[HttpProtocol, str] = {}
        self._by_address: defaultdict[str, set[HttpProtocol]] = defaultdict(set)
        # Those that the server waits for, longest first.
        self._waiting: dict[HttpProtocol, None] = {}
        self._waiting_by_address: defaultdict[str, dict[HttpProtocol, None]] = defaultdict(dict)

    def __len__(self) -> int:
        return len(self._addresses)

    @property
    def has_refused_lately(self) -> bool:
        """True if a connection was refused because all that are allowed in total were busy."""
        return self._refused_at is not None and time.monotonic() - self._refused_at < REFUSAL_SECONDS

    def make_room(self, address: str, *, is_proxy: bool) -> bool:
        """Make room for a connection from an address; return False if that is not possible."""
        if not is_proxy and len(self._by_address.get(address, ())) >= self._limits.per_address:
            return self._give_up_first(self._waiting_by_address.get(address, {}))
        has_room = len(self) < self._limits.total or self._give_up_first(self._waiting)
        if not has_room:
            self._refused_at = time.monotonic()
        return has_room

    def give_up_longest_waiting(self) -> bool:
        """Close the connection that the server has been waiting for longest; return False if it waits for none."""
        return self._give_up_first(self._waiting)

    def add(self, connection: HttpProtocol, address: str) -> None:
        self._addresses[connection] = address
        self._by_address[address].add(connection)

    def remove(self, connection: HttpProtocol) -> None:
        """Forget a connection; do nothing if it was removed before."""
        address = self._addresses.pop(connection, None)
        if address is None:
            return
        self.mark_busy(connection, address)
        self._by_address[address].discard(connection)
        if not self._by_address[address]:
            del self._by_address[address]

    def mark_waiting(self, connection: HttpProtocol) -> None:
        """Note that the server waits for this connection's client, from now on."""
        address = self._addresses.get(connection)
        if address is not None:
            self.mark_busy(connection, address)
            self._waiting[connection] = None
            self._waiting_by_address[address][connection] = None

    def mark_busy(self, connection: HttpProtocol, address: str) -> None:
        """Note that the server works on a request of this connection."""
        if connection in self._waiting:
            del self._waiting[connection]
            del self._waiting_by_address[address][connection]
            if not self._waiting_by_address[address]:
                del self._waiting_by_address[address]

    def _give_up_first(self, waiting: dict[HttpProtocol, None]) -> bool:
        connection = next(iter(waiting), None)
        if connection is None:
            return False
        self.remove(connection)
        connection.give_up()
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """The times that the server waits for a client."""

    header_seconds: float = 15.0
    body_seconds: float = 20.0  # and one second more for every `MIN_BODY_BYTES_PER_SECOND` that have arrived
    send_seconds: float = 30.0  # without any progress of a client that reads its response
    discard_seconds: float = 5.0
    keep_alive_seconds: int = 30


class Phase(Enum):
    """The things that the server waits for; see the top of this module."""

    HEADERS = auto()
    BODY = auto()
    BUSY = auto()
    SENDING = auto()
    DISCARDING = auto()
    IDLE = auto()


@lru_cache(maxsize=1)
def _build_date_headers(second: int) -> list[tuple[bytes, bytes]]:
    return [(b"date", formatdate(second, usegmt=True).encode())]


class _ResponseTransport:
    """Writes the head of a response together with its body, if that follows at once: the client is woken up once."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._head = b""
        self.is_head_next = False

    def write(self, data: bytes) -> None:
        if self.is_head_next:
            self.is_head_next = False
            self._head = data
            self._loop.call_soon(self._write_head)
        else:
            head, self._head = self._head, b""
            self._transport.write(head + data)

    def close(self) -> None:
        self._write_head()
        self._transport.close()

    def _write_head(self) -> None:
        if self._head:
            self.write(b"")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class HttpProtocol(H11Protocol):
    """A connection that ends when its client takes too long."""

    def __init__(self, *args: Any, connections: Connections, address: str, timeouts: Timeouts, **options: Any) -> None:
        super().__init__(*args, **options)
        self._inner_app = self.app
        self.app = self._run_app
        self._registry = connections
        self._address = address
        self._timeouts = timeouts
        self._phase = Phase.BUSY
        self._phase_started_at = 0.0
        self._received_bytes = 0  # in this phase
        self._has_unanswered_data = False  # something arrived since the last response
        self._is_lost = False
        self._timer: asyncio.TimerHandle | None = None

    # -- events of the connection --------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(_ResponseTransport(transport, self.loop))  # type: ignore[arg-type]
        self._registry.add(self, self._address)
        self._enter_phase(Phase.HEADERS)

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost = True
        self._registry.remove(self)
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._has_unanswered_data = True
        self._received_bytes += len(data)
        # The `Date` of responses is current without a timer that wakes an idle server.
        self.server_state.default_headers = _build_date_headers(int(time.time()))
        super().data_received(data)
        self._update_phase()

    def on_response_complete(self) -> None:
        self._has_unanswered_data = False
        super().on_response_complete()
        self._update_phase()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._update_phase()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._update_phase()

    def give_up(self) -> None:
        """Close the connection to make room for another."""
        if self._phase is Phase.SENDING:
            self.transport.abort()  # closing would wait for the client to read
        else:
            self.transport.close()
            self._update_phase()

    async def _run_app(self, scope: Any, receive: Any, send: Any) -> None:
        async def send_joined(message: Any) -> None:
            self.transport.is_head_next = message["type"] == "http.response.start"  # type: ignore[attr-defined]
            await send(message)

        try:
            await self._inner_app(scope, receive, send_joined)
        finally:  # uvicorn then closes the connection, if the response is not complete
            self.loop.call_soon(self._update_phase)

    # -- phases --------------------------------------------------------------------------------------------

    def _get_phase(self) -> Phase:
        if self.flow.write_paused or self.transport.is_closing():  # closing waits until everything was read
            return Phase.SENDING
        if self.cycle is not None and not self.cycle.response_complete:
            return Phase.BODY if self.cycle.more_body else Phase.BUSY
        if self.conn.their_state is h11.SEND_BODY:
            return Phase.DISCARDING
        return Phase.HEADERS if self.cycle is None or self._has_unanswered_data else Phase.IDLE

    def _update_phase(self) -> None:
        phase = self._get_phase()
        if phase is not self._phase and not self._is_lost:
            self._enter_phase(phase)

    def _enter_phase(self, phase: Phase) -> None:
        self._phase = phase
        self._phase_started_at = self.loop.time()
        self._received_bytes = 0
        self._stop_timer()
        if phase is Phase.BUSY:
            self._registry.mark_busy(self, self._address)
        else:
            self._registry.mark_waiting(self)
            self._check_deadline()

    # -- deadlines -----------------------------------------------------------------------------------------

    def _check_deadline(self) -> None:
        """End the connection if its client had its time; otherwise check again when that will be."""
        if self._phase is Phase.BODY and self.flow.read_paused:
            self._phase_started_at = self.loop.time()  # it is the server that does not take more
        seconds = self._get_allowed_seconds()
        if seconds is None:
            return
        deadline = self._phase_started_at + seconds
        if self.loop.time() < deadline:
            self._timer = self.loop.call_at(deadline, self._check_deadline)
        else:
            self._time_out()

    def _get_allowed_seconds(self) -> float | None:
        allowed = {
            Phase.HEADERS: self._timeouts.header_seconds,
            Phase.BODY: self._timeouts.body_seconds + self._received_bytes / MIN_BODY_BYTES_PER_SECOND,
            Phase.SENDING: self._timeouts.send_seconds,
            Phase.DISCARDING: self._timeouts.discard_seconds,
        }
        return allowed.get(self._phase)

    def _time_out(self) -> None:
        is_unanswered = self.cycle is None or self.cycle.response_complete or not self.cycle.response_started
        is_request = self._phase is Phase.BODY or (self._phase is Phase.HEADERS and self._has_unanswered_data)
        if is_request and is_unanswered:  # browsers also open connections that they may not use: those get nothing
            self.transport.write(_TIMED_OUT)
        self.give_up()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
