"""Published types of the Cloud API: what is wrong with a request or a webhook.

The types are those of `@whatsapp-cloudapi/types`. They are older than some fields, which Meta's documentation adds.
"""

from __future__ import annotations

import functools
import json
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jsonschema import Draft7Validator

JSON = dict[str, Any]

SCHEMA_FILE = Path(__file__).parents[3] / "build" / "schemas" / "whatsapp.json"
# What Meta has added to webhooks since the types were published, or what they leave out.
NEWER_FIELDS = frozenset({"from_user_id", "recipient_user_id", "username", "voice", "url", "sha256", "filename"})
SCHEMA_MESSAGE_TYPES = frozenset({"text", "button", "image", "video", "document", "order", "interactive"})


@functools.cache
def get_validator(name: str) -> Draft7Validator:
    from jsonschema import Draft7Validator

    schema = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    return Draft7Validator({**schema, "$ref": f"#/definitions/{name}"})


def list_problems(name: str, value: JSON) -> list[str]:
    """Return how a value differs from a published type."""
    return [f"{name}: {'.'.join(map(str, e.path))} {e.message[:300]}" for e in get_validator(name).iter_errors(value)]


_REQUEST_TYPES = {
    "text": "CloudAPISendTextMessageRequest",
    "image": "CloudAPISendImageMessageRequest",
    "audio": "CloudAPISendAudioMessageRequest",
    "video": "CloudAPISendVideoMessageRequest",
    "document": "CloudAPISendDocumentMessageRequest",
    "reaction": "CloudAPISendReactionMessageRequest",
}
_INTERACTIVE_TYPES = {
    "button": "CloudAPISendInteractiveButtonsMessageRequest",
    "list": "CloudAPISendInteractiveListMessageRequest",
}


def check_request(request: JSON) -> list[str]:
    """Return what is wrong with a request to `messages`."""
    if request.get("status") == "read":
        return list_problems("CloudAPIMarkMessageReadRequest", request)
    checked = dict(request)
    if "recipient" in checked and "to" not in checked:  # a BSUID; the types know only `to`
        checked["to"] = checked.pop("recipient")
        if "." not in checked["to"]:
            return ["recipient: not a BSUID"]
    elif not str(checked.get("to", "")).isdigit():
        return [f"to: {checked.get('to')!r} is not a number"]
    if request.get("type") == "text":  # the types leave it out, Meta's page on replies has it
        context = checked.pop("context", {"message_id": ""})
        if set(context) != {"message_id"}:
            return ["context: needs message_id and nothing else"]
    kind = str(request.get("type"))
    name = _INTERACTIVE_TYPES.get(request["interactive"]["type"]) if kind == "interactive" else _REQUEST_TYPES.get(kind)
    return list_problems(name, checked) + _check_limits(request) if name else [f"type: {kind!r} is unknown"]


def _check_limits(request: JSON) -> list[str]:
    """Return the limits of Meta's documentation that a request breaks."""
    problems = []
    if len(request.get("text", {}).get("body", "")) > 4096:
        problems.append("text.body: longer than 4096")
    if len(request.get("biz_opaque_callback_data", "")) > 512:
        problems.append("biz_opaque_callback_data: longer than 512")
    interactive = request.get("interactive", {})
    buttons = interactive.get("action", {}).get("buttons", [])
    rows = [row for section in interactive.get("action", {}).get("sections", []) for row in section["rows"]]
    if interactive and not 0 < len(interactive["body"]["text"]) <= (1024 if buttons else 4096):
        problems.append("interactive.body: length")
    if len(buttons) > 3 or any(not 0 < len(each["reply"]["title"]) <= 20 for each in buttons):
        problems.append("interactive.action.buttons: number or title")
    if len(rows) > 10 or any(not 0 < len(each["title"]) <= 24 or len(each["id"]) > 200 for each in rows):
        problems.append("interactive.action.sections: number, title or id")
    return problems


def check_webhook(payload: JSON) -> list[str]:
    """Return how a webhook differs from the published types, as far as they know its messages."""
    checked = _remove_newer(deepcopy(payload))
    for entry in checked["entry"]:
        for change in entry["changes"]:
            value = change["value"]
            messages = [each for each in value.get("messages", []) if each["type"] in SCHEMA_MESSAGE_TYPES]
            if "messages" in value:
                value["messages"] = messages
            value["statuses"] = [each for each in value.get("statuses", []) if each["status"] != "failed"]
            for contact in value.get("contacts", []):
                contact.setdefault("wa_id", "")  # people with a user name hide it
            for message in messages:
                message.setdefault("from", "")
                if "context" in message:
                    message["context"] = {"forwarded": False, "frequently_forwarded": False, **message["context"]}
                for kind in ("image", "video"):
                    if kind in message:
                        message[kind]["sha256"] = ""
                if "document" in message:
                    message["document"]["filename"] = ""
                message.get("order", {}).pop("text", None)
    return list_problems("WebhookPayload", checked)


def _remove_newer(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _remove_newer(each) for name, each in value.items() if name not in NEWER_FIELDS}
    return [_remove_newer(each) for each in value] if isinstance(value, list) else value
