"""The API's schemas declare the same keys as `--json` and exports, and add only what depends on the caller."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from palaver.core.ids import SessionId
from palaver.core.source import SessionSource
from palaver.sessions.events import Event, EventKind
from palaver.sessions.message import Message, message_to_json
from palaver.sessions.model import SearchHit
from palaver.sessions.search_text import Snippet
from palaver.sessions.usage import UsageSums, UsageTotals
from palaver.web.routes.search import SearchHitJson
from palaver.web.wire import ConversationJson, ConversationUsageJson, LogEventJson, MessageJson, UsageCountsJson

if TYPE_CHECKING:
    from palaver.sessions.store import SessionStore

NOW = datetime(2026, 11, 15, tzinfo=UTC)
HIT = SearchHit(
    session_id=SessionId("20261115_081200_1a2b3c4d"),
    title=None,
    seq=1,
    at=NOW,
    message=Message("user", "hi"),
    snippet=Snippet(()),
    archived=False,
    owner_name=None,
)
FIELDS_OF_THE_CALLER = {
    *("chosen_model", "busy_policy", "disabled_toolsets", "running", "queued", "last_seq", "read_seq"),
    *("profile", "personality", "workspace", "reachable", "owner_name"),
}


def test_schemas_and_json_have_the_same_keys(store: SessionStore) -> None:
    session = store.get_or_create_session(SessionSource.local_cli()).session
    for schema, data, added in (
        (ConversationJson, session.to_dict(), FIELDS_OF_THE_CALLER),
        (ConversationUsageJson, UsageTotals().to_dict(), set()),
        (UsageCountsJson, UsageSums().to_dict(), set()),
        (LogEventJson, Event(seq=1, kind=EventKind.STARTED, at=NOW).to_dict(), {"version"}),
        (MessageJson, message_to_json(Message("user", "hi")), set()),
        (SearchHitJson, HIT.to_dict(), {"owner_name"}),
    ):
        assert schema.__annotations__.keys() - data.keys() == added
