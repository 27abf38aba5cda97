"""Markdown → mails, and which error an SMTP answer means. Pure.

A mail has the Markdown as text and the same as HTML, without anything that is loaded from elsewhere. It says that a
program has written it, so that other programs do not answer.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.header import Header
from email.message import EmailMessage
from email.policy import EmailPolicy
from email.utils import format_datetime
from functools import cache
from typing import TYPE_CHECKING

from palaver.core.dataclass import dataclass
from palaver.core.errors import DeliveryError, SendRejected, SendRetryable, TargetUnreachable
from palaver.platforms.common.markdown import TableLines, draw_table, read_rows, replace_invalid_characters
from palaver.platforms.email.headers import MAX_SUBJECT_CHARS, ThreadState, clean_line
from palaver.transfer.html_export import render_html

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markdown_it import MarkdownIt

    from palaver.delivery.adapter import OutgoingFile

MAX_REFERENCES = 20  # that a mail of ours carries: the first, and the last ones
MAX_DERIVED_SUBJECT_CHARS = 70
RATE_LIMIT_SECONDS = 60.0
MAX_TABLE_COLUMNS = 100  # characters of a line of text; wider tables stay as they were written
TABLE_LINES = TableLines(column=" | ", rule="-", cross="-|-")

_SCHEMES = frozenset({"https", "http", "mailto"})
_REPLY_PREFIX = re.compile(r"(?:re|aw|antw|antwort|sv|rif|res)\s{0,3}(?:\[\d{1,3}\])?\s{0,3}[:\uff1a]", re.IGNORECASE)
_HTML = '<!DOCTYPE html>\n<html><head><meta charset="utf-8"></head><body>\n{}\n</body></html>\n'
# Without them, the cells of a table stand side by side with nothing between them. Mail programs ignore style sheets.
_TABLE_STYLES = {
    "<table>": '<table style="border-collapse:collapse;margin:8px 0">',
    "<th>": '<th style="border:1px solid #bbb;padding:4px 10px;text-align:left;background:#f2f2f2;color:#222">',
    "<td>": '<td style="border:1px solid #bbb;padding:4px 10px;vertical-align:top">',
}
_MARKUP = re.compile(r"[*_`#>|~\[\]]+")
_MEDIA_TYPE = re.compile(r"[a-z0-9]{1,30}/[A-Za-z0-9.+-]{1,100}")
_CONTAINERS = {"multipart", "message"}  # a file in a mail has a type of its own
_LIMIT_CODES = {450, 452}  # greylisting, too many mails, a full mailbox
_UNKNOWN_PERSON = {550, 551, 553}
_FOLD = "\r\n "  # a field goes on in the next line
_PRINTABLE_ID = re.compile(r"[!-;=?-~]+")
_ENCODED_FIELDS = {"From", "To", "Subject", "Message-ID", "In-Reply-To", "References"}


class _MailPolicy(EmailPolicy):
    """Writes fields as we have encoded them: Python's own would decode encoded words first, also to line breaks."""

    def header_store_parse(self, name: str, value: str) -> tuple[str, str]:
        return (name, value) if name in _ENCODED_FIELDS else super().header_store_parse(name, value)


_POLICY = _MailPolicy(linesep="\r\n", refold_source="none")
_UTF8_POLICY = _POLICY.clone(utf8=True)  # for addresses with letters beyond ASCII


@dataclass(frozen=True, slots=True, kw_only=True)
class MailHead(ThreadState):
    sender: str
    sender_name: str
    recipients: Sequence[str]
    is_reply: bool = True  # to a person's mail; False: we write first


def make_reply_subject(subject: str) -> str:
    """Return the subject of an answer: `Re: …`, once."""
    subject = clean_line(subject)[:MAX_SUBJECT_CHARS] or "your message"
    return subject if _REPLY_PREFIX.match(subject) else f"Re: {subject}"


def derive_subject(text: str, file: OutgoingFile | None) -> str:
    """Return the subject of the first mail of a thread: its first line, or the name of the file."""
    if file is not None:
        return clean_line(file.name)[:MAX_DERIVED_SUBJECT_CHARS] or "File"
    first = next((line for line in text[:5000].split("\n") if _MARKUP.sub("", line).strip()), "")
    subject = clean_line(_MARKUP.sub("", first))
    if len(subject) > MAX_DERIVED_SUBJECT_CHARS:
        subject = subject[: MAX_DERIVED_SUBJECT_CHARS - 1].rsplit(" ", 1)[0] + "…"
    return subject or "Message"


def shorten_references(references: Sequence[str]) -> tuple[str, ...]:
    if len(references) <= MAX_REFERENCES:
        return tuple(references)
    return (references[0], *references[-(MAX_REFERENCES - 1) :])


def build_mail(head: MailHead, markdown: str) -> EmailMessage:
    mail = _start_mail(head)
    text = replace_invalid_characters(markdown)
    html = _HTML.format(_style_tables(render_html(text, _SCHEMES)))
    text = align_tables(text)
    mail.set_content(text, cte=_choose_encoding(text))
    mail.add_alternative(html, subtype="html", cte=_choose_encoding(html))
    return mail


def _style_tables(html: str) -> str:
    """Give tables lines and room; such a tag is no text of the answer, in which `<` is escaped."""
    for tag, styled in _TABLE_STYLES.items():
        html = html.replace(tag, styled)
    return html


@cache
def _get_table_parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.disable("inline")
    return parser


def align_tables(markdown: str) -> str:
    """Return the text with the columns of its tables aligned."""
    if "|" not in markdown:
        return markdown
    lines = markdown.split("\n")
    tokens = _get_table_parser().parse(markdown)
    starts = [number for number, token in enumerate(tokens) if token.type == "table_open" and not token.level]
    for start in reversed(starts):
        first, end = tokens[start].map or (0, 0)
        while end > first and not lines[end - 1].strip():
            end -= 1  # an empty line after it stays
        table = map(tokens.__getitem__, range(start, len(tokens)))
        drawn = draw_table(list(read_rows(table, lambda cell: cell.content)), MAX_TABLE_COLUMNS, TABLE_LINES)
        if drawn is not None:
            lines[first:end] = [drawn]
    return "\n".join(lines)


def build_file_mail(head: MailHead, file: OutgoingFile, data: bytes) -> EmailMessage:
    mail = _start_mail(head)
    name = clean_line(file.name).replace("=?", "=_") or "file"  # Python would read an encoded word in it
    mail.set_content(name + "\n", cte=_choose_encoding(name))
    main_type, _, sub_type = file.media_type.partition("/")
    if not _MEDIA_TYPE.fullmatch(file.media_type) or main_type in _CONTAINERS:
        main_type, sub_type = "application", "octet-stream"
    mail.add_attachment(data, maintype=main_type, subtype=sub_type, filename=name)
    return mail


def _choose_encoding(text: str) -> str:
    return "quoted-printable" if text.isascii() or len(text.encode()) < 2 * len(text) else "base64"


def _start_mail(head: MailHead) -> EmailMessage:
    is_ascii = all(address.isascii() for address in (head.sender, *head.recipients))
    mail = EmailMessage(policy=_POLICY if is_ascii else _UTF8_POLICY)
    mail["From"] = _format_mailbox(head.sender_name, head.sender)
    mail["To"] = f",{_FOLD}".join(head.recipients)
    mail["Subject"] = _encode_text(clean_line(head.subject)[:MAX_SUBJECT_CHARS])
    mail["Date"] = format_datetime(datetime.now(UTC))
    mail["Message-ID"] = f"<{head.message_id}>"
    references = [f"<{each}>" for each in head.references if _PRINTABLE_ID.fullmatch(each)]
    if references:
        if references[-1] == f"<{head.references[-1]}>":
            mail["In-Reply-To"] = references[-1]
        mail["References"] = _FOLD.join(references)
    mail["Auto-Submitted"] = "auto-replied" if head.is_reply else "auto-generated"
    mail["X-Auto-Response-Suppress"] = "All"
    return mail


def _format_mailbox(name: str, address: str) -> str:
    name = clean_line(name).replace("\\", "").replace('"', "")
    encoded = _encode_text(name)
    quoted = f'"{name}"' if encoded == name else encoded
    return f"{quoted} <{address}>" if name else address


def _encode_text(text: str) -> str:
    """Return a text for a field: in encoded words, if it is not plain ASCII or looks like one of them."""
    if text.isascii() and "=?" not in text:
        return text
    return Header(text, "utf-8", maxlinelen=75).encode(linesep="\r\n")


def classify_refusal(code: int, text: str, host: str, *, is_recipient: bool = False) -> DeliveryError:
    """Return what it means that the server has refused a mail or one of its recipients: it was certainly not sent."""
    answer = f"{host} has answered with {code}: {clean_line(text)[:200]}"
    if code == 421:
        return SendRetryable(answer, retry_after=RATE_LIMIT_SECONDS, whole_account=True)
    if code < 500:
        is_limit = code in _LIMIT_CODES or text.startswith("4.7.")
        return SendRetryable(answer, retry_after=RATE_LIMIT_SECONDS if is_limit else None)
    is_about_mail = re.match(r"5\.[67]\.", text)  # 5.6 is the content, 5.7 a policy
    if is_recipient and code in _UNKNOWN_PERSON and not is_about_mail:
        return TargetUnreachable(answer)
    return SendRejected(answer)
