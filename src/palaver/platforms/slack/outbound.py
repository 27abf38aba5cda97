"""Turns an answer into what Slack's methods take: a Markdown block, buttons, a plain text for notifications. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from palaver.core.plain_text import strip_markdown
from palaver.platforms.slack.mrkdwn import escape_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from palaver.sessions.delivery import Button

MAX_FALLBACK_CHARS: Final = 3000
MAX_BUTTON_CHARS: Final = 75
METADATA_TYPE: Final = "palaver_message"

# An answer must not notify a whole channel, whatever the model writes.
_BROADCAST: Final = re.compile(r"<(!(?:channel|here|everyone|subteam\^))", re.IGNORECASE)
_ZERO_WIDTH_SPACE: Final = "\u200b"


def build_blocks(markdown: str, buttons: Sequence[Button] = ()) -> list[dict[str, Any]]:
    """Return the blocks of a message: its text, and its buttons below."""
    blocks: list[dict[str, Any]] = [{"type": "markdown", "text": disarm_broadcasts(markdown)}]
    if buttons:
        elements = [
            {
                "type": "button",
                "action_id": f"palaver_{number}",
                "text": {"type": "plain_text", "text": button.label[:MAX_BUTTON_CHARS]},
                "value": button.data,
            }
            for number, button in enumerate(buttons, 1)
        ]
        blocks.append({"type": "actions", "elements": elements})
    return blocks


def build_fallback_text(markdown: str) -> str:
    """Return what notifications and screen readers show of a message: a plain text, which Slack does not interpret."""
    plain = strip_markdown(markdown[: 2 * MAX_FALLBACK_CHARS]).strip() or markdown.strip()
    return escape_text(plain[:MAX_FALLBACK_CHARS])


def disarm_broadcasts(markdown: str) -> str:
    """Return a text in which `<!channel>` and the like are only words."""
    return _BROADCAST.sub(rf"<{_ZERO_WIDTH_SPACE}\1", markdown)


def build_metadata(key: str) -> dict[str, Any]:
    """Return what is stored with a message on Slack, to recognize it when it is unknown whether it has arrived."""
    return {"event_type": METADATA_TYPE, "event_payload": {"key": key}}


def read_key(message: Mapping[str, Any]) -> str | None:
    """Return the key of a message of ours, as it was read back from Slack; None if it has none."""
    metadata = message.get("metadata") or {}
    if metadata.get("event_type") != METADATA_TYPE:
        return None
    key = (metadata.get("event_payload") or {}).get("key")
    return key if isinstance(key, str) else None
