"""A quote is cut only if it is the whole text of a message that the conversation has, by the author that it names."""

from __future__ import annotations

import pytest

from palaver.platforms.email.quotes import MailText, cut_signature, is_forward
from palaver.sessions.inbound import KnownText

AGENT = ("palaver@example.org", "Palaver")
ANSWER = KnownText("Tea is at four, and there is enough of it for everybody who comes to the garden.")
QUESTION = KnownText("When is tea?", ("anna@example.com", "Anna Berg"))
INTRO = "On Mon, Nov 16, 2026 at 3:00 PM Palaver <palaver@example.org> wrote:"


def cut(text: str, *known: KnownText) -> str:
    return MailText(text).cut_known(known or (ANSWER, QUESTION), AGENT)


def test_a_quote_of_what_is_known_is_cut() -> None:
    assert cut(f"Thanks.\n\n{INTRO}\n\n> {ANSWER.text}\n") == "Thanks."


def test_a_quote_of_what_is_not_known_stays() -> None:
    text = f"Thanks.\n\n{INTRO}\n\n> Something else, which the agent has never written in this thread."
    assert cut(text) == text
    assert MailText(text).cut_known((), AGENT) == text


def test_a_part_of_a_known_text_stays() -> None:
    """Who keeps one sentence means that sentence."""
    text = f"What is that?\n\n{INTRO}\n\n> Tea is at four,"
    assert cut(text) == text


def test_a_quote_with_words_between_stays() -> None:
    text = f"See below.\n\n{INTRO}\n\n{ANSWER.text} No!"
    assert cut(text) == text


def test_a_quote_with_another_link_stays() -> None:
    known = KnownText(f"{ANSWER.text} See [here](https://example.org/a).")
    quote = f"{INTRO}\n\n> {ANSWER.text} See here <https://example.org/%s>."
    assert cut(f"Hm.\n\n{quote % 'a'}", known) == "Hm."
    assert cut(f"Hm.\n\n{quote % 'b'}", known).endswith("b>.")


def test_the_author_that_a_quote_names_has_to_be_the_one() -> None:
    quote = "Look.\n\nOn Mon, Nov 16, 2026 at 3:00 PM %s wrote:\n\n> When is tea?"
    assert cut(quote % "Anna Berg <anna@example.com>") == "Look."
    for other in ("Bob <bob@example.net>", "Anna Berg <anna@example.net>", "Palaver <palaver@example.org>", "Bob"):
        assert cut(quote % other) == quote % other


def test_a_short_quote_that_names_nobody_stays() -> None:
    assert cut("No.\n\n> When is tea?") == "No.\n\n> When is tea?"
    assert cut(f"No.\n\n> {ANSWER.text}") == "No."


def test_a_line_of_the_person_right_above_the_quote_stays() -> None:
    assert cut(f"Thanks.\n{INTRO}\n> {ANSWER.text}") == "Thanks."


def test_a_signature_need_not_be_quoted() -> None:
    known = KnownText(f"{QUESTION.text}\n\n-- \nAnna Berg", QUESTION.authors)
    assert cut("Ok.\n\nOn 11/16/26 3:00 PM, Anna Berg wrote:\n> When is tea?", known) == "Ok."
    assert cut_signature("a\n-- \nb") == "a"
    assert cut_signature("a -- b") == "a -- b"


def test_what_was_quoted_before_and_kept_is_known_too() -> None:
    carl = "On 16.11.2026 at 9:00, Carl <carl@example.net> wrote:"
    first = KnownText(f"See this.\n\n{carl}\n> There is no tea on Friday.", QUESTION.authors)
    quoted = f"> See this.\n>\n> {carl}\n>> There is no tea on Friday."
    assert cut(f"And?\n\nOn 11/16/26 3:00 PM, Anna Berg <anna@example.com> wrote:\n{quoted}", first) == "And?"


def test_a_mail_that_is_nothing_but_a_quote_stays() -> None:
    text = f"{INTRO}\n> {ANSWER.text}"
    assert cut(text) == text


def test_what_the_person_has_written_is_told_by_its_look() -> None:
    assert MailText(f"/new\n\n{INTRO}\n> hello").written_text == "/new"
    assert MailText(f"{INTRO}\n> tea?\nyes\n> milk?\nno").written_text == "yes\nno"
    assert MailText("hello\n\n-- \nAnna").written_text == "hello\n\n--\nAnna"


@pytest.mark.parametrize("subject", ["Fwd: Rent", "FW: Rent", "WG: Miete", "TR : loyer", "RV: x", "ENC: x", "转发：x"])
def test_a_forward_is_told_by_its_subject(subject: str) -> None:
    assert is_forward(subject)
    assert not is_forward(f"Re: {subject}")


@pytest.mark.parametrize(
    "piece",
    [
        *("On ", "On a\n", "Am 1.1.2026 schrieb ", "> a\n", "From: a\n", "\n", "-", "On 1:00 a wrote:\n", "> " * 50),
        *("--- a ---\n", "-- \n", "a:\n", "https://", "https://a.b/c ", "@", "o\t", "From: a\nTo: b\nSubject: c\n"),
    ],
)
def test_adversarial_texts_are_cut_in_time(piece: str) -> None:
    """With steps that grow faster than the text, this would take minutes."""
    text = piece * (60_000 // len(piece))
    assert cut(text, KnownText(text), KnownText(text, ("a@b.c",))) is not None
    assert MailText(text).written_text is not None
