"""Files that people add to what they say: taken in, kept, given back, and forgotten when nothing uses them.

The bytes are kept once each, under their SHA-256, in a folder of their own; no path is ever made from what a client
sent. A file that no conversation uses is forgotten a day after it was sent.

Always true: a file that is known has its bytes in place, whatever else goes on in other processes. Bytes are put in
place after their file is known, and taken away only when they still belong to none after they were moved aside.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
import secrets
import time
from base64 import b64encode
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from palaver.domain.attachment import (
    BEGINNING,
    LARGEST,
    MOST_IN_A_MESSAGE,
    MOST_OF_A_PERSON,
    TEXT,
    Attachment,
    AttachmentTooLarge,
    NoSuchAttachment,
    attachment_ids,
    check_parts,
    clean_name,
    is_plain_text,
    new_attachment_id,
    type_of,
    with_attachments,
)
from palaver.domain.errors import InvalidInput, LimitReached, StoreError, StoreFull, StoreReadOnly
from palaver.domain.person import check_sees_everything
from palaver.storage import attachments, sessions
from palaver.storage.engines.base import Read, Write
from palaver.storage.timestamps import to_micros

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from pathlib import Path

    from palaver.domain.person import Principal
    from palaver.services.store import SessionStore
    from palaver.storage.engines.base import Transaction

KEPT_UNUSED: Final = timedelta(days=1)
TIDIED_EVERY: Final = timedelta(hours=1)
LARGEST_FOR_A_MODEL: Final = 5_000_000  # bytes of an image that is sent along
MOST_FOR_A_MODEL: Final = 20_000_000  # bytes of images that are sent along together: the last of them
LONGEST_FOR_A_MODEL: Final = 100_000  # characters of a text file that are sent along
_ASIDE = ".going"
_COMING = ".coming-"

log = logging.getLogger(__name__)


class Attachments:
    """The files of one store, with their bytes in one folder."""

    def __init__(self, store: SessionStore, folder: Path) -> None:
        self._store = store
        self._engine = store.engine
        self._folder = folder

    # -- taking in and giving back -------------------------------------------------------------------------

    async def take(self, principal: Principal, name: str | None, chunks: AsyncIterator[bytes]) -> Attachment:
        """Take a file in, durably. Refuses what is too large or of a kind that is not taken."""
        coming = self._folder / f"{_COMING}{secrets.token_hex(8)}"
        try:
            with _told_plainly():
                size, digest, beginning = await self._receive(coming, chunks)
            is_text = await asyncio.to_thread(_is_text, coming)
            attachment = Attachment(
                id=new_attachment_id(),
                name=clean_name(name),
                type=type_of(beginning, is_text=is_text),
                size=size,
                sha256=digest,
                person_id=principal.person_id,
                created_at=self._store.clock.now(),
            )
            await self._engine.arun(Write(lambda tx: _know(tx, attachment)))
            with _told_plainly():
                await asyncio.to_thread(_put, coming, self._place(digest))
        finally:
            coming.unlink(missing_ok=True)
        return attachment

    async def get(self, principal: Principal, attachment_id: str, *, everything: bool = False) -> Attachment:
        """One file that this principal may see."""
        if everything:
            check_sees_everything(principal)
        person = None if everything else principal.person_id
        return await self._engine.arun(Read(lambda tx: attachments.seen(tx, attachment_id, person)[1]))

    def path(self, attachment: Attachment) -> Path:
        """Where the bytes of a file are."""
        place = self._place(attachment.sha256)
        if not place.exists():
            raise NoSuchAttachment
        return place

    # -- in messages ---------------------------------------------------------------------------------------

    async def attach(
        self, principal: Principal, session_id: str, content: str | Sequence[Any], ids: Sequence[str] = ()
    ) -> str | list[Any]:
        """What is to be said in a conversation, with the files it names: those in its parts and those given.

        From then on they are used there, so whoever sees the conversation sees them. Somebody else's file is not
        there, even for whoever knows its id.
        """
        check_parts(content)
        wanted = list(dict.fromkeys([*attachment_ids(content), *ids]))
        if not wanted:
            return content if isinstance(content, str) else list(content)
        if len(wanted) > MOST_IN_A_MESSAGE:
            raise InvalidInput(f"attachments: at most {MOST_IN_A_MESSAGE} files go into one message")

        def run(tx: Transaction) -> list[Attachment]:
            found = [attachments.seen(tx, attachment_id, principal.person_id) for attachment_id in wanted]
            attachments.use(tx, sessions.seen(tx, session_id, principal.person_id).no, [no for no, _ in found])
            return [attachment for _, attachment in found]

        return with_attachments(content, await self._engine.arun(Write(run)))

    async def for_model(
        self, session_id: str, messages: Sequence[Mapping[str, Any]], *, images: bool = True
    ) -> list[dict[str, Any]]:
        """The messages of a conversation as a model can take them: images as images, text files as their text.

        Only files that this conversation uses are opened. What cannot be shown is named, and so are images where the
        model takes none, or where newer ones are enough for a request.
        """
        wanted = {each for message in messages for each in attachment_ids(message.get("content"))}
        if not wanted:
            return [dict(message) for message in messages]

        def run(tx: Transaction) -> list[Attachment]:
            return attachments.used_in(tx, sessions.number_of(tx, session_id), wanted)

        used = {attachment.id: attachment for attachment in await self._engine.arun(Read(run))}
        seen = _newest_images(messages, used) if images else frozenset()
        return await asyncio.to_thread(lambda: [self._shown(message, used, seen) for message in messages])

    def _shown(
        self, message: Mapping[str, Any], used: Mapping[str, Attachment], seen: frozenset[str]
    ) -> dict[str, Any]:
        content = message.get("content")
        if not attachment_ids(content):
            return dict(message)
        parts = [
            self._part(used.get(str(part.get("id"))), seen) if attachment_ids([part]) else part
            for part in content or ()
        ]
        return dict(message) | {"content": parts}

    def _part(self, attachment: Attachment | None, seen: frozenset[str]) -> dict[str, Any]:
        if attachment is None:
            return _words("(a file that is gone)")
        try:
            return self._readable(attachment, as_image=attachment.id in seen) or _words(
                f'(the file "{attachment.name}", {attachment.type})'
            )
        except OSError:
            return _words(f'(the file "{attachment.name}" is gone)')

    def _readable(self, attachment: Attachment, *, as_image: bool) -> dict[str, Any] | None:
        place = self._place(attachment.sha256)
        if as_image:
            data = b64encode(place.read_bytes()).decode()
            return {"type": "image_url", "image_url": {"url": f"data:{attachment.type};base64,{data}"}}
        if attachment.type == TEXT:
            with place.open(encoding="utf-8", newline="") as stream:
                text = stream.read(LONGEST_FOR_A_MODEL + 1)
            cut = "\n(the rest of the file is left out)" if len(text) > LONGEST_FOR_A_MODEL else ""
            return _words(f'The file "{attachment.name}":\n{text[:LONGEST_FOR_A_MODEL]}{cut}')
        return None

    # -- forgetting ----------------------------------------------------------------------------------------

    async def keep_tidy(self) -> None:
        """Tidy now and then, until cancelled; a server does this as long as it runs."""
        while True:
            try:
                await self.tidy()
            except (StoreError, OSError) as error:  # it is done the next time
                log.warning("files cannot be tidied: %s", error)
            await asyncio.sleep(TIDIED_EVERY.total_seconds())

    async def tidy(self) -> int:
        """Forget what has been unused for a day, and let go of bytes that belong to no file; how many files went."""
        before = to_micros(self._store.clock.now() - KEPT_UNUSED)
        gone = await self._engine.arun(Write(lambda tx: attachments.forget_unused(tx, before)))
        await asyncio.to_thread(self._let_go, time.time() - KEPT_UNUSED.total_seconds())
        return gone

    def _let_go(self, before: float) -> None:
        for left in self._folder.glob(f"{_COMING}*"):
            if left.stat().st_mtime < before:
                left.unlink(missing_ok=True)
        for shelf in self._folder.glob("[0-9a-f][0-9a-f]"):
            files = [each for each in shelf.iterdir() if each.stat().st_mtime < before]
            known = self._known(files)
            for file in files:
                if _hash_of(file) not in known:
                    self._drop(file)

    def _drop(self, file: Path) -> None:
        """Move aside, look again, and only then let go: somebody may be sending the same bytes just now."""
        aside = file if file.suffix == _ASIDE else file.with_suffix(_ASIDE)
        with contextlib.suppress(FileNotFoundError):  # another process does the same
            file.rename(aside)
            place = aside.with_suffix("")
            if self._known([aside]) and not place.exists():
                aside.rename(place)
            else:
                aside.unlink()

    def _known(self, files: Sequence[Path]) -> set[str]:
        hashes = [_hash_of(file) for file in files]
        return self._engine.run(Read(lambda tx: attachments.known_bytes(tx, hashes)))

    # -- the folder ----------------------------------------------------------------------------------------

    def _place(self, digest: str) -> Path:
        return self._folder / digest[:2] / digest

    async def _receive(self, coming: Path, chunks: AsyncIterator[bytes]) -> tuple[int, str, bytes]:
        """Write down what comes, durably: its size, its hash, and its first bytes."""
        await asyncio.to_thread(self._folder.mkdir, mode=0o700, parents=True, exist_ok=True)
        digest, size, beginning = hashlib.sha256(), 0, b""
        descriptor = os.open(coming, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            async for chunk in chunks:
                size += len(chunk)
                if size > LARGEST:
                    raise AttachmentTooLarge(
                        f"this file is too large: {LARGEST // 1_000_000} MB is the most I take", most=LARGEST
                    )
                digest.update(chunk)
                beginning += chunk[: BEGINNING - len(beginning)]
                await asyncio.to_thread(stream.write, chunk)
            await asyncio.to_thread(_to_disk, stream)
        return size, digest.hexdigest(), beginning


def _newest_images(messages: Sequence[Mapping[str, Any]], used: Mapping[str, Attachment]) -> frozenset[str]:
    """The images that a model is given, by id: those that it can take, from the last one back, until it is enough."""
    seen: set[str] = set()
    room = MOST_FOR_A_MODEL
    for message in reversed(messages):
        for attachment_id in reversed(attachment_ids(message.get("content"))):
            image = used.get(attachment_id)
            if image is None or not image.shown_in_place or image.size > LARGEST_FOR_A_MODEL or image.id in seen:
                continue
            room -= image.size
            if room < 0:
                return frozenset(seen)
            seen.add(image.id)
    return frozenset(seen)


def _know(tx: Transaction, attachment: Attachment) -> None:
    if attachments.size_of(tx, attachment.person_id) + attachment.size > MOST_OF_A_PERSON:
        raise LimitReached(
            f"your files have {MOST_OF_A_PERSON // 1_000_000} MB together, which is the most I keep;"
            " delete conversations with files in them",
            what="bytes",
            most=MOST_OF_A_PERSON,
        )
    attachments.add(tx, attachment)


def _is_text(file: Path) -> bool:
    return is_plain_text(file.read_bytes())


def _to_disk(stream: Any) -> None:
    stream.flush()
    os.fsync(stream.fileno())


def _put(coming: Path, place: Path) -> None:
    place.parent.mkdir(mode=0o700, exist_ok=True)
    coming.replace(place)
    folder = os.open(place.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _hash_of(file: Path) -> str:
    return file.name.removesuffix(_ASIDE)


def _words(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


@contextlib.contextmanager
def _told_plainly() -> Any:
    """Trouble with the folder in the words that the store uses for its own."""
    try:
        yield
    except PermissionError as error:
        raise StoreReadOnly(f"the folder for files cannot be written: {error.filename}") from error
    except OSError as error:
        raise StoreFull(f"a file could not be kept: {error.strerror}") from error
