"""The API's schemas declare the same keys as `--json` and exports, and add only what depends on the caller."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver.sessions.message import Message, message_to_json
from palaver.sessions.wire import EventJson, HitJson, SessionJson, SessionUsageJson, UsageJson
from palaver.web.message_schemas import EventOut, MessageOut
from palaver.web.routes.search import SearchHitOut
from palaver.web.session_schemas import SessionOut, SessionUsageOut
from palaver.web.state import UsageCounts

if TYPE_CHECKING:
    from pydantic import BaseModel

FIELDS_OF_THE_CALLER = {
    *("chosen_model", "busy_policy", "disabled_toolsets", "running", "queued", "last_seq", "read_seq"),
    *("profile", "personality", "workspace", "reachable", "owner_name"),
}


@pytest.mark.parametrize(
    ("schema", "keys", "added"),
    [
        (SessionOut, SessionJson.__annotations__.keys(), FIELDS_OF_THE_CALLER),
        (SessionUsageOut, SessionUsageJson.__annotations__.keys(), set()),
        (UsageCounts, UsageJson.__annotations__.keys(), set()),
        (EventOut, EventJson.__annotations__.keys(), {"version"}),
        (MessageOut, message_to_json(Message("user", "hi")).keys(), set()),
        (SearchHitOut, HitJson.__annotations__.keys(), {"owner_name"}),
    ],
)
def test_schemas_and_json_have_the_same_keys(schema: type[BaseModel], keys: set[str], added: set[str]) -> None:
    assert schema.model_fields.keys() - keys == added
