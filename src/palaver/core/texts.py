"""Texts for people, in their language.

    say("model.chosen", "This conversation uses {model} from the next message.", model="`demo`")

is a `str` in English that also knows its code and its facts, so that an edge can write it in another language:
`translate(text, "de")`. English stands where it is said. Every other language is one file, `languages/<language>.json`:
from code to text, with the same gaps. A text that depends on a number has two forms there, `one` and `other`.

Texts that are declared for something with a name of its own need no `say`: `name_text` gives them a code. The help of
a setting, for example, has the code `setting.turns.max_running`.

A text names commands with a slash, `Use /retry`: `write_text` writes them as the reader's platform takes them. What
names a setting, a key or a file is for owners (`tell_owner`); others read another sentence instead.

Always true: what a language file lacks is said in English; a fact is never read as a template, and its slashes are no
commands; a text that is sent was translated before. What one process stores and another shows is stored with its code
and facts (`store_text`).

`python -m docs.languages` compares the files with everything that is said.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Final, Self

from palaver.core.dataclass import dataclass

ENGLISH: Final = "en"
LANGUAGE_NAMES: Final = {ENGLISH: "English", "de": "Deutsch"}
LANGUAGES: Final = tuple(LANGUAGE_NAMES)
# A stored text is the English one, and behind it the JSON of its code and facts in characters that nothing displays
# (Unicode's tags), so that a version that knows nothing of codes shows it well. The mark is taken off all other texts.
_CODE_MARK: Final = "\U000e0001"
_TAGS_OFFSET: Final = 0xE0000
_MAX_NESTED = 50  # texts in each other; no sentence comes near it
# The slash of a command that a template names. Those of BotFather and of Slack itself are none of ours.
COMMAND_SLASH: Final = re.compile(
    r"""(?<![^\s`(“„"'])/(?=[a-z{])(?!(?:mybots|newbot|revoke|setprivacy|setjoingroups|invite)\b)"""
)
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


@dataclass(frozen=True, slots=True)
class Reader:
    """Who reads a text, and where."""

    language: str = ENGLISH
    command_prefix: str = "/"  # how a command begins there
    is_owner: bool = True  # and reads what only owners can act on


_PLAIN_READER: Final = Reader()  # of what `str(text)` is


class Text(str):
    """An English text that can be translated: by its code and facts, or part by part."""

    __slots__ = ("change", "code", "facts", "others", "parts", "template")

    code: str
    facts: Mapping[str, object]
    parts: tuple[str, ...]
    change: Callable[[str], str] | None  # of the translated parts
    template: str  # English, with its gaps; empty: it was stored without one, or has parts
    others: str | None  # what people who are no owners read instead

    def __new__(
        cls,
        english: str,
        code: str = "",
        facts: Mapping[str, object] | None = None,
        parts: tuple[str, ...] = (),
        change: Callable[[str], str] | None = None,
        template: str = "",
        others: str | None = None,
    ) -> Self:
        text = super().__new__(cls, english)
        text.code, text.facts, text.parts, text.change = code, facts or {}, parts, change
        text.template, text.others = template, others
        return text

    def __add__(self, other: str) -> Text:
        return join_texts("", (self, other))

    def __radd__(self, other: str) -> Text:
        return join_texts("", (other, self))


def say(code: str, english: str, /, **facts: object) -> Text:
    """Say something in English. Facts fill the gaps `{name}`; those that are texts themselves are translated with it.

    Whole numbers are written with separators: pass ports, years and other numbers that are names as text.
    """
    return Text(_fill(english, facts, _PLAIN_READER), code, facts, template=english)


def say_count(code: str, count: int, one: str, other: str, /, **facts: object) -> Text:
    """Say something that depends on a number, `{count}`."""
    return say(code, one if count == 1 else other, count=count, **facts)


def name_text(code: str, english: str) -> str:
    """Give a declared text without gaps a code, so that it can be translated; an empty one stays as it is."""
    return Text(english, code, template=english) if english else english


def tell_owner(text: str, others: str) -> Text:
    """Return a text that owners read, because only they can act on it, and that all others read as `others`."""
    if not isinstance(text, Text):
        return Text(text, others=others)
    return Text(text, text.code, text.facts, text.parts, text.change, text.template, others)


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
        if isinstance(text, Text) and text.parts and text.change is None and text.others is None:
            parts += text.parts  # so that texts that are added one by one don't nest
        else:
            parts.append(text)
    return Text("".join(parts), parts=tuple(parts))


def change_text(text: str, change: Callable[[str], str]) -> str:
    """Apply a function to a text, and again to each translation of it: it escapes or shortens, for example."""
    return Text(change(str(text)), parts=(text,), change=change) if isinstance(text, Text) else change(text)


def translate(text: str, language: str) -> str:
    """Return a text in a language, as an ordinary string; English where the language lacks it."""
    return write_text(text, Reader(language)) if isinstance(text, Text) else text


def write_text(text: str, reader: Reader) -> str:
    """Return a text as a reader gets it: in their language, with commands as they type them, as an ordinary string."""
    if not isinstance(text, Text):
        return text
    if reader == _PLAIN_READER:
        return str(text)
    if text.others is not None and not reader.is_owner:
        return write_text(text.others, reader)
    if text.parts:
        joined = "".join(write_text(part, reader) for part in text.parts)
        return joined if text.change is None else text.change(joined)
    template = _load_language(reader.language).get(text.code)
    if isinstance(template, dict):
        template = template["one" if text.facts.get("count") == 1 else "other"]
    try:
        return _fill(template or text.template, text.facts, reader) or str(text)
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
    if text.others is not None:
        return tell_owner(edit_text(_take_owner_form(text), edit), edit_text(text.others, edit))
    if text.change is not None:
        return change_text(edit_text(text.parts[0], edit), text.change)
    if text.parts:
        return join_texts("", [edit_text(part, edit) for part in text.parts])
    facts = {
        name: fact if isinstance(fact, int) else edit_text(_to_text(fact), edit) for name, fact in text.facts.items()
    }
    return Text(edit(str(text)), text.code, facts, template=text.template)


def _take_owner_form(text: Text) -> Text:
    return Text(text, text.code, text.facts, text.parts, text.change, text.template)


def pack_text(text: str) -> object:
    """Return JSON-ready data from which another process makes the text again: of an ordinary string, the string."""
    if not isinstance(text, Text) or text.change is not None:
        return str(text)  # a change is code, which can't be stored
    if text.others is not None:
        return {"text": str(text), "owner": pack_text(_take_owner_form(text)), "others": pack_text(text.others)}
    if text.parts:
        return {"parts": [pack_text(part) for part in text.parts]}
    facts = {name: fact if isinstance(fact, int) else pack_text(_to_text(fact)) for name, fact in text.facts.items()}
    packed = {"text": str(text), "code": text.code, "facts": facts}
    return packed | {"template": text.template} if COMMAND_SLASH.search(text.template) else packed


def unpack_text(packed: object) -> str:
    """Return the text that `pack_text` packed; of anything else, such as that of a later version, what can be read."""
    return _unpack(packed, 0)


def _unpack(packed: object, depth: int) -> str:
    match packed:
        case {"parts": [*parts]} if depth < _MAX_NESTED:
            return join_texts("", [_unpack(part, depth + 1) for part in parts])
        case {"owner": owner, "others": others} if depth < _MAX_NESTED:
            return tell_owner(_unpack(owner, depth + 1), _unpack(others, depth + 1))
        case {"text": str(english), "code": str(code), "facts": dict(facts), **more} if depth < _MAX_NESTED:
            unpacked = {
                name: each if isinstance(each, int) else _unpack(each, depth + 1) for name, each in facts.items()
            }
            return Text(english, code, unpacked, template=str(more.get("template") or ""))
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
    return next((found for each in accepted.split(",", 20)[:20] if (found := parse_locale(each))), ENGLISH)


def parse_locale(locale: str | None) -> str | None:
    """Return the language of a locale, such as `de-AT` or `de_CH`; None if there are no texts in it."""
    language = (locale or "")[:20].replace("_", "-").partition(";")[0].strip().partition("-")[0].lower()
    return language if language in LANGUAGES else None


def _to_text(fact: object) -> str:
    return fact if isinstance(fact, str) else str(fact)


def _fill(template: str, facts: Mapping[str, object], reader: Reader) -> str:
    if reader.command_prefix != "/" and "/" in template:
        template = COMMAND_SLASH.sub(reader.command_prefix, template)
    if not facts or "{" not in template:
        return template
    return template.format_map({name: _write_fact(fact, reader) for name, fact in facts.items()})


def _write_fact(fact: object, reader: Reader) -> str:
    if isinstance(fact, str):
        return write_text(fact, reader)
    if isinstance(fact, int) and not isinstance(fact, bool):
        return f"{fact:,}".replace(",", _THOUSANDS_SEPARATORS.get(reader.language, ","))
    return str(fact)


@cache
def _load_language(language: str) -> Mapping[str, str | dict[str, str]]:
    if language not in LANGUAGES or language == ENGLISH:
        return {}
    from importlib import resources  # its imports take a tenth of `palaver --version`

    file = resources.files("palaver.core") / "languages" / f"{language}.json"
    texts: dict[str, str | dict[str, str]] = json.loads(file.read_text("utf-8"))
    return texts
