"""Texts for people, in their language.

    say("model.chosen", "This conversation uses {model} from the next message.", model="`demo`")

is a `str` in English that also knows its code and its facts, so that an edge can write it in another language:
`translate(text, "de")`. English stands where it is said. Every other language is one file, `languages/<language>.json`:
from code to text, with the same gaps. A text that depends on a number has two forms there, `one` and `other`.

Texts that are declared for something with a name of its own need no `say`: `name_text` gives them a code. The help of
a setting, for example, has the code `setting.turns.max_running`.

Always true: what a language file lacks is said in English; a fact is never read as a template; a text that is sent was
translated before. What one process stores and another shows is stored with its code and facts (`store_text`).

`python -m docs.languages` compares the files with everything that is said.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Final, Self

from palaver.core.dataclass import dataclass

ENGLISH: Final = "en"
LANGUAGES: Final = (ENGLISH, "de")
# A stored text is the English one, and behind it the JSON of its code and facts in characters that nothing displays
# (Unicode's tags), so that a version that knows nothing of codes shows it well. The mark is taken off all other texts.
_CODE_MARK: Final = "\U000e0001"
_TAGS_OFFSET: Final = 0xE0000
_MAX_NESTED = 50  # texts in each other; no sentence comes near it
_THOUSANDS_SEPARATORS: Final = {"de": "."}  # others: a comma

# Of the request that is being answered. Where a text is translated later than it is said, its language is passed on.
current_language: ContextVar[str] = ContextVar("current_language", default=ENGLISH)


@contextmanager
def use_language(language: str) -> Iterator[None]:
    """Translate inside the block into this language: on a thread of an engine, which works for many requests."""
    token = current_language.set(language)
    try:
        yield
    finally:
        current_language.reset(token)


@dataclass(slots=True)
class ChatLanguage:
    """The language of what this process says in chats and in the terminal: the setting `language`, as it is now."""

    name: str = ENGLISH


chat_language: Final = ChatLanguage()


class Text(str):
    """An English text that can be translated: by its code and facts, or part by part."""

    __slots__ = ("change", "code", "facts", "parts")

    code: str
    facts: Mapping[str, object]
    parts: tuple[str, ...]
    change: Callable[[str], str] | None  # of the translated parts

    def __new__(
        cls,
        english: str,
        code: str = "",
        facts: Mapping[str, object] | None = None,
        parts: tuple[str, ...] = (),
        change: Callable[[str], str] | None = None,
    ) -> Self:
        text = super().__new__(cls, english)
        text.code, text.facts, text.parts, text.change = code, facts or {}, parts, change
        return text

    def __add__(self, other: str) -> Text:
        return join_texts("", (self, other))

    def __radd__(self, other: str) -> Text:
        return join_texts("", (other, self))


def say(code: str, english: str, /, **facts: object) -> Text:
    """Say something in English. Facts fill the gaps `{name}`; those that are texts themselves are translated with it.

    Whole numbers are written with separators: pass ports, years and other numbers that are names as text.
    """
    return Text(_fill(english, facts, ENGLISH), code, facts)


def say_count(code: str, count: int, one: str, other: str, /, **facts: object) -> Text:
    """Say something that depends on a number, `{count}`."""
    return say(code, one if count == 1 else other, count=count, **facts)


def name_text(code: str, english: str) -> str:
    """Give a declared text without gaps a code, so that it can be translated; an empty one stays as it is."""
    return Text(english, code) if english else english


def read_message(error: Exception) -> str:
    """Return what an error was raised with, which can still be translated; `str(error)` cannot."""
    message = error.args[0] if error.args else ""
    return message if isinstance(message, str) else str(message)


def join_texts(separator: str, texts: Iterable[str]) -> Text:
    """Join texts as `str.join` does; each is translated for itself."""
    parts: list[str] = []
    for text in texts:
        if parts and separator:
            parts.append(separator)
        if isinstance(text, Text) and text.parts and text.change is None:
            parts += text.parts  # so that texts that are added one by one don't nest
        else:
            parts.append(text)
    return Text("".join(parts), parts=tuple(parts))


def change_text(text: str, change: Callable[[str], str]) -> str:
    """Apply a function to a text, and again to each translation of it: it escapes or shortens, for example."""
    return Text(change(str(text)), parts=(text,), change=change) if isinstance(text, Text) else change(text)


def translate(text: str, language: str) -> str:
    """Return a text in a language, as an ordinary string; English where the language lacks it."""
    if not isinstance(text, Text):
        return text
    if language == ENGLISH:
        return str(text)
    if text.parts:
        joined = "".join(translate(part, language) for part in text.parts)
        return joined if text.change is None else text.change(joined)
    template = _load_language(language).get(text.code)
    if isinstance(template, dict):
        template = template["one" if text.facts.get("count") == 1 else "other"]
    if template is None:
        return str(text)
    try:
        return _fill(template, text.facts, language)
    except KeyError:  # stored by another version, with other facts
        return str(text)


def translate_all(value: object, language: str) -> object:
    """Return JSON-ready data with all its texts in a language."""
    if isinstance(value, str):
        return translate(value, language)
    if isinstance(value, Mapping):
        return {key: translate_all(each, language) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [translate_all(each, language) for each in value]
    return value


def edit_text(text: str, edit: Callable[[str], str]) -> str:
    """Return a text changed by a function, such as one that hides secrets, which can still be translated."""
    if not isinstance(text, Text):
        return edit(text)
    if text.change is not None:
        return change_text(edit_text(text.parts[0], edit), text.change)
    if text.parts:
        return join_texts("", [edit_text(part, edit) for part in text.parts])
    facts = {
        name: fact if isinstance(fact, int) else edit_text(_to_text(fact), edit) for name, fact in text.facts.items()
    }
    return Text(edit(str(text)), text.code, facts)


def pack_text(text: str) -> object:
    """Return JSON-ready data from which another process makes the text again: of an ordinary string, the string."""
    if not isinstance(text, Text) or text.change is not None:
        return str(text)  # a change is code, which can't be stored
    if text.parts:
        return {"parts": [pack_text(part) for part in text.parts]}
    facts = {name: fact if isinstance(fact, int) else pack_text(_to_text(fact)) for name, fact in text.facts.items()}
    return {"text": str(text), "code": text.code, "facts": facts}


def unpack_text(packed: object) -> str:
    """Return the text that `pack_text` packed; of anything else, such as that of a later version, what can be read."""
    return _unpack(packed, 0)


def _unpack(packed: object, depth: int) -> str:
    match packed:
        case {"parts": [*parts]} if depth < _MAX_NESTED:
            return join_texts("", [_unpack(part, depth + 1) for part in parts])
        case {"text": str(english), "code": str(code), "facts": dict(facts)} if depth < _MAX_NESTED:
            unpacked = {
                name: each if isinstance(each, int) else _unpack(each, depth + 1) for name, each in facts.items()
            }
            return Text(english, code, unpacked)
        case {"text": str(english)} | str(english):
            return english
    return "…" if isinstance(packed, dict | list) else str(packed)


def store_text(text: str) -> str:
    """Return a text for a column of a database. One without a code is stored as it is."""
    packed = pack_text(text)
    if isinstance(packed, str):
        return packed.replace(_CODE_MARK, "")
    return str(text) + _CODE_MARK + "".join(chr(_TAGS_OFFSET + ord(char)) for char in json.dumps(packed))


def load_text(stored: str) -> str:
    """Return a text that `store_text` made storable; any other, such as one of an earlier version, as it is."""
    _, mark, tags = stored.rpartition(_CODE_MARK)
    try:
        packed = json.loads("".join(chr(ord(char) - _TAGS_OFFSET) for char in tags)) if mark else None
    except (ValueError, RecursionError):  # not stored by `store_text`
        return stored
    return unpack_text(packed) if isinstance(packed, dict) else stored


def find_language(accepted: str) -> str:
    """Return the first language of an `Accept-Language` header that there is; English if there is none."""
    for choice in accepted.split(",", 20)[:20]:
        language = choice.partition(";")[0].strip().partition("-")[0].lower()
        if language in LANGUAGES:
            return language
    return ENGLISH


def _to_text(fact: object) -> str:
    return fact if isinstance(fact, str) else str(fact)


def _fill(template: str, facts: Mapping[str, object], language: str) -> str:
    if not facts or "{" not in template:
        return template
    return template.format_map({name: _write_fact(fact, language) for name, fact in facts.items()})


def _write_fact(fact: object, language: str) -> str:
    if isinstance(fact, str):
        return translate(fact, language)
    if isinstance(fact, int) and not isinstance(fact, bool):
        return f"{fact:,}".replace(",", _THOUSANDS_SEPARATORS.get(language, ","))
    return str(fact)


@cache
def _load_language(language: str) -> Mapping[str, str | dict[str, str]]:
    if language not in LANGUAGES:
        return {}
    from importlib import resources  # its imports take a tenth of `palaver --version`

    file = resources.files("palaver.core") / "languages" / f"{language}.json"
    texts: dict[str, str | dict[str, str]] = json.loads(file.read_text("utf-8"))
    return texts
