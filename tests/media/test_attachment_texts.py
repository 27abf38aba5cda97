"""Documents in messages: the model gets their text, read once, only in the conversation that has them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from palaver.core.engines.base import Write
from palaver.media import attachments, table as attachment_rows
from palaver.media.attachments import Attachments
from palaver.media.documents import extraction
from palaver.media.documents.limits import WORD_TYPE
from palaver.sessions import table as sessions
from palaver.sessions.speech import AttachmentNotFound, add_attachments
from support.documents import make_pdf, make_word

if TYPE_CHECKING:
    from pathlib import Path

    from palaver import SessionStore
    from palaver.core.engines.base import Transaction
    from palaver.people.model import Principal
    from palaver.sessions.speech import Attachment


@pytest.fixture
def files(store: SessionStore, tmp_path: Path) -> Attachments:
    return Attachments(store, tmp_path / "files")


async def receive(files: Attachments, principal: Principal, name: str, data: bytes) -> Attachment:
    async def chunks() -> Any:
        yield data

    return await files.receive(principal, name, chunks())


async def attach(store: SessionStore, principal: Principal, session_id: str, file: Attachment) -> list[dict[str, Any]]:
    def run(tx: Transaction) -> object:
        found = attachments.find_attachments(tx, principal.person_id, "look", [file.id])
        attachment_rows.use_in_session(tx, sessions.get_no(tx, session_id), [no for no, _ in found])
        return add_attachments("look", [each for _, each in found])

    return [{"role": "user", "content": await store.engine.arun(Write(run))}]


async def prepare(files: Attachments, session_id: str, messages: list[dict[str, Any]]) -> str:
    [message] = await files.prepare_for_model(session_id, messages)
    return str(message["content"][-1]["text"])


def list_texts(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "files" / "texts").glob("*"))


async def test_the_model_reads_the_text_and_the_file_is_read_once(
    store: SessionStore, files: Attachments, dm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = store.record_user_message(dm(), "hi").session_id
    ada = store.get_or_create_person(dm()).principal
    file = await receive(files, ada, "letter.docx", make_word())
    assert file.media_type == WORD_TYPE
    messages = await attach(store, ada, session, file)
    assert await prepare(files, session, messages) == 'The text of the file "letter.docx":\nDear Ada'

    async def fail(*_: object, **__: object) -> None:
        raise AssertionError("it was read again")

    monkeypatch.setattr(extraction.TextExtractor, "read", fail)
    again = Attachments(store, tmp_path / "files")  # as after a restart
    assert "Dear Ada" in await prepare(again, session, messages)


async def test_a_damaged_text_in_the_cache_is_read_again(
    store: SessionStore, files: Attachments, dm: Any, tmp_path: Path
) -> None:
    session = store.record_user_message(dm(), "hi").session_id
    ada = store.get_or_create_person(dm()).principal
    messages = await attach(store, ada, session, await receive(files, ada, "letter.docx", make_word()))
    await prepare(files, session, messages)
    [text] = list_texts(tmp_path)
    for damage in ("", "{}", "no json\nDear Eve", text.read_text()[:-2], '{"format": 0}\nDear Eve'):
        text.write_text(damage)
        assert (await prepare(files, session, messages)).endswith("Dear Ada")


async def test_a_file_that_cannot_be_read_says_why(store: SessionStore, files: Attachments, dm: Any) -> None:
    session = store.record_user_message(dm(), "hi").session_id
    ada = store.get_or_create_person(dm()).principal
    messages = await attach(store, ada, session, await receive(files, ada, "scan.pdf", make_pdf("")))
    expected = '(the file "scan.pdf", application/pdf; no text: it contains no text; its pages may be scanned images)'
    assert await prepare(files, session, messages) == expected
    assert await prepare(files, session, messages) == expected  # from the cache


async def test_a_document_of_another_person_is_never_read(store: SessionStore, files: Attachments, dm: Any) -> None:
    own = store.record_user_message(dm(), "hi").session_id
    other = store.record_user_message(dm("ben"), "hi").session_id
    ada = store.get_or_create_person(dm()).principal
    file = await receive(files, ada, "letter.docx", make_word())
    messages = await attach(store, ada, own, file)
    await prepare(files, own, messages)
    assert await prepare(files, other, messages) == "(a deleted file)"
    ben = store.get_or_create_person(dm("ben")).principal
    with pytest.raises(AttachmentNotFound):
        await attach(store, ben, other, file)


async def test_texts_are_deleted_with_their_files(
    store: SessionStore, files: Attachments, dm: Any, tmp_path: Path, clock: Any
) -> None:
    session = store.record_user_message(dm(), "hi").session_id
    ada = store.get_or_create_person(dm()).principal
    file = await receive(files, ada, "letter.docx", make_word())
    await prepare(files, session, await attach(store, ada, session, file))
    (tmp_path / "files" / "texts" / ".left-by-a-killed-process").write_text("x")
    await files.clean_up()
    assert len(list_texts(tmp_path)) == 2
    files.delete_unused_hashes([file.sha256])  # it is in use
    assert len(list_texts(tmp_path)) == 2

    store.delete_session(session)
    clock.advance(days=2)
    for each in (tmp_path / "files").rglob("*"):
        os.utime(each, (0, 0))
    assert await files.clean_up() == 1
    assert list_texts(tmp_path) == []


async def test_the_texts_together_are_bounded(
    store: SessionStore, files: Attachments, dm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = store.record_user_message(dm(), "hi").session_id
    ada = store.get_or_create_person(dm()).principal
    for number in range(3):
        word = make_word(f"<w:p><w:r><w:t>letter {number}</w:t></w:r></w:p>")
        file = await receive(files, ada, "letter.docx", word)
        await prepare(files, session, await attach(store, ada, session, file))
        os.utime(tmp_path / "files" / "texts" / file.sha256, (number, number))
    monkeypatch.setattr("palaver.media.documents.extraction.MAX_CACHE_BYTES", 250)
    await files.clean_up()
    kept = "".join(each.read_text() for each in list_texts(tmp_path))
    assert ["letter 0" in kept, "letter 1" in kept, "letter 2" in kept] == [False, True, True]
