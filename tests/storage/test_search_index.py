"""The index follows the log, whatever is said."""

from __future__ import annotations

import random
import string
from typing import TYPE_CHECKING

import pytest

from palaver.services.indexer import Indexer

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver import SessionSource, SessionStore


def many_words(letters: str, count: int, length: int) -> str:
    """Words of which each is said once."""
    chance = random.Random(7)
    return " ".join("".join(chance.choices(letters, k=length)) for _ in range(count))


@pytest.mark.parametrize(
    "huge",
    [
        many_words(string.ascii_lowercase, 16_000, 64),
        many_words("абвгдежзийклмн", 12_000, 64),
        many_words("𐐀𐐁𐐂𐐃𐐄𐐅𐐆", 6_000, 64),
        "word " * 100_000,
        "字" * 100_000,
        "x" * 3_000_000,
    ],
    ids=["many long words", "many words of two bytes", "many words of four bytes", "one word", "no spaces", "one run"],
)
def test_a_huge_message_keeps_nobody_from_finding_others(
    store: SessionStore, dm: Callable[..., SessionSource], huge: str
) -> None:
    before = store.record_user_message(dm(), "needle before").seq
    store.record_user_message(dm(), f"thread {huge}")
    after = store.record_user_message(dm("bob"), "needle after").seq
    assert [hit.seq for hit in store.search("needle")] == [after, before]
    assert len(store.search("thread")) == 1


@pytest.mark.parametrize(
    "text",
    [
        "it's",
        "a'b'c \\' \\\\ '' \"quoted\" :* & | ! ( ) <-> @a1 @s1",
        "NEAR AND OR NOT body : scope : a1 ^ - *",
        "\0nul\0between\0",
        "half \ud83d a pair",
        "e\u0301 a\u030a \u0301alone",
        "\u200bzero\u200bwidth\ufeff",
        "\x1f\x7f\x85control",
        "ß ŉ ǰ İ ﬃ Ⅷ ① ㎏ ﷺ",
        "กำลัง မြန်မာ ខ្មែរ 한국어 日本語 テスト",
        "👩‍👩‍👧‍👦 🇩🇪 1️⃣",
        "' OR 1=1; DROP TABLE event; --",
    ],
)
def test_any_text_can_be_indexed_and_looked_for(
    store: SessionStore, dm: Callable[..., SessionSource], text: str
) -> None:
    seq = store.record_user_message(dm(), f"needle {text} haystack").seq
    assert [hit.seq for hit in store.search("needle")] == [seq]
    assert [hit.seq for hit in store.search("haystack")] == [seq]
    store.search(text)  # as a query it may find or not, but it is one


def test_what_was_hidden_before_it_was_indexed_is_found_after_a_redo(
    store: SessionStore, dm: Callable[..., SessionSource]
) -> None:
    said = store.record_user_message(dm(), "needle")
    store.undo(said.session_id)
    assert list(store.search("needle")) == []
    store.redo(said.session_id)
    assert [hit.seq for hit in store.search("needle")] == [said.seq]


def test_a_long_backlog_is_indexed_whole(store: SessionStore, dm: Callable[..., SessionSource]) -> None:
    session_id = store.get_or_create_session(dm()).session_id
    for start in range(0, 1200, 300):
        store.append_to_transcript(session_id, [f"word{number} common" for number in range(start, start + 300)])
    other = store.record_user_message(dm("bob"), "common").session_id
    found: list[tuple[str, int]] = []
    before = None
    while page := store.search("common", limit=200, before=before):
        found += [(hit.session_id, hit.seq) for hit in page]
        before = page[-1].position
    assert len(found) == len(set(found)) == 1201
    assert (other, 2) in found
    assert [hit.message.text for hit in store.search("word1199")] == ["word1199 common"]


def test_a_store_that_is_closed_just_when_its_index_is_about_to_grow_does_not_wait_for_ever(
    store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    indexer = Indexer(store.engine)
    clear = indexer._wake.clear

    def closed_meanwhile() -> None:
        indexer._closed.set()
        indexer._wake.set()
        clear()

    monkeypatch.setattr(indexer._wake, "clear", closed_meanwhile)
    indexer.soon()
    assert indexer._thread is not None
    indexer._thread.join(10)
    assert not indexer._thread.is_alive()
