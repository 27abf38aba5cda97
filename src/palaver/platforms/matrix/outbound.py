"""Markdown → the content of Matrix events. Pure.

A rendered message is JSON with the Markdown itself as `body`, for clients that show plain text, and `html` in the
subset of HTML that the Matrix specification allows.

Always true: an event of a rendered message stays under the 65,536 bytes that homeservers accept, also when it is
encrypted, which makes it a third longer.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from palaver.delivery.splitting import split_markdown
from palaver.platforms.common.markdown import replace_invalid_characters
from palaver.sessions.delivery import DeliveryKind
from palaver.transfer import html_export as markdown_html

if TYPE_CHECKING:
    from collections.abc import Mapping

    from palaver.delivery.adapter import OutgoingFile, OutgoingMessage
    from palaver.delivery.model import Capabilities

MAX_FALLBACK_CHARS = 200  # of the text that clients without edits show beside the original

_ALLOWED_SCHEMES = frozenset({"https", "http", "mailto", "matrix"})


def render_html(markdown: str) -> str:
    """Return Markdown as HTML with only the tags, attributes and addresses that the specification allows."""
    return markdown_html.render_html(markdown, _ALLOWED_SCHEMES)


def render_messages(markdown: str, capabilities: Capabilities) -> list[str]:
    """Return the messages that a text becomes, each short enough for one event."""
    valid = replace_invalid_characters(markdown)
    parts = split_markdown(valid, capabilities, lambda part: len(encode_message(part).encode()))
    return [encode_message(part) for part in parts]


def encode_message(markdown: str) -> str:
    """Return the stored form of a rendered message."""
    return json.dumps({"body": markdown, "html": render_html(markdown)}, ensure_ascii=False)


def build_content(message: OutgoingMessage, *, send_as: str) -> dict[str, Any]:
    rendered = json.loads(message.body)
    message_type = "m.text" if send_as == "text" and message.kind is DeliveryKind.ANSWER else "m.notice"
    content: dict[str, Any] = {"msgtype": message_type, "body": rendered["body"], "m.mentions": {}}
    if rendered["html"]:
        content |= {"format": "org.matrix.custom.html", "formatted_body": rendered["html"]}
    return content


def build_relation(*, reply_to: str | None, thread_id: str | None) -> dict[str, Any]:
    """Return what puts an event into a thread, or makes it a reply, or both; nothing for neither."""
    if thread_id is not None:
        relation = {
            "rel_type": "m.thread",
            "event_id": thread_id,
            "is_falling_back": True,  # clients with threads show it without a quote
            "m.in_reply_to": {"event_id": reply_to or thread_id},
        }
        return {"m.relates_to": relation}
    return {"m.relates_to": {"m.in_reply_to": {"event_id": reply_to}}} if reply_to is not None else {}


def build_edit(message_id: str, message: OutgoingMessage, *, send_as: str) -> dict[str, Any]:
    new_content = build_content(message, send_as=send_as)
    return {
        "msgtype": new_content["msgtype"],
        "body": f"* {new_content['body'][:MAX_FALLBACK_CHARS]}",
        "m.mentions": {},
        "m.new_content": new_content,
        "m.relates_to": {"rel_type": "m.replace", "event_id": message_id},
    }


def build_file_content(file: OutgoingFile, location: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of the event of a file. `location` has its `url`, or its `file` if it is encrypted."""
    main_type = file.media_type.partition("/")[0]
    return {
        "msgtype": f"m.{main_type}" if main_type in {"image", "audio", "video"} else "m.file",
        "body": file.name,
        "filename": file.name,
        "info": {"mimetype": file.media_type, "size": file.size},
        "m.mentions": {},
        **location,
    }
