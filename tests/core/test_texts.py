"""Texts in several languages: gaps, numbers, plurals, parts, and what happens without a translation."""

from __future__ import annotations

import copy
import json
import pickle
import unicodedata

import pytest

from palaver.core import texts
from palaver.core.errors import NotAllowed, SessionNotFound
from palaver.core.texts import (
    Reader,
    Text,
    change_text,
    edit_text,
    find_language,
    join_texts,
    load_text,
    name_text,
    parse_locale,
    say,
    say_count,
    store_text,
    tell_owner,
    translate,
    translate_all,
    unpack_text,
    write_text,
)

GERMAN: dict[str, str | dict[str, str]] = {
    "greeting": "Hallo {name}, {place}",
    "place": "auf der Seite",
    "files": {"one": "{count} Datei", "other": "{count} Dateien"},
    "plain": "Schlicht",
    "hint": "Mit /retry (oder `/stop all`) geht es weiter, {name}",
}
SLACK = Reader(command_prefix="/palaver ")
MEMBER = Reader(is_owner=False)


@pytest.fixture(autouse=True)
def _language_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "_load_language", lambda language: GERMAN if language == "de" else {})


def test_a_text_is_english_and_can_be_translated_with_the_texts_in_it() -> None:
    text = say("greeting", "Hello {name}, {place}", name="Ada", place=say("place", "on the page"))
    assert text == "Hello Ada, on the page"
    assert type(translate(text, "en")) is str
    assert translate(text, "de") == "Hallo Ada, auf der Seite"


def test_numbers_and_plurals_follow_the_language() -> None:
    def count(number: int) -> Text:
        return say_count("files", number, "{count} file", "{count} files")

    assert [count(1), count(1204)] == ["1 file", "1,204 files"]
    assert [translate(count(number), "de") for number in (0, 1, 1204)] == ["0 Dateien", "1 Datei", "1.204 Dateien"]


def test_what_a_person_wrote_is_never_read_as_a_template() -> None:
    text = say("greeting", "Hello {name}, {place}", name="{place} {0.__class__}", place="here")
    assert text == "Hello {place} {0.__class__}, here"
    assert translate(text, "de") == "Hallo {place} {0.__class__}, here"


def test_joined_and_added_texts_are_translated_part_by_part() -> None:
    plain = say("plain", "Plain")
    assert translate(join_texts("\n", [plain, "as it is", plain]), "de") == "Schlicht\nas it is\nSchlicht"
    assert translate("- " + plain + "!", "de") == "- Schlicht!"
    assert join_texts(", ", []) == ""


def test_a_text_without_a_translation_stays_english() -> None:
    assert translate(say("unknown", "Unknown {x}", x=1), "de") == "Unknown 1"
    assert translate(say("plain", "Plain"), "xx") == "Plain"
    assert translate("just a string", "de") == "just a string"


def hide_behind(english: str, packed: str) -> str:
    return f"{english}\U000e0001" + "".join(chr(0xE0000 + ord(char)) for char in packed)


def test_copies_of_a_text_can_be_translated_too() -> None:
    text = say("greeting", "Hello {name}, {place}", name="Ada", place=say("place", "on the page"))
    for twin in (copy.deepcopy(text), pickle.loads(pickle.dumps(text))):
        assert translate(twin, "de") == "Hallo Ada, auf der Seite"


def test_a_stored_text_can_be_translated_and_one_of_an_earlier_version_is_shown_as_it_is() -> None:
    text = say("greeting", "Hello {name}, {place}", name="Ada", place=say("place", "on the page"))
    for each in (text, join_texts(" ", (text, "as it is", say_count("files", 2, "{count} file", "{count} files")))):
        loaded = load_text(store_text(each))
        assert (loaded, translate(loaded, "de")) == (each, translate(each, "de"))
    assert store_text("The bot was removed.") == load_text("The bot was removed.") == "The bot was removed."
    for packed in ("{", '{"text": "x", "code": "plain", "facts": {}}'):  # from a platform
        forged = hide_behind("x", packed)
        assert load_text(store_text(forged)) == forged.replace("\U000e0001", "")
    assert translate(load_text(store_text(store_text(name_text("plain", "Plain")))), "de").startswith("Plain")


def test_a_version_without_codes_shows_a_stored_text_in_english_and_nothing_else() -> None:
    for text in (say("greeting", "Hello {name}", name='Zoë "Z" 👋'), join_texts(", ", (say("plain", "Plain"), "yes"))):
        stored = store_text(text)
        assert stored.startswith(str(text))
        assert {unicodedata.category(char) for char in stored.removeprefix(str(text))} == {"Cf"}  # not displayed


def test_a_stored_text_that_was_cut_off_is_shown_as_far_as_it_goes() -> None:
    stored = store_text(say("plain", "Plain"))
    assert load_text(stored[:-3]).startswith("Plain")
    assert load_text(stored[:3]) == "Pla"


def test_a_stored_text_that_lacks_a_fact_of_its_translation_stays_english() -> None:
    loaded = load_text(store_text(say("greeting", "Hello {name}", name="Ada")))  # by a version without {place}
    assert translate(loaded, "de") == "Hello Ada"


@pytest.mark.parametrize(
    ("packed", "shown"),
    [
        ("", None),
        ('{"text": ', None),
        ("null", None),
        ('"words"', None),
        ("[" * 100_000, None),
        ('{"text": "Plain"}', "Plain"),
        ('{"text": "Plain", "code": ["plain"], "facts": {}}', "Plain"),
        ('{"text": "Plain", "code": "plain", "facts": []}', "Plain"),
        ('{"text": "Plain", "code": "of a later version", "facts": {"x": {"y": [1]}}}', "Plain"),
        ('{"text": 3, "code": "plain"}', "…"),
        ('{"parts": [{"text": "Plain", "code": "plain", "facts": {}}, 3, {}, "!"]}', "Schlicht3…!"),
        ('{"parts": "Plain"}', "…"),
        ('{"text": "2 files", "code": "files", "facts": {"count": "two", "more": 1.5}}', "two Dateien"),
        ('{"text": "no files", "code": "files", "facts": {"count": null}}', "None Dateien"),
        ('{"text": "All", "code": "greeting", "facts": {"name": true, "place": {"text": "x"}}}', "Hallo True, x"),
    ],
)
def test_a_stored_text_that_is_damaged_or_of_another_version_is_readable(packed: str, shown: str | None) -> None:
    stored = hide_behind("In English", packed)
    assert translate(load_text(stored), "de") == (stored if shown is None else shown)


def test_texts_that_are_nested_too_deeply_are_cut_off() -> None:
    nested: object = "x"
    for _ in range(150):
        nested = {"parts": ["(", {"text": "in", "code": "greeting", "facts": {"name": nested, "place": ""}}, ")"]}
    for text in (unpack_text(nested), load_text(hide_behind("In English", json.dumps(nested)))):
        assert "(Hallo (" in translate(text, "de")


def test_many_texts_can_be_added_one_by_one() -> None:
    text: str = ""
    for _ in range(2_000):
        text = text + say("plain", "Plain")
    assert translate(load_text(store_text(text)), "de") == "Schlicht" * 2_000


def test_a_changed_text_is_stored_and_edited_as_it_was_changed() -> None:
    changed = change_text(say("plain", "Plain"), str.upper)
    assert (changed, translate(changed, "de")) == ("PLAIN", "SCHLICHT")
    assert translate(load_text(store_text(changed)), "de") == "PLAIN"
    assert translate(load_text(store_text("- " + changed)), "de") == "- PLAIN"
    edited = edit_text(changed, lambda text: text.replace("Plain", "Plainly"))
    assert (edited, translate(edited, "de")) == ("PLAINLY", "SCHLICHT")


def test_a_secret_can_be_hidden_in_a_text_and_its_facts() -> None:
    hidden = edit_text(
        say("greeting", "Hello {name}, {place}", name="s3cret", place="here"), lambda text: text.replace("s3cret", "…")
    )
    assert (hidden, translate(hidden, "de")) == ("Hello …, here", "Hallo …, here")


def test_errors_have_a_text_that_can_be_translated() -> None:
    assert isinstance(SessionNotFound().text, Text)
    assert isinstance(NotAllowed(say("plain", "Plain")).text, Text)
    assert translate_all({"error": [NotAllowed(say("plain", "Plain")).text, 3, None]}, "de") == {
        "error": ["Schlicht", 3, None]
    }
    assert name_text("nothing", "") == ""


@pytest.mark.parametrize(
    ("header", "language"),
    [
        ("", "en"),
        ("de-DE,de;q=0.9,en;q=0.8", "de"),
        ("fr-FR, fr;q=0.9, de;q=0.5", "de"),
        ("en-US,de;q=0.5", "en"),
        ("*", "en"),
        ("x," * 10_000 + "de", "en"),
    ],
)
def test_the_language_of_a_request_is_the_first_that_there_is(header: str, language: str) -> None:
    assert find_language(header) == language


# ---- readers -------------------------------------------------------------------------------------------------


def test_a_command_is_written_as_its_reader_types_it_and_what_people_wrote_stays() -> None:
    text = say("hint", "Use /retry (or `/stop all`), {name}", name="/me and/or https://x.org/retry")
    shown = "Use /palaver retry (or `/palaver stop all`), /me and/or https://x.org/retry"
    assert write_text(text, SLACK) == write_text(load_text(store_text(text)), SLACK) == shown
    assert write_text(text, Reader("de", "!")) == (
        "Mit !retry (oder `!stop all`) geht es weiter, /me and/or https://x.org/retry"
    )
    assert write_text("> " + text + " /retry", SLACK) == f"> {shown} /retry"
    assert str(text) == translate(text, "en") == shown.replace("/palaver ", "/")


def test_commands_of_other_programs_stay_as_they_are() -> None:
    text = say("x", "Send /newbot to @BotFather, or /invite @palaver. See /help.")
    assert write_text(text, SLACK) == "Send /newbot to @BotFather, or /invite @palaver. See /palaver help."


def test_a_text_for_owners_has_another_form_for_everyone_else() -> None:
    text = tell_owner(say("a", "Set {key}, then use /retry.", key="lab.api_key"), say("plain", "Not your fault."))
    whole = say("b", "I couldn't answer. {reason}", reason=change_text("- " + text, str.rstrip)) + "!"
    for each in (whole, edit_text(whole, str), copy.deepcopy(whole)):
        assert write_text(each, Reader()) == "I couldn't answer. - Set lab.api_key, then use /retry.!"
        assert write_text(each, Reader("de", is_owner=False)) == "I couldn't answer. - Schlicht!"
    stored = load_text(store_text(join_texts(" ", (text, "yes"))))
    assert write_text(stored, SLACK) == "Set lab.api_key, then use /palaver retry. yes"
    assert write_text(stored, MEMBER) == "Not your fault. yes"
    assert "lab" not in write_text(edit_text(text, str.upper), MEMBER)


@pytest.mark.parametrize(
    ("locale", "language"),
    [("de", "de"), ("de-AT", "de"), ("de_CH.UTF-8", "de"), ("EN-us", "en"), ("fr", None), ("", None), (None, None)],
)
def test_the_language_of_a_locale(locale: str | None, language: str | None) -> None:
    assert parse_locale(locale) == language
