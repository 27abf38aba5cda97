"""A proxy between the adapter and a mail server, which cuts, holds back and counts connections."""

from __future__ import annotations

import asyncio
import contextlib


async def close_server(server: asyncio.Server) -> None:
    """Listen no longer; what is being accepted just now is still accepted, because asyncio would leak it."""
    for listening in server.sockets:
        server.get_loop().remove_reader(listening.fileno())
    for _ in range(3):
        await asyncio.sleep(0)
    server.close()


class TcpProxy:
    """Forwards connections to a port on this machine."""

    def __init__(self, upstream_port: int) -> None:
        self._upstream_port = upstream_port
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._flowing = asyncio.Event()  # cleared: the server seems to hang
        self._flowing.set()
        self.port = 0
        self.count = 0  # of connections so far
        self.sent = bytearray()  # what clients have sent, over all connections
        self.cut_after: bytes | None = None  # cut the connection when a client has sent this
        self.hold_after: bytes | None = None  # let the server seem to hang when a client has sent this

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Listen no longer, and cut every connection."""
        if self._server is not None:
            await close_server(self._server)
            self._server = None
        await self.cut()

    async def cut(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def is_flowing(self) -> bool:
        return self._flowing.is_set()

    def hold(self) -> None:
        """Let the server seem to hang."""
        self._flowing.clear()

    def release(self) -> None:
        self._flowing.set()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.count += 1
        task = asyncio.create_task(self._handle(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._upstream_port)
            self._writers |= {writer, up_writer}
            try:
                directions = [
                    asyncio.create_task(self._copy(reader, up_writer, is_client=True)),
                    asyncio.create_task(self._copy(up_reader, writer)),
                ]
                await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
                for direction in directions:
                    direction.cancel()
                await asyncio.gather(*directions, return_exceptions=True)
            finally:
                for each in (writer, up_writer):
                    each.close()
                    self._writers.discard(each)

    async def _copy(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_client: bool = False
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                await self._flowing.wait()
                if is_client:
                    self.sent += data
                    if self.cut_after is not None and self.cut_after in data:
                        self.cut_after = None
                        return
                    if self.hold_after is not None and self.hold_after in data:
                        self.hold_after = None
                        self.hold()
                writer.write(data)
                await writer.drain()
