"""Searches in scripts without spaces: the index has pairs of characters; old messages get them afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from palaver import SessionSource
from palaver.core.engines.base import Read, Write
from palaver.sessions import indexer, message_edits, search_table as search, table as sessions
from palaver.sessions.indexer import Indexer
from palaver.sessions.search_text import Term, parse_query, split_words
from support.gateway import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import OpenStore
    from palaver import SessionStore
    from palaver.core.engines.base import Transaction

pytestmark = pytest.mark.both_engines

ADA = SessionSource("telegram", "1", user_id="1", user_name="Ada")
BEN = SessionSource("telegram", "2", user_id="2", user_name="Ben")
MIGRATION = "0024_search_pairs"

some_text = st.text(st.sampled_from("服务器ไทยが v2，\n"), min_size=1, max_size=12)


@pytest.fixture
def without_indexer(monkeypatch: pytest.MonkeyPatch) -> None:
    """No thread indexes in the background; only a search does."""
    monkeypatch.setattr(Indexer, "notify", lambda _self: None)


def find(store: SessionStore, text: str) -> list[str]:
    return sorted(hit.message.text for hit in store.search(text, limit=100))


def list_terms(store: SessionStore, text: str) -> list[Term]:
    """Return the terms that are looked up for a query."""
    select = f"SELECT {search._CHOSEN_QUERY.replace('$8', '$2')}"
    (form,) = store.engine.run(Read(lambda tx: tx.fetch_all(select, "0", "1")))[0]
    return [*search._list_forms(parse_query(text))[int(form)]]


def has_rebuild(store: SessionStore) -> bool:
    return store.engine.run(Read(search.has_rebuild))


def is_phrase_in(phrase: str, text: str) -> bool:
    return f" {' '.join(split_words(phrase))} " in f" {' '.join(split_words(text))} "


def test_a_phrase_of_characters_is_one_of_pairs(store: SessionStore) -> None:
    texts = ["重启服务器", "服务 和 务器", "服务v2务器", "服，务器", "deploy服务器", "务器服务", "器"]
    for text in texts:
        store.record_user_message(ADA, text)
    assert list_terms(store, "服务器 deploy服务 器 -务器") == [
        Term(("服务", "务器")),
        Term(("deploy", "服", "务")),
        Term(("器",)),
        Term(("务器",), excluded=True),
    ]
    for query in ("服务器", "服务", "务器", "器", "服务*", "deploy服务", "务v", "器服"):
        assert find(store, query) == sorted(text for text in texts if is_phrase_in(query.strip("*"), text)), query
    assert find(store, "服务 -务器") == []
    assert find(store, "器 -服务") == ["器"]


@pytest.mark.usefixtures("without_indexer")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(some_text, min_size=1, max_size=4), some_text)
def test_a_quoted_text_is_found_where_its_words_follow_one_another(
    store: SessionStore, texts: list[str], phrase: str
) -> None:
    kept = [text for text in texts if split_words(text)]
    session_ids = {store.record_user_message(ADA, text).session_id for text in kept}
    if split_words(phrase):
        expected = sorted(text.strip() for text in kept if is_phrase_in(phrase, text))
        assert sorted(text.strip() for text in find(store, f'"{phrase}"')) == expected
    for session_id in session_ids:
        store.delete_session(session_id)


def test_the_words_and_pairs_of_an_edited_or_deleted_message_are_not_found(store: SessionStore) -> None:
    recorded = store.record_user_message(ADA, "服务器")
    assert find(store, "服务") == ["服务器"]
    store.rewrite_transcript(recorded.session_id, [{"role": "user", "content": "数据库"}])
    assert (find(store, "服务"), find(store, "数据")) == ([], ["数据库"])
    store.delete_session(recorded.session_id)
    assert find(store, "数据") == []

    def count_rows(tx: Transaction) -> int:
        column = "rowid" if tx.name == "sqlite" else "event_no"
        return len(tx.fetch_all(f"SELECT {column} FROM search"))

    assert store.engine.run(Read(count_rows)) == 0


# -- stores of older versions -------------------------------------------------------------------------------


@pytest.fixture
def upgrade(open_store: OpenStore, monkeypatch: pytest.MonkeyPatch) -> Callable[[SessionStore], SessionStore]:
    """Return a function that makes a store one of the version before pairs, and then opens it with this version."""

    def upgrade(store: SessionStore) -> SessionStore:
        with monkeypatch.context() as patch:
            patch.setattr(search, "list_pairs", lambda _: [])
            find(store, "nothing")  # indexes everything, without pairs
        store.engine.run(Write(remove_migration))
        store.close()
        return open_store()

    return upgrade


def remove_migration(tx: Transaction) -> None:
    tx.execute("DROP TABLE search_rebuild")
    tx.execute("DELETE FROM migration WHERE name = $1", MIGRATION)


@pytest.mark.usefixtures("without_indexer")
def test_old_messages_are_found_before_and_while_they_get_their_pairs(
    open_store: OpenStore, upgrade: Callable[[SessionStore], SessionStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store()
    store.record_user_message(BEN, "only Latin words, é")
    for number in range(3):
        old = store.record_user_message(ADA, f"旧服务器 {number}")
        store.reset_session(old.session_key)
    monkeypatch.setattr(search, "MIN_REBUILT_EVENTS", 1)  # one session at a time
    store = upgrade(store)
    listed = "SELECT id FROM search_rebuild JOIN session ON no = session_no"
    assert len(store.engine.run(Read(lambda tx: tx.fetch_all(listed)))) == 3
    store.record_user_message(ADA, "新服务器")
    expected = ["新服务器", *(f"旧服务器 {number}" for number in range(3))]
    steps = 0
    while True:
        assert list_terms(store, "服务器") == [Term(("服", "务", "器"))]
        hits = store.seen_by(store.get_or_create_person(ADA).principal).search("服务器")
        assert (sorted(hit.message.text for hit in hits), hits.is_indexing) == (expected, False)
        if not store.engine.run(Write(search.rebuild_sessions)):
            break
        steps += 1
        if not has_rebuild(store):
            break
    assert steps >= 3
    assert list_terms(store, "服务器") == [Term(("服务", "务器"))]
    assert find(store, "服务器") == expected


@pytest.mark.usefixtures("without_indexer")
def test_a_session_is_listed_until_all_its_messages_are_indexed_again(
    open_store: OpenStore, upgrade: Callable[[SessionStore], SessionStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the process dies after each of its transactions."""
    store = open_store()
    session_id = store.record_user_message(ADA, "服务器 0").session_id
    store.append_to_transcript(session_id, [f"服务器 {number}" for number in range(1, 10)])
    store = upgrade(store)
    assert store.engine.run(Write(search.rebuild_sessions))
    store.close()
    store = open_store()
    monkeypatch.setattr(indexer, "BATCH_EVENTS", 4)
    while (batch := store.engine.run(Read(lambda tx: search.collect_unindexed(tx, 4)))) is not None:
        assert not store.engine.run(Write(search.rebuild_sessions))
        assert has_rebuild(store)
        taken = batch
        store.engine.run(Write(lambda tx, taken=taken: search.index_batch(tx, taken)))  # type: ignore[misc]
    assert store.engine.run(Write(search.rebuild_sessions))
    assert not has_rebuild(store)
    assert len(find(store, "服务器")) == 10


@pytest.mark.usefixtures("without_indexer")
def test_a_batch_from_before_a_rebuild_does_not_skip_it(
    open_store: OpenStore, upgrade: Callable[[SessionStore], SessionStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process has collected new messages, and stores them when the session is to be indexed again."""
    store = open_store()
    session_id = store.record_user_message(ADA, "旧服务器").session_id
    store = upgrade(store)
    store.append_to_transcript(session_id, "新服务器")
    batch = store.engine.run(Read(lambda tx: search.collect_unindexed(tx, 100)))
    assert batch is not None
    find_kept = search._find_kept_events

    def rebuild_first(tx: Transaction, nos: Any) -> set[int]:  # after the batch has been compared with the session
        search.rebuild_sessions(tx)
        return find_kept(tx, nos)

    with monkeypatch.context() as patch:
        patch.setattr(search, "_find_kept_events", rebuild_first)
        store.engine.run(Write(lambda tx: search.index_batch(tx, batch)))
    assert not store.engine.run(Write(search.rebuild_sessions))  # it is not finished
    assert find(store, "服务器") == ["新服务器", "旧服务器"]
    assert store.engine.run(Write(search.rebuild_sessions))
    assert list_terms(store, "服务器") == [Term(("服务", "务器"))]
    assert find(store, "服务器") == ["新服务器", "旧服务器"]


@pytest.mark.usefixtures("without_indexer")
def test_only_messages_that_may_have_pairs_are_indexed_again(
    open_store: OpenStore, upgrade: Callable[[SessionStore], SessionStore]
) -> None:
    store = open_store()
    session_id = store.record_user_message(ADA, "harbor").session_id
    edited = store.append_to_transcript(session_id, "灯塔 one")
    store.append_to_transcript(session_id, ["灯塔 two", "Straße"])
    find(store, "nothing")
    store.engine.run(Write(lambda tx: edit_message(tx, session_id, edited, "lighthouse")))
    store = upgrade(store)
    store.append_to_transcript(session_id, "new harbor")
    assert store.engine.run(Write(search.rebuild_sessions))
    batch = store.engine.run(Read(lambda tx: search.collect_unindexed(tx, 100)))
    assert batch is not None
    assert [words.split()[0] for *_, words in batch.rows][-1] in {"new", "'new':1"}
    assert len(batch.rows) == 4  # the edited message once, with its new text; without "harbor"
    assert find(store, "harbor") == ["harbor", "new harbor"]
    assert (find(store, "灯塔"), find(store, "lighthouse")) == (["灯塔 two"], ["lighthouse"])
    assert store.engine.run(Write(search.rebuild_sessions))
    assert find(store, "灯塔") == ["灯塔 two"]
    assert (find(store, "one"), find(store, "strasse")) == ([], ["Straße"])


def edit_message(tx: Transaction, session_id: str, seq: int, text: str) -> bool:
    place = message_edits.MessagePlace(sessions.get(tx, session_id).no, seq)
    return message_edits.edit_message(tx, place, text, message_edits.Actor("telegram", None), 1)


async def test_the_thread_that_indexes_gives_old_messages_their_pairs(
    open_store: OpenStore, upgrade: Callable[[SessionStore], SessionStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "MIN_REBUILT_EVENTS", 2)
    monkeypatch.setattr(search, "MAX_REBUILT_SESSIONS", 3)
    with monkeypatch.context() as patch:
        patch.setattr(Indexer, "notify", lambda _: None)
        store = open_store()
        for number in range(10):
            recorded = store.record_user_message(ADA, f"服务器 {number}")
            store.reset_session(recorded.session_key)
        deleted = recorded.session_id
        store = upgrade(store)
    assert has_rebuild(store)
    store.delete_session(deleted)
    store.indexer.notify()
    await wait_until(lambda: not has_rebuild(store))
    assert len(find(store, "服务器")) == 9
