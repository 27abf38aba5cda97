"""Passes files between Palaver and the child, as files in the account's folder: a line could not hold them."""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final

from palaver.core.errors import ConnectionLost, LimitReached, SendRejected
from palaver.platforms.whatsapp_web.capabilities import MAX_FILE_BYTES
from palaver.platforms.whatsapp_web.protocol import ATTEMPTS_FOLDER, FILES_FOLDER, ErrorKind, RequestError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from palaver.delivery.adapter import OutgoingFile
    from palaver.platforms.whatsapp_web.process import ChildProcess

CHUNK_BYTES: Final = 256 * 1024
DOWNLOAD_SECONDS: Final = 120.0
MAX_DOWNLOAD_ATTEMPTS: Final = 3  # that end with a crash of the child
END_SECONDS: Final = 30.0  # in which a connection whose child has ended is taken down


class FileExchange:
    """The folder of one account. Every file in it is deleted as soon as it was read, and the rest at the next start."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / FILES_FOLDER
        self._attempts_folder = folder / ATTEMPTS_FOLDER
        self._suspects = asyncio.Lock()  # held by a file during whose download the child has crashed before

    @asynccontextmanager
    async def lend(self, file: OutgoingFile) -> AsyncIterator[str]:
        """Give the child a file to send; yield its name there."""
        path = self._folder / f"out-{uuid.uuid4().hex}"
        try:
            await self._write(path, file)
            yield path.name
        finally:
            await asyncio.to_thread(path.unlink, missing_ok=True)

    async def _write(self, path: Path, file: OutgoingFile) -> None:
        size = 0
        with await asyncio.to_thread(path.open, "xb") as target:
            async for chunk in file.read():
                size += len(chunk)
                if size > MAX_FILE_BYTES:
                    raise SendRejected("The file is too large for WhatsApp.")
                await asyncio.to_thread(target.write, chunk)

    async def download(self, child: ChildProcess, media: Mapping[str, Any]) -> AsyncIterator[bytes]:
        """Let the child download a file that a person has sent, and yield it."""
        if media["size"] and media["size"] > MAX_FILE_BYTES:
            raise LimitReached(f"Files of up to {MAX_FILE_BYTES // 1024 // 1024} MB can be received from WhatsApp.")
        path = self._folder / f"in-{uuid.uuid4().hex}"
        try:
            await self._attempt(child, media, path.name)
            with await asyncio.to_thread(path.open, "rb") as source:
                while chunk := await asyncio.to_thread(source.read, CHUNK_BYTES):
                    yield chunk
        finally:
            await asyncio.to_thread(path.unlink, missing_ok=True)

    async def _attempt(self, child: ChildProcess, media: Mapping[str, Any], name: str) -> None:
        """Download a file, unless the child has crashed each time: then nothing else could be received any more.

        Files that were being downloaded at a crash are tried again one after the other, to find the one that causes it.
        """
        marker = self._attempts_folder / hashlib.sha256(media["reference"].encode()).hexdigest()[:32]
        crashes = await asyncio.to_thread(_count_attempts, marker)
        if crashes >= MAX_DOWNLOAD_ATTEMPTS:
            await asyncio.to_thread(marker.unlink, missing_ok=True)
            raise LimitReached("The WhatsApp library crashed each time it downloaded this file.")
        async with self._suspects if crashes else nullcontext():
            await asyncio.to_thread(_add_attempt, marker)
            try:
                await self._request(child, media, name)
            finally:
                if child.is_running:
                    await asyncio.to_thread(marker.unlink, missing_ok=True)

    @staticmethod
    async def _request(child: ChildProcess, media: Mapping[str, Any], name: str) -> None:
        try:
            await child.request(
                "download", seconds=DOWNLOAD_SECONDS, reference=media["reference"], file=name, max_bytes=MAX_FILE_BYTES
            )
        except RequestError as error:
            if not child.is_running:
                # The message must not be stored without its file: it comes again with the next child.
                await asyncio.sleep(END_SECONDS)
            if error.kind is ErrorKind.TOO_LARGE:
                raise LimitReached(error.text) from None
            raise ConnectionLost(error.text) from None


def _count_attempts(marker: Path) -> int:
    return marker.stat().st_size if marker.exists() else 0


def _add_attempt(marker: Path) -> None:
    marker.parent.mkdir(mode=0o700, exist_ok=True)
    with marker.open("ab") as file:
        file.write(b".")
