"""Slack's published types: whether a request or an event matches them."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jsonschema import Draft7Validator

JSON = dict[str, Any]
SCHEMA_FILE = Path(__file__).parents[3] / "build" / "schemas" / "slack.json"
_EVENT_TYPES = {
    "message": "GenericMessageEvent",
    "message/file_share": "FileShareMessageEvent",
    "message/thread_broadcast": "ThreadBroadcastMessageEvent",
    "message/message_changed": "MessageChangedEvent",
    "message/message_deleted": "MessageDeletedEvent",
    "message/bot_message": "BotMessageEvent",
    "message/channel_topic": "ChannelTopicMessageEvent",
    "app_mention": "AppMentionEvent",
    "reaction_added": "ReactionAddedEvent",
    "reaction_removed": "ReactionRemovedEvent",
    "member_joined_channel": "MemberJoinedChannelEvent",
    "member_left_channel": "MemberLeftChannelEvent",
    "channel_left": "ChannelLeftEvent",
    "assistant_thread_started": "AssistantThreadStartedEvent",
    "assistant_thread_context_changed": "AssistantThreadContextChangedEvent",
    "agent_session_stopped": "AgentSessionStoppedEvent",
    "tokens_revoked": "TokensRevokedEvent",
}
_METHODS_WITHOUT_PARAMETERS = frozenset({"auth.test", "apps.connections.open"})


@functools.cache
def load_schema() -> JSON:
    if not SCHEMA_FILE.exists():
        raise RuntimeError("The schemas of Slack are missing. Run: make build/schemas/.generated")
    schema: JSON = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    for definition in schema["definitions"].values():
        # `subtype: undefined` in TypeScript: the field is absent.
        properties = definition.get("properties", {})
        absent = {name for name, each in properties.items() if each == {"not": {}}}
        definition["required"] = [name for name in definition.get("required", []) if name not in absent]
    return schema


@functools.cache
def _get_validator(kind: str, name: str) -> Draft7Validator:
    from jsonschema import Draft7Validator

    definitions = load_schema()["definitions"]
    root = definitions["SlackRequests"]["properties"][name] if kind == "request" else definitions[name]
    return Draft7Validator({"definitions": definitions, **root})


def list_request_problems(method: str, parameters: JSON) -> list[str]:
    """Return how the parameters of a method differ from the published ones."""
    if method in _METHODS_WITHOUT_PARAMETERS:
        return [f"{method}: {name} is not a parameter" for name in parameters]
    if method not in load_schema()["definitions"]["SlackRequests"]["properties"]:
        return [f"{method} is not in the schemas"]
    return _list_problems(_get_validator("request", method), method, parameters)


def list_event_problems(event: JSON) -> list[str]:
    """Return how an event differs from the published type."""
    key = "/".join(filter(None, (event.get("type"), event.get("subtype"))))
    name = _EVENT_TYPES.get(key)
    return _list_problems(_get_validator("event", name), name, event) if name else [f"the event {key} is not known"]


def list_manifest_problems(manifest: JSON) -> list[str]:
    """Return how the manifest of an app differs from the published type."""
    return _list_problems(_get_validator("manifest", "SlackManifests"), "manifest", {"manifest": manifest})


def _list_problems(validator: Draft7Validator, name: str, value: JSON) -> list[str]:
    from jsonschema.exceptions import best_match

    error = best_match(validator.iter_errors(value))
    return [] if error is None else [f"{name}: {'.'.join(map(str, error.path))} {error.message[:300]}"]
