"""Lists of sessions: what they contain, and what a page costs."""

from __future__ import annotations

import copy
import pickle
from dataclasses import fields, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from palaver import GatewayConfig, TurnUsage
from palaver.core.engines.base import Read
from palaver.sessions import list_table as session_lists
from palaver.sessions.list_table import SessionFilter
from palaver.sessions.model import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver import SessionSource, SessionStore
    from palaver.core.engines.base import Row, Transaction
    from palaver.sessions.view import SessionView

    Source = Callable[..., SessionSource]


class CountingTransaction:
    """Counts the statements that fetch rows."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self.count = 0

    def fetch_all(self, sql: str, *params: object) -> list[Row]:
        self.count += 1
        return self._tx.fetch_all(sql, *params)


def open_view(store: SessionStore, source: SessionSource) -> SessionView:
    return store.seen_by(store.get_or_create_person(source).principal)


@pytest.mark.both_engines
def test_a_page_is_one_statement_and_has_the_newest_of_all_places(
    open_store: Callable[..., SessionStore], group: Source
) -> None:
    store = open_store(config=GatewayConfig(group_sessions_per_user=False))
    written = []
    for number in range(12):
        source = group("ada", f"club{number % 3}", thread_id=str(number))
        written.append(store.record_user_message(source, f"message {number}").session_id)
        store.record_user_message(group("bob", "another club", thread_id=str(number)), "not hers")
    view = open_view(store, group("ada"))
    page, listed = view.summaries.list(limit=5), []
    while True:
        listed += [summary.session.id for summary in page]
        if page.cursor is None:
            break
        page = view.summaries.list(limit=5, cursor=page.cursor)
    assert listed == written[::-1]
    assert [session.id for session in view.list(limit=12)] == listed

    person_id = store.get_or_create_person(group("ada")).id

    def count(tx: Transaction) -> tuple[int, int]:
        places = [
            no for (no,) in tx.fetch_all("SELECT audience_no FROM audience_member WHERE person_id = $1", person_id)
        ]
        counting: Any = CountingTransaction(tx)
        return len(places), len(
            session_lists.list_summaries(counting, SessionFilter(), places, person_id)
        ) * counting.count

    places, found_by_one_statement = store.engine.run(Read(count))
    assert places > 1
    assert found_by_one_statement == 12


@pytest.mark.both_engines
def test_a_listed_session_is_like_the_one_that_its_json_describes(store: SessionStore, dm: Source) -> None:
    """A listed one is read from its row, field by field; that of a file has all its fields from the start."""
    first = store.record_user_message(dm("ada", chat_name="Ada's chat"), "hello")
    usage = TurnUsage(turn_id="t", model="m", provider="p", input_tokens=7, cost=Decimal("0.25"), last_prompt_tokens=9)
    store.update_session(first.session_id, usage)
    store.rename_session(first.session_id, "Trip")
    second = store.record_user_message(dm("ada", thread_id="2"), "hello again")
    for recorded, session in zip((second, first), store.list_sessions(), strict=True):
        assert session.id == recorded.session_id
        of_json = Session.from_dict(session.to_dict())
        assert of_json.to_dict() == session.to_dict()
        for same in (of_json, replace(session), copy.copy(session), pickle.loads(pickle.dumps(session))):
            assert same == session
            assert (hash(same), repr(same)) == (hash(session), repr(session))
        assert [getattr(of_json, each.name) for each in fields(Session)] == [
            getattr(session, each.name) for each in fields(Session)
        ]
        assert replace(session, title="Other").to_dict() == {
            **session.to_dict(),
            "title": "Other",
            "display_name": "Other",
        }
        assert not hasattr(session, "no_such_field")
    assert session.usage.cost == Decimal("0.25")
    assert session.to_dict()["usage"]["cost_usd"] == "0.25"
