"""Which mails become messages, from whom, and in which conversation."""

from __future__ import annotations

from typing import Any

import pytest

from palaver.core.source import ChatType
from palaver.platforms.email.authentication import SenderRefused
from palaver.platforms.email.headers import (
    MAX_HEADER_BYTES,
    Mailbox,
    decode_file_name,
    decode_words,
    find_ids,
    make_own_id,
    normalize_address,
    parse_header,
    parse_mailboxes,
    shorten_id,
)
from palaver.platforms.email.inbound import Envelope, MailIgnored, make_inbound, read_envelope
from palaver.sessions.inbound import KnownText

from .conftest import make_outgoing, make_settings
from .mail_server import ADDRESS, ANNA, AUTHSERV_ID, BOB

SETTINGS = make_settings(aliases=["help@example.org"])
RESULTS = f"Authentication-Results: {AUTHSERV_ID};"
PASS = f"{RESULTS} dmarc=pass (p=REJECT) header.from=example.com\r\n"
OWN_ID = make_own_id("d_1.1", make_outgoing().address, ADDRESS)


def make_header(*lines: str, verdict: str = PASS, sender: str = f"Anna <{ANNA}>", to: str = ADDRESS) -> bytes:
    fields = [f"From: {sender}", f"To: {to}", "Message-ID: <m1@mail.example>", "Subject: Question", *lines]
    return (verdict + "\r\n".join(fields) + "\r\n\r\n").encode()


def read(*lines: str, **options: Any) -> Envelope:
    return read_envelope(make_header(*lines, **options), SETTINGS)


# ---- who wrote it -----------------------------------------------------------------------------------------


def test_a_verified_sender_is_accepted() -> None:
    envelope = read()
    assert (envelope.sender, envelope.chat_id, envelope.is_group) == (Mailbox(ANNA, "Anna"), ANNA, False)


@pytest.mark.parametrize(
    "verdict",
    [
        "",  # our server has said nothing
        f"{RESULTS} spf=pass smtp.mailfrom=example.com; dkim=pass header.d=x\r\n",
        f"{RESULTS} dmarc=fail header.from=example.com\r\n",
        f"{RESULTS} dmarc=none header.from=example.com\r\n",
        f"{RESULTS} dmarc=pass header.from=evil.example\r\n",  # of another domain
        f"{RESULTS} dmarc=pass\r\n",  # of no domain
        f"{RESULTS} dmarc=pass header.from=example.com; dmarc=fail\r\n",
        f"{RESULTS} x=y (dmarc=pass header.from=example.com)\r\n",  # in a comment
        f"{RESULTS} spf=fail smtp.mailfrom=dmarc=pass\r\n",
        f"Authentication-Results: {AUTHSERV_ID}.evil.example; dmarc=pass header.from=example.com\r\n",
        f"Authentication-Results: evil.{AUTHSERV_ID}; dmarc=pass header.from=example.com\r\n",
        f"Received-{RESULTS} dmarc=pass header.from=example.com\r\n",
        f"{RESULTS} none\r\n",
        # The sender has chosen a text that the server repeats.
        f'{RESULTS} spf=pass smtp.mailfrom="a; dmarc=pass header.from=example.com; b"@x\r\n',
        f'{RESULTS} spf=pass smtp.mailfrom="a; auth=pass smtp.auth={ANNA}; b"@x\r\n',
        f'{RESULTS} spf=pass smtp.mailfrom="(\\"; dmarc=pass header.from=example.com; "@x\r\n',
        f"{RESULTS} spf=pass smtp.helo=(\r\n{PASS}",
        f'{RESULTS} spf=pass smtp.helo="\r\n{PASS}',
        f"{RESULTS} auth=pass smtp.auth={BOB}\r\n",  # another person has signed in
        f"{RESULTS} auth=pass smtp.auth=anna\r\n",
        f"{RESULTS} auth=fail smtp.auth={ANNA}\r\n",
        f"{RESULTS} spf=pass smtp.auth={ANNA}\r\n",
        f"{RESULTS} {'(' * 5000} dmarc=pass header.from=example.com\r\n",
        # Below the verdict of our server, the sender has written one of its own.
        f"{RESULTS} dmarc=fail header.from=example.com\r\n{PASS}",
        f"{RESULTS} spf=pass\r\nReceived: from evil.example\r\n{PASS}",
    ],
)
def test_a_forged_sender_is_refused(verdict: str) -> None:
    with pytest.raises(SenderRefused) as refused:
        read(verdict=verdict)
    assert str(refused.value)


@pytest.mark.parametrize(
    "verdict",
    [
        f"authentication-results:  {AUTHSERV_ID.upper()} 1;\r\n\tspf=pass;\r\n\tDMARC=Pass header.from=Example.COM\r\n",
        f"{RESULTS} auth=pass smtp.auth=Anna@example.com smtp.mailfrom=x\r\n",
        f"Received: by x\r\nAuthentication-Results: other.example; dmarc=fail\r\n{PASS}",
        f'Authentication-Results: {AUTHSERV_ID} (a (b) c); dmarc=pass (p=none; sp=none) header.from="example.com"\r\n',
    ],
)
def test_verdicts_are_read_as_servers_write_them(verdict: str) -> None:
    assert read(verdict=verdict).sender.address == ANNA


def test_without_the_name_of_our_server_no_sender_is_verified() -> None:
    with pytest.raises(SenderRefused, match=f"Set authserv_id .* from '{AUTHSERV_ID}'"):
        read_envelope(make_header(), make_settings(authserv_id=None))


def test_servers_of_a_provider_may_have_many_names() -> None:
    settings = make_settings(authserv_id="*.mail.yahoo.com")
    verdict = "Authentication-Results: atlas1.mail.yahoo.com; dmarc=pass header.from=example.com\r\n"
    assert read_envelope(make_header(verdict=verdict), settings).sender.address == ANNA
    with pytest.raises(SenderRefused):
        read_envelope(make_header(verdict=verdict.replace("mail.yahoo.com", "mailyahoo.com")), settings)


def test_every_sender_is_believed_only_where_the_operator_says_so() -> None:
    settings = make_settings(authserv_id=None, allow_unverified_senders=True)
    assert read_envelope(make_header(verdict=""), settings).sender.address == ANNA


@pytest.mark.parametrize(
    "sender",
    [
        "",
        "Anna",
        f"{ANNA}, {BOB}",
        f"{ANNA} <evil@evil.example>",  # the address stands where the name is: it is no quoted name
        f"friends: {ANNA};",
        f"friends: {ANNA}, {BOB};",
        f'"a b"@example.com <{ANNA}> <{BOB}>',
        '"anna@example.com"@evil.example',
        "anna@example.com\x00@evil.example",
        "<anna@example.com",
        f"<@evil.example:{ANNA}>",
        "anna@exa mple.com",
        "a" * 300 + "@example.com",
    ],
)
def test_what_does_not_name_one_sender_is_refused(sender: str) -> None:
    with pytest.raises(SenderRefused):
        read(sender=sender)


def test_a_name_in_quotes_may_have_any_signs() -> None:
    assert read(sender=f'"Anna: a, b; <x@y.example>" <{ANNA}>').sender.address == ANNA


@pytest.mark.parametrize(
    "between",
    [
        "X-A: b\r\n" * 600,
        f"X-A: {'b' * 900}\r\n" * 80,
        "X-A: b\r\r\nX-B: c\r\n",
        "X-A: b\n\nX-B: c\r\n",
    ],
)
def test_a_second_from_header_cannot_be_hidden(between: str) -> None:
    """A server may have verified the other one."""
    header = f"{PASS}From: {ANNA}\r\n{between}From: mallory@example.com\r\nTo: {ADDRESS}\r\n\r\n".encode()
    with pytest.raises(SenderRefused):
        read_envelope(header[:MAX_HEADER_BYTES], SETTINGS)


def test_two_from_headers_are_refused() -> None:
    with pytest.raises(SenderRefused, match="2 From headers"):
        read(f"From: {BOB}")


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("Anna@Example.COM", ANNA),
        ("anna@bücher.example", "anna@xn--bcher-kva.example"),
        ("änna@example.com", "änna@example.com"),
        ("аnna@example.com", "аnna@example.com"),  # another letter, which looks like an a
        ("ANNA+Tag@example.com", "anna+tag@example.com"),
        ("anna@localhost", "anna@localhost"),
        ("anna@-example.com", None),
        ("anna..b@example.com", None),
        ("anna@example.com,bob@example.com", None),
        ("anna@example.com\r\nBcc: bob@example.com", None),
    ],
)
def test_an_address_has_one_form(text: str, address: str | None) -> None:
    assert normalize_address(text) == address


def test_a_display_name_is_only_a_name() -> None:
    mailboxes = parse_mailboxes('"anna@example.com" <evil@evil.example>, (x) "Bob \\"B\\" B." <bob@example.net>')
    assert mailboxes == [Mailbox("evil@evil.example", "anna@example.com"), Mailbox(BOB, 'Bob "B" B.')]


# ---- what is not answered ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "Auto-Submitted: auto-replied",
        "Auto-Submitted: auto-replied (vacation); owner-email=x",
        "Return-Path: <>",
        "X-Autoreply: yes",
        "X-Failed-Recipients: a@b.c",
        "X-Auto-Reply: yes",
        "X-Autogenerated: Reply",
        "Precedence: auto_reply",
        "Content-Type: multipart/report; report-type=delivery-status",
    ],
)
def test_automatic_replies_and_reports_are_ignored(line: str) -> None:
    with pytest.raises(MailIgnored):
        read(line)


@pytest.mark.parametrize(
    "subject",
    [
        *(
            "Automatic reply: Lunch",
            "Out of Office: Lunch",
            "Abwesenheitsnotiz: Mittag",
            "Automatische Antwort: Mittag",
        ),
        *("Réponse automatique : midi", "Respuesta automática: x", "Risposta automatica: x", "Resposta automática: x"),
        *("Automatisch antwoord: x", "Autosvar: x", "自动回复: x", "=?utf-8?q?Automatische_Antwort=3A_x?="),
    ],
)
def test_replies_about_an_absence_are_known_by_their_subject(subject: str) -> None:
    def make(text: str) -> bytes:
        return make_header().replace(b"Subject: Question", f"Subject: {text}".encode())

    with pytest.raises(MailIgnored):
        read_envelope(make(subject), SETTINGS)
    for text in (f"Re: {subject}", "Out of office next week"):
        assert not read_envelope(make(text), SETTINGS).is_from_bot


def test_a_mail_that_a_calendar_has_sent_is_marked() -> None:
    assert read("Sender: Google Calendar <calendar-notification@google.com>").is_from_bot
    assert not read("Sender: Carl <carl@example.com>").is_from_bot


@pytest.mark.parametrize("sender", [ADDRESS, "Palaver@EXAMPLE.org", "palaver+tag@example.org", "help@example.org"])
def test_our_own_mail_is_ignored(sender: str) -> None:
    with pytest.raises(MailIgnored):
        read(sender=sender)


def test_a_mail_with_our_own_id_is_ignored_from_every_sender() -> None:
    header = make_header().replace(b"m1@mail.example", OWN_ID.encode())
    with pytest.raises(MailIgnored):
        read_envelope(header, SETTINGS)


@pytest.mark.parametrize(
    "line",
    [
        "List-Id: <friends.example>",
        "List-Unsubscribe: <mailto:x@y.example>",
        "Precedence: bulk",
        "Precedence: LIST",
        "Auto-Submitted: auto-generated",
        "X-Auto-Response-Suppress: All",
    ],
)
def test_mails_of_programs_are_marked(line: str) -> None:
    assert read(line).is_from_bot


@pytest.mark.parametrize("name", ["noreply", "no-reply", "Do_Not_Reply", "mailer-daemon", "notifications"])
def test_addresses_that_take_no_answer_are_marked(name: str) -> None:
    assert read(sender=f"{name}@example.com").is_from_bot


@pytest.mark.parametrize("line", ["Auto-Submitted: no", "Precedence: first-class", "X-Other: 1"])
def test_mails_of_people_are_not_marked(line: str) -> None:
    assert not read(line).is_from_bot


# ---- conversations ----------------------------------------------------------------------------------------


def test_a_mail_without_references_begins_a_thread() -> None:
    assert read().thread_id == shorten_id("m1@mail.example")


def test_a_thread_is_found_by_its_first_mail() -> None:
    assert read("References: <root@x> <b@x>", "In-Reply-To: <b@x>").thread_id == shorten_id("root@x")
    assert read("In-Reply-To: <root@x>").thread_id == shorten_id("root@x")


def test_a_reply_to_us_finds_its_thread_without_the_other_references() -> None:
    thread = OWN_ID.partition("@")[0].rpartition(".")[2]
    assert read(f"In-Reply-To: <{OWN_ID}>").thread_id == thread
    assert read(f"References: <other@x> <{OWN_ID}>").thread_id == thread


def test_the_thread_of_another_person_is_another_conversation() -> None:
    own = read(f"References: <root@x> <{OWN_ID}>", f"In-Reply-To: <{OWN_ID}>")
    verdict = PASS.replace("example.com", "evil.example")
    other = read(
        f"References: <root@x> <{OWN_ID}>",
        f"In-Reply-To: <{OWN_ID}>",
        sender="mallory@evil.example",
        to=f"{ADDRESS}, {ANNA}",
        verdict=verdict,
    )
    assert own.chat_id == ANNA
    assert other.chat_id == f"{ANNA},mallory@evil.example"


def test_huge_references_are_bounded() -> None:
    text = " ".join(f"<{number}@x>" for number in range(100_000))
    envelope = read(f"References: {text[:60_000]}")
    assert len(envelope.references) <= 50
    assert envelope.thread_id == shorten_id("0@x")
    assert find_ids("<" * 100_000) == []


def test_a_mail_to_several_people_is_a_group_of_all_of_them() -> None:
    envelope = read(f"Cc: Bob <{BOB.upper()}>, {ANNA}", to="Help <help@example.org>, carl@example.net")
    assert envelope.chat_id == f"{ANNA},{BOB},carl@example.net"
    assert (envelope.is_group, envelope.is_addressed) == (True, True)


def test_in_a_group_only_a_mail_to_us_is_addressed() -> None:
    assert not read(f"Cc: {ADDRESS}", to=BOB).is_addressed
    assert read(f"Cc: {ADDRESS}", f"In-Reply-To: <{OWN_ID}>", to=BOB).is_addressed
    envelope = read(f"Cc: {ADDRESS}", to=BOB)
    asked = make_inbound(envelope, f"{ADDRESS}, what do you think?", received_at=1, files=[], settings=SETTINGS)
    assert asked.is_addressed
    quoted = f"Hi Bob\n\nOn Mon, 16 Nov 2026 at 15:00, Palaver <{ADDRESS}> wrote:\n> Hello"
    assert not make_inbound(envelope, quoted, received_at=1, files=[], settings=SETTINGS).is_addressed
    assert not make_inbound(envelope, "Hi Bob", received_at=1, files=[], settings=SETTINGS).is_addressed


def test_after_a_blind_copy_only_the_sender_gets_an_answer() -> None:
    envelope = read(to=f"{BOB}, carl@example.net")
    assert (envelope.chat_id, envelope.is_group) == (ANNA, False)


def test_a_mail_to_very_many_people_is_answered_to_its_sender_only() -> None:
    envelope = read(to=", ".join([ADDRESS, *(f"p{number}@example.net" for number in range(30))]))
    assert envelope.chat_id == ANNA


def test_a_mail_without_an_id_gets_the_same_one_each_time() -> None:
    header = make_header().replace(b"Message-ID: <m1@mail.example>\r\n", b"")
    assert read_envelope(header, SETTINGS).message_id == read_envelope(header, SETTINGS).message_id
    assert read_envelope(header, SETTINGS).message_id.endswith("@no-message-id.invalid")


def test_a_message_has_what_the_agent_needs() -> None:
    envelope = read("In-Reply-To: <b@x>", sender=f"=?utf-8?q?Ann=C3=A4?= <{ANNA}>")
    text = "Hello\n\nOn 11/16/26 3:00 PM, Bob wrote:\n> Hi"
    message = make_inbound(envelope, text, received_at=1_790_000_000, files=[], settings=SETTINGS)
    source = message.source
    assert (message.content, message.message_id) == (text, "m1@mail.example")
    assert message.cut_quotes is not None
    assert message.cut_quotes([KnownText("Hi", ("bob@example.net", "Bob"))]) == "Hello"
    assert (source.user_id, source.user_name, source.chat_topic) == (ANNA, "Annä", "Question")
    assert source.chat_type is ChatType.DM
    assert message.replied_message is not None
    assert message.replied_message.message_id == "b@x"
    assert message.sent_at is not None


def test_an_empty_mail_says_its_subject() -> None:
    assert make_inbound(read(), " \n", received_at=0, files=[], settings=SETTINGS).content == "Question"


def test_a_command_is_a_line_of_text() -> None:
    text = "/title My trip\n\n-- \nAnna\n\nOn 11/16/26 3:00 PM, Palaver wrote:\n> Hello"
    message = make_inbound(read(), text, received_at=0, files=[], settings=SETTINGS)
    assert (message.content, message.cut_quotes) == ("/title My trip", None)


# ---- follow-ups in a group --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "is_addressed"),
    [
        ("And on Friday?", True),
        ("Hi all, and on Friday?", True),
        ("Bob, and on Friday?", False),
        ("Hi Bob,\n\nand on Friday?", False),
        ("@bob: and on Friday?", False),
        ("Lieber Bob Miller, und am Freitag?", False),
        ("Hi Bob, hi Palaver, and on Friday?", True),
        ("Bob and I will come. And on Friday?", True),
        ("Bobby, and on Friday?", True),
        (f"Bob, ask {ADDRESS}", True),
    ],
)
@pytest.mark.parametrize("references", [f"<{OWN_ID}>", f"<{OWN_ID}> <b@x>"])
def test_a_follow_up_is_for_the_agent_until_another_person_is_addressed(
    text: str, is_addressed: bool, references: str
) -> None:
    fields = (f"Cc: {ADDRESS}", f"References: {references}", f"In-Reply-To: {references.rsplit(maxsplit=1)[-1]}")
    envelope = read(*fields, to=f"Bob Miller <{BOB}>")
    assert make_inbound(envelope, text, received_at=1, files=[], settings=SETTINGS).is_addressed is is_addressed


def test_without_an_answer_of_the_agent_a_copy_is_no_follow_up() -> None:
    envelope = read(f"Cc: {ADDRESS}", "References: <a@x> <b@x>", to=BOB)
    assert not make_inbound(envelope, "And on Friday?", received_at=1, files=[], settings=SETTINGS).is_addressed


# ---- headers ----------------------------------------------------------------------------------------------


def test_line_breaks_in_names_and_subjects_are_removed() -> None:
    smuggled = "=?utf-8?q?Hello=0D=0ABcc=3A_evil=40evil.example?="
    assert decode_words(smuggled, 100) == "Hello Bcc: evil@evil.example"
    assert decode_words("a\u202eb\x07c", 100) == "a b c"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("=?iso-8859-1?Q?M=FCll.pdf?=", "Müll.pdf"),
        ("UTF-8''M%C3%BCll%20x.pdf", "Müll x.pdf"),
        ("=?no-such-charset?Q?a.pdf?=", "a.pdf"),
        ("=?utf-8?b?broken", "=?utf-8?b?broken"),
        ("it's a 'b'.txt", "it's a 'b'.txt"),
    ],
)
def test_file_names_are_decoded(text: str, name: str) -> None:
    assert decode_file_name(text) == name


def test_a_malformed_header_is_read_as_far_as_possible() -> None:
    header = parse_header(b" folded first\nno colon\nSubject : a\n b\r\n\xff: x\nX: \xe4\n\nBody: no")
    assert header.get("subject") == "a b"
    assert header.get("x") == "ä"
    assert not header.has("body")


def test_adversarial_headers_are_read_in_time() -> None:
    """With steps that grow faster than the text, this would take minutes."""
    texts = ["(" * 60_000, "=?a?q?" * 10_000, "<" * 60_000, '"' * 60_000, "a@b.c," * 10_000, ";dmarc=pass" * 5_000]
    for text in texts:
        with pytest.raises(SenderRefused):
            read(verdict=PASS[:-2] + text + "\r\n")
        for name in ("References", "Cc", "Subject"):
            read(f"{name}: {text}")
