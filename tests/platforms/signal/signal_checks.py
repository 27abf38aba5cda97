"""What signal-cli documents: the parameters of its methods, and the fields of the events that it prints."""

from __future__ import annotations

from typing import Any

# Method → the parameters that signal-cli documents, and their types.
_TARGET = {"recipient": list, "groupId": str, "noteToSelf": bool}
_METHODS: dict[str, dict[str, type]] = {
    "version": {},
    "listDevices": {},
    "send": {
        **_TARGET,
        "notifySelf": bool,
        "message": str,
        "textStyles": list,
        "attachments": list,
        "quoteTimestamp": int,
        "quoteAuthor": str,
        "quoteMessage": str,
        "editTimestamp": int,
    },
    "remoteDelete": {**_TARGET, "targetTimestamp": int},
    "sendTyping": {"recipient": list, "groupId": str, "stop": bool},
    "sendReaction": {**_TARGET, "emoji": str, "targetAuthor": str, "targetTimestamp": int, "remove": bool},
}
_STYLES = {"BOLD", "ITALIC", "STRIKETHROUGH", "MONOSPACE", "SPOILER"}

# Record → its fields; those after the bar may be missing.
_RECORDS = {
    "envelope": (
        "source sourceNumber sourceUuid sourceName sourceDevice timestamp serverReceivedTimestamp "
        "serverDeliveredTimestamp | dataMessage editMessage syncMessage receiptMessage typingMessage"
    ),
    "dataMessage": (
        "timestamp message expiresInSeconds | isExpirationUpdate viewOnce reaction quote mentions attachments sticker "
        "remoteDelete contacts pollCreate textStyles groupInfo adminDelete"
    ),
    "editMessage": "targetSentTimestamp dataMessage |",
    "sentMessage": (
        "destination destinationNumber destinationUuid | editMessage timestamp message expiresInSeconds viewOnce "
        "reaction quote mentions attachments sticker remoteDelete groupInfo"
    ),
    "syncMessage": "| sentMessage readMessages type",
    "groupInfo": "groupId groupName revision type |",
    "quote": "id author authorNumber authorUuid text attachments | mentions textStyles",
    "mentions": "name number uuid start length |",
    "attachments": "contentType filename id size width height caption uploadTimestamp |",
    "reaction": "emoji targetAuthor targetAuthorNumber targetAuthorUuid targetSentTimestamp isRemove |",
    "remoteDelete": "timestamp |",
    "receiptMessage": "when isDelivery isRead isViewed timestamps |",
    "typingMessage": "action timestamp |",
}


def find_problem(request: dict[str, Any]) -> str | None:
    """Return what signal-cli would refuse about a request."""
    method, parameters = request["method"], request["params"]
    known = _METHODS.get(method)
    if known is None or request.get("jsonrpc") != "2.0" or not isinstance(request.get("id"), str):
        return f"unknown request: {method}"
    for name, value in parameters.items():
        if name not in known or type(value) is not known[name]:
            return f"{method} does not take {name}={value!r}"
    if "recipient" in known and len({"recipient", "groupId", "noteToSelf"} & set(parameters)) != 1:
        return f"{method} needs one recipient"
    return _find_text_problem(parameters) if method == "send" else None


def _find_text_problem(parameters: dict[str, Any]) -> str | None:
    text = parameters.get("message", "")
    if not text and not parameters.get("attachments"):
        return "an empty message"
    if len(text.encode()) > 2000:
        return "a message that is too long"
    units = len(text.encode("utf-16-le")) // 2
    for style in parameters.get("textStyles", ()):
        start, length, name = style.split(":")
        if name not in _STYLES or int(start) + int(length) > units or int(length) < 1:
            return f"a wrong style: {style}"
    return None


def check_record(name: str, value: Any, problems: list[str]) -> None:
    """Note what is missing in an event, or unknown to signal-cli."""
    if isinstance(value, list):
        for each in value:
            check_record(name, each, problems)
        return
    if name not in _RECORDS or not isinstance(value, dict):
        return
    required, _, optional = _RECORDS[name].partition("|")
    missing = set(required.split()) - set(value)
    unknown = set(value) - set(required.split()) - set(optional.split())
    if missing or unknown:
        problems.append(f"event {name}: missing {sorted(missing)}, unknown {sorted(unknown)}")
    for key, each in value.items():
        check_record(key, each, problems)
