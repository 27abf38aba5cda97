"""What a mail of ours looks like, and what the answers of an SMTP server mean."""

from __future__ import annotations

import re
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default as default_policy
from typing import Any

import pytest

from palaver.core.errors import SendRejected, SendRetryable, TargetUnreachable
from palaver.core.source import Platform
from palaver.delivery.adapter import OutgoingFile
from palaver.platforms.email.headers import (
    find_thread,
    make_first_part_id,
    make_own_id,
    parse_header,
    parse_own_id,
    split_addresses,
)
from palaver.platforms.email.outbound import (
    MailHead,
    align_tables,
    build_file_mail,
    build_mail,
    classify_refusal,
    derive_subject,
    make_reply_subject,
    shorten_references,
)
from palaver.sessions.delivery import Address
from palaver.testing.contract_platform import read_ten_bytes

from .mail_server import ADDRESS, ANNA, BOB


def make_head(**fields: Any) -> MailHead:
    values = {"message_id": "x@example.org", "sender": ADDRESS, "sender_name": "Palaver", "recipients": [ANNA]}
    return MailHead(**{**values, "subject": "Hello", **fields})


def reread(mail: EmailMessage) -> EmailMessage:
    """Return a mail as its receiver reads it."""
    parsed = message_from_bytes(mail.as_bytes(), policy=default_policy)
    assert isinstance(parsed, EmailMessage)
    return parsed


def get_part(mail: EmailMessage, kind: str) -> str:
    body = mail.get_body((kind,))
    assert body is not None
    return str(body.get_content())


def test_a_mail_has_text_and_html() -> None:
    mail = reread(build_mail(make_head(), "# Grüße\n\n**bold** and `code`\n\n| a | b |\n|---|---|\n| 1 | 2 |"))
    assert get_part(mail, "plain").replace("\r\n", "\n").startswith("# Grüße\n\n**bold**")
    html = get_part(mail, "html")
    assert "<h1>Grüße</h1>" in html
    assert "<strong>bold</strong>" in html
    assert re.search("<td style=[^>]*border:1px solid[^>]*>1</td>", html)


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("| a | long |\n|---|--:|\n| 日本 | 2 |\n\nafter", "a    | long\n-----|-----\n日本 | 2\n\nafter"),
        ("x\n\n| a | b |\n|-|-|\n| 1 | **2** |", "x\n\na | b\n--|------\n1 | **2**"),
        ("a | b, and no table", "a | b, and no table"),
        ("```\n| a | b |\n|-|-|\n```", "```\n| a | b |\n|-|-|\n```"),
        (f"| a | b |\n|-|-|\n| 1 | {'x' * 200} |", f"| a | b |\n|-|-|\n| 1 | {'x' * 200} |"),
    ],
)
def test_the_columns_of_tables_are_aligned_in_the_text(markdown: str, text: str) -> None:
    assert align_tables(markdown) == text


def test_a_tag_in_the_answer_gets_no_style() -> None:
    html = get_part(reread(build_mail(make_head(), "`<td>` and <table>\n\n    <th>")), "html")
    assert "style" not in html


def test_html_loads_nothing_and_runs_nothing() -> None:
    markdown = "![x](https://track.er/a.gif) <script>alert(1)</script> <img src=x> [a](javascript:alert(1))"
    html = get_part(reread(build_mail(make_head(), markdown)), "html")
    assert "<img" not in html
    assert "<script" not in html
    assert 'href="javascript' not in html
    assert '<a href="https://track.er/a.gif">x</a>' in html


def test_a_mail_says_that_a_program_wrote_it() -> None:
    answer, first = reread(build_mail(make_head(), "x")), reread(build_mail(make_head(is_reply=False), "x"))
    assert (answer["Auto-Submitted"], first["Auto-Submitted"]) == ("auto-replied", "auto-generated")
    assert answer["X-Auto-Response-Suppress"] == "All"


@pytest.mark.parametrize("text", ["a\r\nBcc: evil@evil.example", "a\nb", "a\rb", "a\x00b", "a\u2028b"])
def test_nothing_can_be_smuggled_into_the_header(text: str) -> None:
    file = OutgoingFile(text, "text/plain", 10, read_ten_bytes)
    for mail in (
        build_mail(make_head(subject=text, sender_name=text), "x"),
        build_file_mail(make_head(subject=text), file, b"x"),
        build_mail(make_head(subject=make_reply_subject(text)), "x"),
        build_mail(make_head(subject=derive_subject(text, None)), "x"),
    ):
        parsed = reread(mail)
        assert parsed["Bcc"] is None
        assert parsed["To"] == ANNA
        assert len(parsed.get_all("Subject", [])) == 1


ENCODED_BREAK = "=?utf-8?q?=0D=0ABcc:_evil@evil.example?="


def test_encoded_line_breaks_stay_encoded() -> None:
    """Python reads encoded words in what it is told to write, also line breaks in them."""
    file = OutgoingFile(f"{ENCODED_BREAK}.txt", "text/plain", 10, read_ten_bytes)
    head = make_head(subject=ENCODED_BREAK, sender_name=ENCODED_BREAK, references=[f"{ENCODED_BREAK}@x.example"])
    for mail in (build_mail(head, "x"), build_file_mail(head, file, b"x")):
        lines = mail.as_bytes().split(b"\r\n")
        assert not any(line.lower().startswith(b"bcc") for line in lines)
        assert f"<{ENCODED_BREAK}@x.example>" in mail.as_bytes().decode()
        assert reread(mail)["To"] == ANNA


@pytest.mark.parametrize(
    "recipient", ["=?utf-8?q?=0d=0abcc?=@x.example", "=?utf-8?q?boss=40corp.example=2c?=@x.example"]
)
def test_an_address_that_looks_encoded_is_written_as_it_is(recipient: str) -> None:
    mail = build_mail(make_head(recipients=[recipient, ANNA]), "x").as_bytes().decode()
    assert f"To: {recipient},\r\n {ANNA}\r\n" in mail


def test_long_ids_are_written_as_they_are_and_unprintable_ones_left_out() -> None:
    long_id = "a" * 240 + "@x.example"
    mail = build_mail(make_head(references=["nul\0@x", "ü@x", long_id]), "x").as_bytes().decode()
    assert f"In-Reply-To: <{long_id}>\r\nReferences: <{long_id}>\r\n" in mail
    assert "In-Reply-To" not in build_mail(make_head(references=[long_id, "ü@x"]), "x")


def test_a_name_in_the_sender_is_only_a_name() -> None:
    parsed = reread(build_mail(make_head(sender_name='Ada" <evil@evil.example>, "x'), "x"))
    assert [each.addr_spec for each in parsed["From"].addresses] == [ADDRESS]


def test_an_answer_stands_in_its_thread() -> None:
    parsed = reread(build_mail(make_head(references=("root@x", "last@x"), recipients=[ANNA, BOB]), "x"))
    assert parsed["In-Reply-To"] == "<last@x>"
    assert parsed["References"] == "<root@x> <last@x>"
    assert parsed["To"] == f"{ANNA}, {BOB}"
    assert shorten_references([str(number) for number in range(100)])[:2] == ("0", "81")


@pytest.mark.parametrize(
    ("subject", "reply"),
    [
        ("Lunch", "Re: Lunch"),
        ("Re: Lunch", "Re: Lunch"),
        ("AW: Mittag", "AW: Mittag"),
        ("Re[2]: Lunch", "Re[2]: Lunch"),
        ("Results", "Re: Results"),
        ("", "Re: your message"),
    ],
)
def test_the_subject_of_an_answer(subject: str, reply: str) -> None:
    assert make_reply_subject(subject) == reply


def test_the_subject_of_a_new_thread_is_its_first_line() -> None:
    assert derive_subject("\n# **Report** of today\n\nAll is well.", None) == "Report of today"
    assert derive_subject("word " * 50, None).endswith("word…")
    assert derive_subject("***", None) == "Message"
    assert derive_subject("", OutgoingFile("a.pdf", "application/pdf", 1, read_ten_bytes)) == "a.pdf"


@pytest.mark.parametrize(
    ("media_type", "expected"),
    [
        ("image/png", "image/png"),
        ("text/plain", "text/plain"),
        ("multipart/mixed", "application/octet-stream"),
        ("message/rfc822", "application/octet-stream"),
        ("x\r\ny", "application/octet-stream"),
    ],
)
def test_a_file_arrives_as_it_is(media_type: str, expected: str) -> None:
    data = bytes(range(256))
    file = OutgoingFile("Grüße (1).bin", media_type, len(data), read_ten_bytes)
    [attachment] = reread(build_file_mail(make_head(), file, data)).iter_attachments()
    assert (attachment.get_filename(), attachment.get_content_type()) == ("Grüße (1).bin", expected)
    assert attachment.get_payload(decode=True) == data


def test_an_address_with_other_letters_is_sent_as_it_is() -> None:
    mail = build_mail(make_head(recipients=["änna@example.com"]), "x")
    assert "To: änna@example.com\r\n".encode() in mail.as_bytes()


# ---- ids --------------------------------------------------------------------------------------------------


def test_the_id_of_a_mail_is_the_same_in_every_attempt() -> None:
    address = Address(Platform.EMAIL, ANNA, "0123456789abcdef")
    message_id = make_own_id("d_abc.2", address, ADDRESS)
    assert message_id == "palaver.d_abc.2.0123456789abcdef@example.org"
    own = parse_own_id(message_id, ADDRESS)
    assert own is not None
    assert (own.key, own.thread_id) == ("d_abc.2", "0123456789abcdef")
    assert parse_own_id(message_id, "x@other.example") is None
    assert parse_own_id("palaver.d_abc@example.org", ADDRESS) is None


def test_all_parts_of_a_first_mail_are_one_thread() -> None:
    address = Address(Platform.EMAIL, ANNA)
    first, second = (make_own_id(f"d_abc.{number}", address, ADDRESS) for number in (1, 2))
    assert make_first_part_id("d_abc.2", address, ADDRESS) == first
    assert make_first_part_id("d_abc.1", address, ADDRESS) is None
    threads = {
        find_thread(parse_header(f"In-Reply-To: <{each}>\n\n".encode()), "m@x", ADDRESS) for each in (first, second)
    }
    assert len(threads) == 1


@pytest.mark.parametrize(
    ("chat_id", "addresses"),
    [
        ("Anna@Example.com", [ANNA]),
        (f"{ANNA}, {BOB}", [ANNA, BOB]),
        (f"{ANNA},{ANNA}", [ANNA]),
        ("anna", None),
        ("", None),
        (f"{ANNA}\r\nRCPT TO:<x@y.z>", None),
        (",".join(f"p{number}@x.org" for number in range(21)), None),
    ],
)
def test_a_target_is_one_or_several_addresses(chat_id: str, addresses: list[str] | None) -> None:
    assert split_addresses(chat_id) == addresses


# ---- answers of the server --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "text", "is_recipient", "kind"),
    [
        (421, "4.3.2 Closing", False, SendRetryable),
        (450, "4.2.1 Try again later", True, SendRetryable),
        (452, "4.2.2 Mailbox full", True, SendRetryable),
        (550, "5.1.1 No such user", True, TargetUnreachable),
        (550, "5.7.1 Blocked by policy", True, SendRejected),
        (550, "5.7.1 Spam", False, SendRejected),
        (552, "5.3.4 Too large", False, SendRejected),
        (554, "5.7.1 Refused", True, SendRejected),
    ],
)
def test_answers_are_understood(code: int, text: str, is_recipient: bool, kind: type[Exception]) -> None:
    error = classify_refusal(code, text, "mail.example", is_recipient=is_recipient)
    assert type(error) is kind
    assert str(code) in str(error)
    assert getattr(error, "whole_account", False) == (code == 421)
