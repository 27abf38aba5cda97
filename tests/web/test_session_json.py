"""The API's schemas declare the same keys as `--json` and exports, and add only what depends on the caller."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from palaver import TurnUsage
from palaver.core.ids import SessionId
from palaver.core.source import SessionSource
from palaver.sessions.events import Event, EventKind
from palaver.sessions.message import Message, message_to_json
from palaver.sessions.model import SearchHit
from palaver.sessions.search_text import Snippet
from palaver.sessions.usage import UsageSums, UsageTotals
from palaver.web.routes.search import SearchHitJson
from palaver.web.wire import (
    ChatSourceJson,
    ConversationJson,
    ConversationUsageJson,
    LogEventJson,
    MessageJson,
    UsageCountsJson,
)

if TYPE_CHECKING:
    from palaver.sessions.store import SessionStore
    from support.web import WebServer

PAGE = TypeAdapter(list[ConversationJson])
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


async def test_a_list_has_the_same_json_as_its_conversations(web: WebServer) -> None:
    """A list is sent without being checked against its schema, so it must have just the declared keys."""
    owner = await web.sign_in()
    store = web.gateway.store
    project = (await owner.post("/api/projects", json={"name": "Travel"})).json()["id"]
    first = await web.create_conversation(owner, "hello", title="Trip", project=project, model="scripted-large")
    usage = TurnUsage(turn_id="t", model="m", provider="p", input_tokens=7, cost=Decimal("0.25"))
    await store.aio.update_session(first, usage)
    await owner.patch(f"/api/sessions/{first}", json={"pinned": True, "toolsets": {"memory": False}})
    await owner.post(f"/api/sessions/{first}/fork", json={})
    group = SessionSource("telegram", "c1", chat_name="Club", chat_type="group", user_id="u1", user_name="Ada")
    await store.aio.record_user_message(group, "from a group \N{PARTY POPPER}")
    page = (await owner.get("/api/sessions", params={"all": True})).json()
    assert len(page["sessions"]) == 3
    for session in page["sessions"]:
        assert session.keys() == ConversationJson.__annotations__.keys()
        assert session["source"].keys() == ChatSourceJson.__annotations__.keys()
        assert session["usage"].keys() == ConversationUsageJson.__annotations__.keys()
        assert json.loads(PAGE.dump_json(PAGE.validate_python([session], strict=True))) == [session]
        assert (await owner.get(f"/api/sessions/{session['id']}", params={"all": True})).json() == session
    [trip] = [session for session in page["sessions"] if session["id"] == first]
    assert (trip["usage"]["cost_usd"], trip["disabled_toolsets"], trip["owner_name"]) == ("0.25", ["memory"], "owner")
