"""The HTML document of a conversation: what is in it, and that nothing in it can run or load anything."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest

from palaver import SessionSource
from palaver.core.engines.base import Read, Write
from palaver.core.errors import SessionNotFound
from palaver.media import table as attachments
from palaver.media.attachments import Attachments
from palaver.sessions import table as sessions, versions_table as versions
from palaver.sessions.export import DocumentFormat
from palaver.transfer import html_export
from palaver.transfer.documents import Documents, iterate_visible_entries, make_file_name
from palaver.transfer.html_export import render_answer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from palaver import SessionStore
    from palaver.core.engines.base import Transaction

    Source = Callable[..., SessionSource]

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 32
HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(1)><svg onload=alert(1)>"
    " [a](javascript:alert(1)) [b](data:text/html,x) ![c](https://evil.example/c.png)"
    ' "><style>*{background:url(https://evil.example/s)}</style><iframe src=//evil.example></iframe>'
    "\n\n<a href='https://evil.example' onclick=alert(1)>x</a>\n\n```html\n</pre></div><script>alert(2)</script>\n```"
)


class Page(HTMLParser):
    """The tags and attributes of a document, as a browser reads them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def export_html(store: SessionStore, source: SessionSource, session_id: str, files: Attachments | None = None) -> str:
    principal = store.get_or_create_person(source).principal
    return "".join(Documents(store, files).iterate(principal, session_id, DocumentFormat.HTML))


def test_the_document_shows_who_said_what_and_folds_the_rest(sqlite_store: SessionStore, dm: Source) -> None:
    store = sqlite_store
    session_id = store.record_user_message(dm(), "hello *you*\nline 2").session_id
    store.append_to_transcript(
        session_id,
        [
            {
                "role": "assistant",
                "content": "**bold** and `code`",
                "reasoning": "let me see",
                "tool_calls": [{"id": "c", "function": {"name": "look", "arguments": '{"at": "sky"}'}}],
            },
            {"role": "tool", "content": "blue", "tool_call_id": "c", "tool_name": "look"},
            {"role": "assistant", "content": "It is blue."},
        ],
    )
    text = export_html(store, dm(), session_id)
    page = Page(text)
    assert "<strong>bold</strong> and <code>code</code>" in text
    assert "hello *you*\nline 2" in page.text
    for words in ("Ada", "Agent", "Reasoning", "let me see", "Used look", "Result of look", "2026-11-15 08:12 UTC"):
        assert words in page.text
    assert [tag for tag, _ in page.tags].count("details") == 3


def test_hidden_messages_are_left_out_and_events_become_notes(sqlite_store: SessionStore, dm: Source) -> None:
    store = sqlite_store
    session_id = store.record_user_message(dm(), "keep this").session_id
    store.append_to_transcript(session_id, "an answer")
    store.record_user_message(dm(), "take this back")
    store.undo(session_id)
    text = export_html(store, dm(), session_id)
    assert "take this back" not in text
    assert "The last exchange was undone." in text


def test_documents_say_that_there_are_other_versions_and_the_own_format_has_them(
    sqlite_store: SessionStore, dm: Source
) -> None:
    store, view = sqlite_store, sqlite_store.seen_by(sqlite_store.get_or_create_person(dm()).principal)
    session_id = store.record_user_message(dm(), "first question").session_id
    store.append_to_transcript(session_id, "old answer")
    no = store.engine.run(Read(lambda tx: sessions.get(tx, session_id).no))

    def replace(text: str, *, is_edit: bool) -> None:
        seq = view.load_messages(session_id)[-2].seq
        store.engine.run(Write(lambda tx: versions.start_version(tx, no, seq, 0, is_edit=is_edit)))
        store.append_to_transcript(session_id, [{"role": "user", "content": text}, f"answer to {text}"])

    def export(document_format: DocumentFormat) -> str:
        principal = store.get_or_create_person(dm()).principal
        return "".join(Documents(store, None).iterate(principal, session_id, document_format))

    replace("first question", is_edit=False)
    note = "Version 2 of 2 of this answer. The other version is not in this document."
    assert note in export(DocumentFormat.HTML)
    assert f"*{note}*" in export(DocumentFormat.MARKDOWN)
    replace("better question", is_edit=True)
    note = "Version 3 of 3 of this message. The other 2 versions are not in this document."
    for text in (export(DocumentFormat.HTML), export(DocumentFormat.MARKDOWN), view.export_markdown(session_id)):
        assert text.count(note) == 1
        assert "better question" in text
        assert "old answer" not in text
    own = export(DocumentFormat.JSONL)
    assert [text in own for text in ("old answer", "answer to first question", "answer to better question")] == [
        True
    ] * 3


@pytest.mark.parametrize("role", ["user", "assistant", "system", "tool"])
def test_nothing_in_a_message_becomes_a_script_or_a_request(sqlite_store: SessionStore, role: str) -> None:
    store, source = sqlite_store, SessionSource("telegram", "x", user_id="x", user_name=f"Eve{HOSTILE}")
    session_id = store.record_user_message(source, HOSTILE).session_id
    call = {"name": HOSTILE, "arguments": HOSTILE}
    message = {"role": role, "content": HOSTILE, "reasoning": HOSTILE, "tool_calls": [call], "tool_name": HOSTILE}
    store.append_to_transcript(session_id, message)
    store.seen_by(store.get_or_create_person(source).principal).rename(session_id, HOSTILE[:90])
    page = Page(export_html(store, source, session_id))
    assert not {"script", "iframe", "svg", "object", "link", "form", "base"} & {tag for tag, _ in page.tags}
    for tag, attributes in page.tags:
        assert not any(name.startswith("on") or name == "style" for name in attributes), (tag, attributes)
        for name in ("src", "href"):
            address = attributes.get(name)
            allowed = ("data:image/",) if name == "src" else ("http:", "https:", "mailto:")
            assert address is None or address.startswith(allowed), (tag, attributes)
    assert [tag for tag, _ in page.tags].count("style") == 1


def test_the_policy_allows_only_the_stylesheet_and_images_in_the_file(sqlite_store: SessionStore, dm: Source) -> None:
    session_id = sqlite_store.record_user_message(dm(), "hello").session_id
    page = Page(export_html(sqlite_store, dm(), session_id))
    policies = [attributes["content"] for _, attributes in page.tags if "http-equiv" in attributes]
    assert len(policies) == 1
    assert re.match(r"default-src 'none'; img-src data:; style-src 'sha256-[\w+/=]+';", policies[0] or "")


async def _yield_bytes(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def test_images_are_in_the_file_as_far_as_there_is_room(
    sqlite_store: SessionStore, dm: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = sqlite_store
    files = Attachments(store, tmp_path / "attachments")
    principal = store.get_or_create_person(dm()).principal
    image = await files.receive(principal, 'a "<b>.png', _yield_bytes(PNG))
    notes = await files.receive(principal, "notes.txt", _yield_bytes(b"some text"))
    session_id = store.record_user_message(dm(), "hello").session_id

    def use(tx: Transaction) -> None:
        nos = [no for no, _ in attachments.list_by_id(tx, [image.id, notes.id])]
        attachments.use_in_session(tx, sessions.get_no(tx, session_id), nos)

    store.engine.run(Write(use))
    parts = [{"type": "text", "text": "see"}, image.to_part(), image.to_part(), notes.to_part()]
    store.append_to_transcript(session_id, {"role": "user", "content": parts})
    monkeypatch.setattr(html_export, "MAX_DOCUMENT_IMAGE_BYTES", len(PNG) + 5)
    page = Page(export_html(store, dm(), session_id, files))
    images = [attributes for tag, attributes in page.tags if tag == "img"]
    assert [str(each["src"])[:22] for each in images] == ["data:image/png;base64,"]
    assert images[0]["alt"] == 'a "<b>.png'
    assert 'File: a "<b>.png' in page.text
    assert "File: notes.txt" in page.text


@pytest.mark.parametrize("document_format", [DocumentFormat.HTML, DocumentFormat.MARKDOWN])
def test_a_long_conversation_is_read_page_by_page(
    sqlite_store: SessionStore, dm: Source, document_format: DocumentFormat
) -> None:
    store = sqlite_store
    session_id = store.record_user_message(dm(), "start").session_id
    store.append_to_transcript(session_id, ["word " * 200] * 300)
    principal = store.get_or_create_person(dm()).principal
    chunks = Documents(store, None).iterate(principal, session_id, document_format)
    assert "start" in next(chunks)
    store.seen_by(principal).delete(session_id)
    with pytest.raises(SessionNotFound):  # access is checked for every page
        list(chunks)


def test_what_is_said_during_an_export_is_not_in_it(sqlite_store: SessionStore, dm: Source) -> None:
    store = sqlite_store
    session_id = store.record_user_message(dm(), "before").session_id
    store.append_to_transcript(session_id, ["more"] * 150)
    view = store.seen_by(store.get_or_create_person(dm()).principal)
    entries = iterate_visible_entries(view, session_id)
    first = next(entries)
    store.append_to_transcript(session_id, "afterwards")
    texts = [entry.event.message.text for entry in [first, *entries] if entry.event.message]
    assert len(texts) == 151
    assert "afterwards" not in texts


def test_only_people_with_access_get_a_document(sqlite_store: SessionStore, dm: Source) -> None:
    session_id = sqlite_store.record_user_message(dm(), "my diary").session_id
    for document_format in DocumentFormat:
        stranger = sqlite_store.get_or_create_person(dm("bob")).principal
        with pytest.raises(SessionNotFound):
            Documents(sqlite_store, None).iterate(stranger, session_id, document_format)


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Trip to Lisbon", "trip-to-lisbon"),
        ("../../etc/passwd", "etc-passwd"),
        ("CON", "con"),
        ("漢字 und Ümlaut", "漢字-und-ümlaut"),
        ("...", "conversation"),
    ],
)
def test_file_names_are_safe(sqlite_store: SessionStore, dm: Source, title: str, expected: str) -> None:
    session_id = sqlite_store.record_user_message(dm(), "hello").session_id
    session = sqlite_store.seen_by(sqlite_store.get_or_create_person(dm()).principal).rename(session_id, title)
    assert make_file_name(session, "md") == f"2026-11-15-{expected}-{session_id[-8:]}.md"


def test_a_text_that_is_too_long_for_a_parser_is_shown_as_it_is() -> None:
    html = render_answer("**a** " * 40_000)
    assert "<strong>" not in html
    assert "**a** **a**" in html
