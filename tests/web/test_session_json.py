"""The API's schemas declare the same keys as `--json` and exports, and add only what depends on the caller."""

from __future__ import annotations

import pytest

from palaver.sessions.message import Message, message_to_json
from palaver.sessions.wire import EventJson, HitJson, SessionJson, SessionUsageJson, UsageJson
from palaver.web.routes.search import SearchHitJson
from palaver.web.wire import ConversationJson, ConversationUsageJson, LogEventJson, MessageJson, UsageCountsJson

FIELDS_OF_THE_CALLER = {
    *("chosen_model", "busy_policy", "disabled_toolsets", "running", "queued", "last_seq", "read_seq"),
    *("profile", "personality", "workspace", "reachable", "owner_name"),
}


@pytest.mark.parametrize(
    ("schema", "keys", "added"),
    [
        (ConversationJson, SessionJson.__annotations__.keys(), FIELDS_OF_THE_CALLER),
        (ConversationUsageJson, SessionUsageJson.__annotations__.keys(), set()),
        (UsageCountsJson, UsageJson.__annotations__.keys(), set()),
        (LogEventJson, EventJson.__annotations__.keys(), {"version"}),
        (MessageJson, message_to_json(Message("user", "hi")).keys(), set()),
        (SearchHitJson, HitJson.__annotations__.keys(), {"owner_name"}),
    ],
)
def test_schemas_and_json_have_the_same_keys(schema: type, keys: set[str], added: set[str]) -> None:
    assert schema.__annotations__.keys() - keys == added
