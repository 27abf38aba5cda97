"""Files of a message: downloaded only when they are wanted, never a reason to lose the message."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from palaver.core.errors import ConnectionLost
from palaver.inbox import files as inbox_files
from palaver.media.attachments import Attachments
from palaver.sessions.inbound import Inbound, InboundFile, Outcome
from palaver.sessions.speech import MAX_FILES_PER_MESSAGE
from support.gateway import wait_until
from support.inbox import list_rows, load_log, make_dm, make_group, make_inbox, say

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from datetime import datetime
    from pathlib import Path

    from palaver import SessionStore
    from palaver.inbox import Inbox
    from palaver.sessions.inbound import Receipt

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 32
OGG = b"OggS" + b"\0" * 60 + b"OpusHead"


class FakeFile:
    """A file on a platform that counts its downloads."""

    def __init__(self, data: bytes = PNG, error: Exception | None = None, *, hangs: bool = False) -> None:
        self.downloads = 0
        self._data, self._error, self._hangs = data, error, hangs

    async def download(self) -> AsyncIterator[bytes]:
        self.downloads += 1
        yield self._data
        if self._error:
            raise self._error
        if self._hangs:
            await asyncio.Event().wait()

    def make(self, name: str | None = "cat.png", **fields: Any) -> InboundFile:
        return InboundFile(name, self.download, **fields)


@pytest.fixture
def inbox(store: SessionStore, tmp_path: Path) -> Inbox:
    return make_inbox(store, Attachments(store, tmp_path / "attachments"))


def load_content(store: SessionStore, receipt: Receipt) -> Any:
    message = load_log(store, receipt)[-1].message
    assert message is not None
    return message.content


async def test_files_are_stored_with_the_message(store: SessionStore, inbox: Inbox) -> None:
    receipt = await say(inbox, make_dm(), "look", "1", files=[FakeFile().make()])
    text, file = load_content(store, receipt)
    assert text == {"type": "text", "text": "look"}
    assert (file["name"], file["media_type"], file["size"]) == ("cat.png", "image/png", len(PNG))
    assert len(list_rows(store, "SELECT 1 FROM attachment_use")) == 1


async def test_a_duplicate_downloads_nothing(store: SessionStore, inbox: Inbox) -> None:
    file = FakeFile()
    for _ in range(3):
        await say(inbox, make_dm(), "", "1", files=[file.make()])
    assert file.downloads == 1


@pytest.mark.both_engines
async def test_nothing_is_downloaded_for_strangers(store: SessionStore, tmp_path: Path) -> None:
    inbox = make_inbox(store, Attachments(store, tmp_path), open_platforms=frozenset())
    file = FakeFile()
    receipt = await say(inbox, make_dm("eve"), "", "1", files=[file.make()])
    assert receipt.outcome is Outcome.REJECTED
    assert file.downloads == 0
    assert list_rows(store, "SELECT 1 FROM person") == []


async def test_nothing_is_downloaded_for_commands_and_for_messages_to_others(store: SessionStore, inbox: Inbox) -> None:
    file = FakeFile()
    await say(inbox, make_dm(), "/help", "1", files=[file.make()])
    await say(inbox, make_group(), "look", "2", files=[file.make()], is_addressed=False)
    assert file.downloads == 0
    assert list_rows(store, "SELECT content FROM group_message") == [("look\n\n[file cat.png]",)]


@pytest.mark.parametrize(
    ("file", "line"),
    [
        (FakeFile().make("a.png", size=60_000_000), "a.png could not be received: too large (60 MB, limit 20 MB)"),
        (FakeFile(b"x" * 20_000_001).make("b.txt"), "b.txt could not be received: This file is too large"),
        (FakeFile(b"MZ\0\1").make("c.exe"), "c.exe could not be received: This file type isn't supported"),
        (FakeFile(error=OSError("reset")).make("d.png"), "d.png could not be received: the download failed]"),
        (FakeFile(error=ConnectionLost("It is gone.")).make("e.png"), "e.png could not be received: It is gone]"),
        (FakeFile(hangs=True).make("f.png"), "f.png could not be received: the download took longer than"),
    ],
    ids=["announced size", "real size", "type", "broken", "platform error", "slow"],
)
async def test_a_file_that_fails_is_named_in_the_message(
    store: SessionStore, inbox: Inbox, monkeypatch: pytest.MonkeyPatch, file: InboundFile, line: str
) -> None:
    if "longer" in line:
        monkeypatch.setattr(inbox_files, "DOWNLOAD_SECONDS", 0.2)
    receipt = await say(inbox, make_dm(), "here", "1", files=[file])
    assert receipt.outcome is Outcome.ACCEPTED
    content = load_content(store, receipt)
    assert content.startswith(f"here\n\n[file {line}")
    assert content.endswith("]")


async def test_a_message_has_a_limited_number_of_files(store: SessionStore, inbox: Inbox) -> None:
    sent = [FakeFile() for _ in range(MAX_FILES_PER_MESSAGE + 2)]
    receipt = await say(inbox, make_dm(), "", "1", files=[file.make() for file in sent])
    text, *parts = load_content(store, receipt)
    assert len(parts) == MAX_FILES_PER_MESSAGE
    assert text["text"].count("could not be received") == 2
    assert [file.downloads for file in sent[-2:]] == [0, 0]


async def test_a_voice_note_without_text_makes_a_turn(store: SessionStore, inbox: Inbox) -> None:
    voice = FakeFile(OGG).make(None, is_voice=True, duration_seconds=12)
    receipt = await say(inbox, make_dm(), "", "1", files=[voice])
    assert receipt.turn_id is not None
    text, file = load_content(store, receipt)
    assert text["text"] == "[voice note, 12 seconds]"
    assert (file["name"], file["media_type"]) == ("voice-note.ogg", "audio/ogg")


async def test_a_message_without_text_and_files_is_told_from_one_with_a_file(inbox: Inbox) -> None:
    from palaver.core.errors import InvalidMessage

    with pytest.raises(InvalidMessage):
        await inbox.accept(Inbound(source=make_dm(), content=""))


# -- albums -------------------------------------------------------------------------------------------------


@pytest.mark.both_engines
async def test_an_album_is_one_turn(store: SessionStore, inbox: Inbox, clock: Any) -> None:
    texts = ["", "the caption", ""]
    receipts = [
        await say(inbox, make_dm(), text, str(number), files=[FakeFile().make()], album_id="a")
        for number, text in enumerate(texts)
    ]
    assert [receipt.outcome for receipt in receipts] == [Outcome.ACCEPTED, Outcome.MERGED, Outcome.MERGED]
    assert len({receipt.turn_id for receipt in receipts}) == 1
    ((input_seq, due_at),) = list_rows(store, "SELECT input_seq, due_at FROM turn")
    assert input_seq == receipts[-1].seq
    assert due_at == to_micros(clock.now()) + 1_500_000
    assert len(list_rows(store, "SELECT 1 FROM attachment_use")) == 3


@pytest.mark.both_engines
async def test_other_messages_and_other_albums_have_turns_of_their_own(store: SessionStore, inbox: Inbox) -> None:
    for number, album_id in enumerate(["a", "a", "b", None, None]):
        await say(inbox, make_dm(), "x", str(number), album_id=album_id)
    assert len(list_rows(store, "SELECT 1 FROM turn")) == 4


async def test_an_album_is_not_rejected_halfway(store: SessionStore, tmp_path: Path) -> None:
    from palaver.sessions.turn import BusyPolicy

    inbox = make_inbox(store, Attachments(store, tmp_path), busy_policy=BusyPolicy.REJECT)
    outcomes = [(await say(inbox, make_dm(), "x", str(n), album_id="a")).outcome for n in range(2)]
    assert outcomes == [Outcome.ACCEPTED, Outcome.MERGED]
    assert (await say(inbox, make_dm(), "y", "9")).outcome is Outcome.REJECTED


def to_micros(moment: datetime) -> int:
    from palaver.core import clock as timestamps

    return timestamps.to_micros(moment)


async def test_slow_files_of_one_sender_leave_places_to_others(store: SessionStore, inbox: Inbox) -> None:
    slow = [FakeFile(hangs=True) for _ in range(inbox_files.MAX_DOWNLOADS + 2)]
    messages = [
        asyncio.create_task(say(inbox, make_dm("mallory"), "slow", f"s{number}", files=[file.make()]))
        for number, file in enumerate(slow)
    ]
    try:
        await wait_until(lambda: sum(file.downloads for file in slow) == inbox_files.MAX_DOWNLOADS_PER_SENDER)
        receipt = await say(inbox, make_dm(), "look", "1", files=[FakeFile().make()])
        assert load_content(store, receipt)[1]["name"] == "cat.png"
        assert not any(task.done() for task in messages)
    finally:
        for task in messages:
            task.cancel()
        await asyncio.gather(*messages, return_exceptions=True)
