"""A conversation as one HTML document: what people see of it, in a file that needs nothing else and runs nothing.

Always true: every text is escaped, or rendered from Markdown and sanitized. The document has no script, refers to
nothing outside itself except by links that a reader may click, and its policy forbids everything else. It is made
piece by piece, in time and memory that do not depend on the length of the conversation.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cache
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final

from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Engine, Read, Transaction
from palaver.core.errors import PalaverError
from palaver.delivery.model import Capabilities
from palaver.delivery.splitting import split_markdown
from palaver.media import table as attachments
from palaver.sessions import table as sessions
from palaver.sessions.export import (
    DocumentEntry,
    clean_document_text,
    describe_event,
    describe_version,
    format_message_count,
    format_place,
    format_speaker,
    format_time,
    format_title,
    split_tool_call,
    to_line,
)
from palaver.sessions.quoted_messages import describe_sender
from palaver.sessions.sent_message import find_sent_by
from palaver.sessions.speech import ATTACHMENT_PART_TYPE, Attachment, find_attachment_ids

if TYPE_CHECKING:
    from datetime import datetime

    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.token import Token
    from markdown_it.utils import EnvType, OptionsDict

    from palaver.core.ids import SessionId
    from palaver.media.attachments import Attachments
    from palaver.sessions.message import Message
    from palaver.sessions.model import Session


STYLE: Final = "\n" + Path(__file__).with_name("document.css").read_text("utf-8")
_STYLE_HASH: Final = b64encode(sha256(STYLE.encode()).digest()).decode()
POLICY: Final = (
    f"default-src 'none'; img-src data:; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; form-action 'none'"
)

# Markdown is rendered for platforms that show HTML (Matrix, e-mail), and for exported conversations. Nothing is loaded
# from elsewhere: an image becomes a link. Only these tags and attributes, and addresses with given schemes, are left.
_ALLOWED_TAGS = {
    *("del", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "p", "a", "ul", "ol", "li", "strong", "em", "s"),
    *("code", "hr", "br", "table", "thead", "tbody", "tr", "th", "td", "pre"),
}
_ALLOWED_ATTRIBUTES = {"a": {"href"}, "ol": {"start"}, "code": {"class"}}
MAX_IMAGE_BYTES: Final = 3_000_000  # a larger image is listed by name
MAX_DOCUMENT_IMAGE_BYTES: Final = 15_000_000  # of all images in one document; the rest are listed by name
MAX_MARKDOWN_CHARS: Final = 200_000  # a longer text is shown as it was written
_MARKDOWN_PIECE: Final = Capabilities(max_length=20_000)  # of a long text: rendered one by one, in bounded time
_SCHEMES: Final = frozenset({"https", "http", "mailto"})
_AGENT_NAME: Final = "Agent"
PAGE_END: Final = "</main>\n</body>\n</html>\n"


@cache
def _get_parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
    parser.add_render_rule("image", _render_image)
    return parser


def _render_image(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    """Render an image as a link: it would be loaded from elsewhere, and tell who reads."""
    from markdown_it.common.utils import escapeHtml

    token = tokens[index]
    address = str(token.attrs.get("src", ""))
    label = renderer.renderInlineAsText(token.children or [], options, env) or address
    return f'<a href="{escapeHtml(address)}">{escapeHtml(label)}</a>'


def render_html(markdown: str, schemes: Set[str]) -> str:
    """Return Markdown as HTML with only allowed tags and attributes, and addresses with these schemes."""
    import nh3

    return nh3.clean(
        _get_parser().render(markdown),
        tags=_ALLOWED_TAGS,
        attributes=_ALLOWED_ATTRIBUTES,
        attribute_filter=_filter_attribute,
        url_schemes=set(schemes),
        link_rel=None,
    ).strip()


def _filter_attribute(tag: str, attribute: str, value: str) -> str | None:
    if (tag, attribute) == ("code", "class"):
        return value if value.startswith("language-") else None
    return value


@dataclass(frozen=True, slots=True)
class ConversationImages:
    """The images of one conversation, for its HTML document. The caller has checked the access to the conversation."""

    engine: Engine
    files: Attachments
    session_id: SessionId

    def find_images(self, attachment_ids: Sequence[str]) -> Mapping[str, Attachment]:
        def run(tx: Transaction) -> list[Attachment]:
            return attachments.list_used_in_session(tx, sessions.get_no(tx, self.session_id), attachment_ids)

        return {file.id: file for file in self.engine.run(Read(run)) if file.can_show_inline}

    def read_image(self, image: Attachment) -> bytes | None:
        try:
            return self.files.get_path(image).read_bytes()
        except (PalaverError, OSError):  # deleted meanwhile: its name is shown instead
            return None


def iterate_html(
    session: Session, entries: Iterable[DocumentEntry], images: ConversationImages | None
) -> Iterator[str]:
    """Yield the document of a session and its visible events, piece by piece."""
    title = format_title(session)
    facts = f"{format_place(session)} · {format_time(session.created_at)} · {format_message_count(session)}"
    yield format_page_start(title)
    yield f"<header><h1>{_escape(title)}</h1><p>{_escape(facts)}</p><p>{_escape(session.id)}</p></header>\n<main>\n"
    renderer = _MessageRenderer(session, images)
    for event, version in entries:
        if event.message is not None:
            yield from renderer.render(event.message, event.at)
            if version is not None:
                yield f'<p class="note">{_escape(describe_version(version))}</p>\n'
        elif (note := describe_event(event)) is not None:
            yield f'<p class="note">{_escape(note)} {_format_time_tag(event.at)}</p>\n'
    yield PAGE_END


def format_page_start(title: str) -> str:
    """Return the beginning of a page, up to and including the start of its body."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">\n'
        '<meta name="referrer" content="no-referrer">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
    )


class _MessageRenderer:
    """Renders the messages of one document, and counts the bytes of its images."""

    def __init__(self, session: Session, images: ConversationImages | None) -> None:
        self._session = session
        self._images = images
        self._image_bytes_left = MAX_DOCUMENT_IMAGE_BYTES

    def render(self, message: Message, at: datetime) -> Iterator[str]:
        if message.role == "tool":
            name = to_line(str(message.extra.get("tool_name") or "tool"))
            yield _fold(f"Result of {name}", message.text)
            return
        speaker = _AGENT_NAME if message.role == "assistant" else format_speaker(message, self._session)
        kind = "user" if message.role == "user" else "agent"
        by = f'<b dir="auto">{_escape(speaker)}</b>{_format_time_tag(at)}'
        yield f'<article class="{kind}">\n<p class="by">{by}</p>\n'
        sent_by = find_sent_by(message.extra)
        if sent_by is not None:
            yield f'<p class="note">{_escape(to_line(describe_sender(sent_by)))}.</p>\n'
        reasoning = message.extra.get("reasoning")
        if isinstance(reasoning, str) and reasoning.strip():
            yield _fold("Reasoning", reasoning.strip())
        yield from self._render_content(message)
        for call in message.extra.get("tool_calls") or ():
            name, arguments = split_tool_call(call)
            yield _fold(f"Used {to_line(name)}", _indent_json(arguments))
        yield "</article>\n"

    def _render_content(self, message: Message) -> Iterator[str]:
        content = message.content
        parts = [content] if isinstance(content, str) else content or ()
        ids = find_attachment_ids(content)
        images = self._images.find_images(ids) if self._images is not None and ids else {}
        for part in parts:
            text = part.get("text") if isinstance(part, Mapping) else part
            if isinstance(text, str):
                if text.strip():
                    yield render_answer(text) if message.role == "assistant" else _render_text(text)
            elif isinstance(part, Mapping):
                yield self._render_file(part, images.get(str(part.get("id"))))

    def _render_file(self, part: Mapping[str, object], image: Attachment | None) -> str:
        kind, name = str(part.get("type") or "file"), part.get("name")
        label = to_line(str(name)) if isinstance(name, str) else to_line(kind)
        if (
            image is not None
            and self._images is not None
            and image.size <= min(MAX_IMAGE_BYTES, self._image_bytes_left)
        ):
            data = self._images.read_image(image)
            if data is not None:
                self._image_bytes_left -= len(data)
                source = f"data:{image.media_type};base64,{b64encode(data).decode()}"
                return f'<img src="{escape(source)}" alt="{_escape(label)}">\n'
        size = part.get("size")
        details = f" ({size / 1e6:.1f} MB)" if isinstance(size, int) and size >= 50_000 else ""
        word = "File" if kind == ATTACHMENT_PART_TYPE else "Attachment"
        return f'<p class="text">{word}: {_escape(label)}{details}</p>\n'


def render_answer(markdown: str) -> str:
    """Render the Markdown of an answer; one that is too long is shown as it was written."""
    if len(markdown) > MAX_MARKDOWN_CHARS:
        return _render_text(markdown)
    text = clean_document_text(markdown)
    pieces = [text] if len(text) <= (_MARKDOWN_PIECE.max_length or 0) else split_markdown(text, _MARKDOWN_PIECE)
    html = "\n".join(render_html(piece, _SCHEMES) for piece in pieces)
    return f'<div class="markdown" dir="auto">{html}</div>\n'


def _render_text(text: str) -> str:
    return f'<p class="text" dir="auto">{_escape(text.strip())}</p>\n'


def _fold(label: str, text: str) -> str:
    return f'<details><summary>{_escape(label)}</summary><pre dir="auto">{_escape(text.strip())}</pre></details>\n'


def _indent_json(text: str) -> str:
    """Return JSON with one key on each line, or the text itself if it is none."""
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        return text


def _format_time_tag(moment: datetime) -> str:
    return f'<time datetime="{escape(moment.isoformat())}">{format_time(moment)}</time>'


def _escape(text: str) -> str:
    return escape(clean_document_text(text))
