"""Saves what is sent to the target `local` as files: an adapter for the outbox that calls no platform.

Always true: a file appears complete or not at all, only its owner can read it, and sending the same delivery again
writes the same file again. Names come from `jobs/run_end.py`; one that could lead out of the folder is refused.
"""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from typing import TYPE_CHECKING, Final, NoReturn

from palaver.core.errors import InvalidInput, PalaverError, SendRejected, SendRetryable
from palaver.core.files import write_file_atomically
from palaver.core.source import Platform
from palaver.delivery.adapter import AccountLink, Adapter, OutgoingMessage
from palaver.delivery.model import Capabilities

if TYPE_CHECKING:
    from pathlib import Path


FOLDER_MODE: Final = 0o700
_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")


class LocalFiles(Adapter):
    """Writes each delivery to `<folder>/<chat>/<thread>.md`."""

    platform = Platform.LOCAL
    capabilities = Capabilities(key_lifetime=timedelta(days=3650))  # the same delivery always writes the same file

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def run(self, link: AccountLink) -> NoReturn:
        """Receive nothing: a folder sends no messages."""
        raise NotImplementedError

    def render(self, markdown: str) -> list[str]:
        return [markdown]

    async def send(self, message: OutgoingMessage) -> str:
        folder, name = message.address.chat_id, message.address.thread_id or ""
        if not (_SAFE_NAME.fullmatch(folder) and _SAFE_NAME.fullmatch(name)):
            raise SendRejected.say("delivery.bad_file_name", "This is not the name of a file that Palaver writes.")
        path = self._folder / folder / f"{name}.md"
        await asyncio.to_thread(self._write, path, message.body)
        return str(path.relative_to(self._folder))

    def _write(self, path: Path, text: str) -> None:
        try:
            for folder in (self._folder, path.parent):
                folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            write_file_atomically(path, f"{text.rstrip()}\n", overwrite=True)
        except InvalidInput as error:
            raise SendRejected(error.text) from error
        except OSError as error:
            raise SendRetryable.say(
                "delivery.no_folder",
                "Could not create the folder {folder}: {reason}.",
                folder=path.parent,
                reason=error.strerror,
            ) from error
        except PalaverError as error:  # such as a full disk: there may be room later
            raise SendRetryable(error.text) from error
