"""Files that a person attaches to the next message of the chat: `/attach PATH`, and `--file PATH`.

Only the terminal has this command, because the path is one of its own machine. A file is stored as soon as it is
attached; if its message is never sent, the store deletes it after a day.
"""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final

from palaver.commands.registry import Completion
from palaver.core.errors import AttachmentsUnavailable, InvalidInput, LimitReached, NotFound
from palaver.sessions.speech import MAX_FILES_PER_MESSAGE, Attachment

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from typing import IO

    from palaver.media.attachments import Attachments
    from palaver.people.model import Principal

ATTACH: Final = "/attach"
DETACH: Final = "/detach"
COMMANDS: Final = (
    Completion(ATTACH, "PATH", "Attach a file to your next message. Without a path, lists attached files."),
    Completion(DETACH, "", "Remove the attached files from your next message."),
)
_CHUNK_BYTES: Final = 256 * 1024


class FileNotFound(NotFound):
    """No such file. Check the path."""


class FileNotReadable(InvalidInput):
    """This file can't be read."""


class AttachedFiles:
    def __init__(self, attachments: Attachments | None, principal: Principal) -> None:
        self._attachments = attachments
        self._principal = principal
        self._files: list[Attachment] = []

    @property
    def ids(self) -> list[str]:
        return [file.id for file in self._files]

    def clear(self) -> None:
        self._files.clear()

    async def run_command(self, text: str) -> str | None:
        """Run `/attach` or `/detach` and return the reply; None if the text is neither."""
        name, _, argument = text.strip().partition(" ")
        if name.lower() == DETACH:
            self.clear()
            return "Your next message has no files."
        if name.lower() != ATTACH:
            return None
        if not argument.strip():
            return self.describe() or f"No files are attached. Type {ATTACH} PATH to attach one."
        for path in _split_paths(argument.strip()):
            await self.add(path)
        return self.describe()

    async def add(self, path: Path) -> None:
        """Store a file of this machine. Raises an error that names it if it can't be attached."""
        if self._attachments is None:
            raise AttachmentsUnavailable
        if len(self._files) >= MAX_FILES_PER_MESSAGE:
            raise LimitReached(f"A message can have up to {MAX_FILES_PER_MESSAGE} files.", limit=MAX_FILES_PER_MESSAGE)
        stream = await asyncio.to_thread(_open_file, path)
        try:
            self._files.append(await self._attachments.receive(self._principal, path.name, _read_chunks(stream)))
        finally:
            stream.close()

    def describe(self) -> str:
        """Say which files the next message has; empty if it has none."""
        names = ", ".join(f"`{file.name}`" for file in self._files)
        return f"Attached to your next message: {names}" if names else ""


def _split_paths(text: str) -> list[Path]:
    """Return the paths in the text after `/attach`: one with spaces, or several with quotes as in a shell."""
    whole = Path(text).expanduser()
    if whole.exists():
        return [whole]
    try:
        parts = shlex.split(text)
    except ValueError:  # a quotation mark that does not end
        parts = [text]
    return [Path(part).expanduser() for part in parts]


def _open_file(path: Path) -> IO[bytes]:
    try:
        if path.is_dir():
            raise FileNotReadable(f"{path} is a folder. Attach the files in it one by one.", path=str(path))
        if path.exists() and not path.is_file():
            raise FileNotReadable(f"{path} is not a regular file.", path=str(path))
        return path.open("rb")
    except FileNotFoundError:
        raise FileNotFound(f"No such file: {path}", path=str(path)) from None
    except OSError as error:
        raise FileNotReadable(f"{path} can't be read: {error.strerror or error}", path=str(path)) from None


async def _read_chunks(stream: IO[bytes]) -> AsyncIterator[bytes]:
    while chunk := await asyncio.to_thread(stream.read, _CHUNK_BYTES):
        yield chunk
