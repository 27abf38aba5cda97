"""Turns a delivery into its parts: the messages of its text, and then its files."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from palaver.commands.reply_text import escape_markdown
from palaver.core.errors import SendRejected
from palaver.sessions.delivery import DeliveryPart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.delivery.adapter import Adapter
    from palaver.sessions.attachment import Attachment
    from palaver.sessions.delivery import Delivery

MAX_TEXT_PARTS = 100  # messages of one answer in a chat; the rest is read on the web
RENDER_SECONDS = 20.0  # for the messages of one answer
MAX_FILE_NAME_CHARS = 100
TOO_LONG = "(The rest of this answer is too long for this chat. Open the conversation on the web to read it.)"


async def render_text(adapter: Adapter, markdown: str) -> list[str]:
    """Return the messages that a text becomes on a platform, at most `MAX_TEXT_PARTS`. Raises SendRejected.

    It runs in a thread: adapters parse Markdown, and answers are long.
    """
    try:
        async with asyncio.timeout(RENDER_SECONDS):
            return await asyncio.to_thread(_render, adapter, markdown)
    except TimeoutError:
        raise SendRejected("This answer took too long to prepare for the platform.") from None
    except Exception as error:
        raise SendRejected(f"This answer couldn't be prepared for the platform ({type(error).__name__}).") from error


def _render(adapter: Adapter, markdown: str) -> list[str]:
    bodies = adapter.render(markdown)
    if len(bodies) > MAX_TEXT_PARTS:
        bodies = [*bodies[: MAX_TEXT_PARTS - 1], *adapter.render(TOO_LONG)[:1]]
    return bodies


async def build_parts(
    adapter: Adapter, delivery: Delivery, files: Sequence[tuple[int, Attachment]]
) -> list[DeliveryPart]:
    """Return the parts of a delivery; a file that cannot be sent becomes a line of the text. Raises SendRejected."""
    limit = adapter.capabilities.max_file_bytes
    notes = [_format_unsent_file(file, limit) for _, file in files if file.size > limit]
    markdown = "\n\n".join([*([delivery.content] if delivery.content.strip() else []), *notes])
    bodies = await render_text(adapter, markdown) if markdown else []
    attachment_nos = [no for no, file in files if file.size <= limit]
    if not bodies and not attachment_nos:
        raise SendRejected("There is nothing to send: the answer is empty on this platform.")
    parts = [DeliveryPart(no=no, body=body) for no, body in enumerate(bodies, 1)]
    return parts + [
        DeliveryPart(no=no, body="", attachment_no=attachment_no)
        for no, attachment_no in enumerate(attachment_nos, len(bodies) + 1)
    ]


def _format_unsent_file(file: Attachment, limit: int) -> str:
    name = escape_markdown(file.name, MAX_FILE_NAME_CHARS)
    reason = f"is too large for this chat ({file.size / 1e6:.1f} MB)" if limit else "can't be sent to this chat"
    return f"(The file “{name}” {reason}. Open the conversation on the web to get it.)"
