"""The search index follows the log, whatever the messages contain."""

from __future__ import annotations

import random
import string
from typing import TYPE_CHECKING

import pytest

from palaver.core.engines.postgres_connection import PostgresTransaction
from palaver.core.engines.sqlite import SqliteTransaction

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver import SessionSource, SessionStore
    from palaver.core.engines.base import Transaction

pytestmark = pytest.mark.both_engines


def make_distinct_words(letters: str, count: int, length: int) -> str:
    chooser = random.Random(7)
    return " ".join("".join(chooser.choices(letters, k=length)) for _ in range(count))


# Functions, so that the texts are made only where the test runs.
HUGE_TEXTS: dict[str, Callable[[], str]] = {
    "many long words": lambda: make_distinct_words(string.ascii_lowercase, 16_000, 64),
    "many words of two bytes": lambda: make_distinct_words("абвгдежзийклмн", 12_000, 64),
    "many words of four bytes": lambda: make_distinct_words("𐐀𐐁𐐂𐐃𐐄𐐅𐐆", 6_000, 64),
    "one word": lambda: "word " * 100_000,
    "no spaces": lambda: "字" * 100_000,
    "one run": lambda: "x" * 3_000_000,
}


@pytest.mark.parametrize("kind", HUGE_TEXTS)
def test_a_huge_message_does_not_keep_others_from_being_found(
    store: SessionStore, dm: Callable[..., SessionSource], kind: str
) -> None:
    before = store.record_user_message(dm(), "needle before").seq
    store.record_user_message(dm(), f"thread {HUGE_TEXTS[kind]()}")
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
def test_any_text_can_be_indexed_and_searched_for(
    store: SessionStore, dm: Callable[..., SessionSource], text: str
) -> None:
    seq = store.record_user_message(dm(), f"needle {text} haystack").seq
    assert [hit.seq for hit in store.search("needle")] == [seq]
    assert [hit.seq for hit in store.search("haystack")] == [seq]
    store.search(text)  # it may find something or nothing, but it is a valid query


def test_a_message_hidden_before_it_was_indexed_is_found_after_a_redo(
    store: SessionStore, dm: Callable[..., SessionSource]
) -> None:
    recorded = store.record_user_message(dm(), "needle")
    store.undo(recorded.session_id)
    assert list(store.search("needle")) == []
    store.redo(recorded.session_id)
    assert [hit.seq for hit in store.search("needle")] == [recorded.seq]


def test_a_long_backlog_is_indexed_completely(store: SessionStore, dm: Callable[..., SessionSource]) -> None:
    session_id = store.get_or_create_session(dm()).session_id
    for start in range(0, 1200, 300):
        store.append_to_transcript(session_id, [f"word{number} common" for number in range(start, start + 300)])
    other = store.record_user_message(dm("bob"), "common").session_id
    found: list[tuple[str, int]] = []
    cursor = None
    while page := store.search("common", limit=200, cursor=cursor):
        found += [(hit.session_id, hit.seq) for hit in page]
        cursor = page[-1].cursor
    assert len(found) == len(set(found)) == 1201
    assert (other, 2) in found
    assert [hit.message.text for hit in store.search("word1199")] == ["word1199 common"]


def test_the_newest_matches_are_found_however_common_a_word_is(
    store: SessionStore, dm: Callable[..., SessionSource]
) -> None:
    """PostgreSQL looks for them among the newest messages, then among more, then in its word index."""
    intervals = {"common": 2, "seldom": 50, "部署": 40}
    texts = [
        " ".join([f"number{number}", *(word for word, each in intervals.items() if number % each == 0)])
        for number in range(700)
    ]
    texts[30] += " rare"
    session_id = store.record_user_message(dm(), texts[0]).session_id
    store.append_to_transcript(session_id, texts[1:690])
    for text in texts[690:]:
        store.record_user_message(dm(), text)
    for _ in range(10):
        store.undo(session_id)
    for word in (*intervals, "rare", "nowhere"):
        expected = [text for text in reversed(texts[:690]) if word in text.split()]
        for limit in (1, 5, 50):
            first = store.search(word, limit=limit)
            assert [hit.message.text for hit in first] == expected[:limit]
            rest = store.search(word, limit=limit, cursor=first[-1].cursor) if first else []
            assert [hit.message.text for hit in rest] == expected[limit : 2 * limit]


@pytest.mark.parametrize("text", ["needle", "nowhere", "部署", "部署 needle -haystack"])
def test_a_search_is_one_statement(
    store: SessionStore, dm: Callable[..., SessionSource], monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """After the one that looks for messages that are not indexed."""
    store.record_user_message(dm(), "needle 部署")
    store.search(text)
    statements: list[str] = []

    def count(transaction: type[SqliteTransaction] | type[PostgresTransaction], name: str) -> None:
        run = getattr(transaction, name)

        def run_and_count(tx: Transaction, sql: str, *params: object) -> object:
            statements.append(sql)
            return run(tx, sql, *params)

        monkeypatch.setattr(transaction, name, run_and_count)

    for name in ("fetch_one", "fetch_all", "execute"):
        count(SqliteTransaction, name)
        count(PostgresTransaction, name)
    store.search(text)
    assert len([sql for sql in statements if "FROM session WHERE unindexed = 1" not in sql]) == 1
