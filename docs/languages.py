"""Compare the language files with everything that Palaver says: `python -m docs.languages`.

Prints the texts that a language lacks (with the English text), those that nothing says any more, and those whose gaps
differ; a test does the same. With `--write` it sorts the files and removes what nothing says any more.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import json
import pkgutil
import string
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import palaver
from palaver.core.errors import PalaverError
from palaver.core.texts import ENGLISH, LANGUAGES, Text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SOURCES = Path(palaver.__file__).parent
LANGUAGE_FILES = SOURCES / "core" / "languages"
EDGES = frozenset({"cli", "platforms", "testing", "web"})  # their error classes are their own
WEB_ERRORS = "palaver.web.errors"  # but these are for people
Translation = str | dict[str, str]


def main() -> None:
    english = dict(iterate_english())
    problems = []
    for language in LANGUAGES:
        if language == ENGLISH:
            continue
        file = LANGUAGE_FILES / f"{language}.json"
        texts: dict[str, Translation] = json.loads(file.read_text("utf-8"))
        if "--write" in sys.argv[1:]:
            texts = {code: text for code, text in sorted(texts.items()) if code in english}
            file.write_text(json.dumps(texts, indent=1, ensure_ascii=False) + "\n", "utf-8")
        problems += [f"{language}: {problem}" for problem in find_problems(english, texts)]
    sys.exit("\n".join(problems) or 0)


def find_problems(english: Mapping[str, str], texts: Mapping[str, Translation]) -> Iterator[str]:
    for code, text in sorted(english.items()):
        if code not in texts:
            yield f"missing: {code}: {text}"
            continue
        translation = texts[code]
        for form in translation.values() if isinstance(translation, dict) else (translation,):
            if not form.strip() or not find_gaps(form) <= find_gaps(text):
                yield f"gaps differ: {code}: {text} | {form}"
    yield from (f"not said any more: {code}" for code in sorted(texts.keys() - english.keys()))


def find_gaps(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def iterate_english() -> Iterator[tuple[str, str]]:
    """Yield the code and the English text of everything that is said, and of everything declared that has a text."""
    for file in sorted(SOURCES.rglob("*.py")):
        yield from iterate_said(file)
    yield from iterate_declared()


def iterate_said(file: Path) -> Iterator[tuple[str, str]]:
    """Yield what the calls of `say` and `say_count` in a module, and its errors, say. Codes and texts are literals."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        match node:
            case ast.Call(
                func=ast.Name(id="say" | "say_count" as function) | ast.Attribute(attr="say" as function),
                args=[ast.Constant(value=str(code)), *_, ast.Constant(value=str(text))],
                keywords=keywords,
            ):
                given = {keyword.arg for keyword in keywords} | ({"count"} if function == "say_count" else set())
                missing = find_gaps(text) - given
                if missing and None not in given:
                    sys.exit(f"{file}:{node.lineno}: {code} lacks a fact for {', '.join(sorted(missing))}")
                yield code, text


def iterate_declared() -> Iterator[tuple[str, str]]:
    from palaver.config.setting_names import list_choice_names
    from palaver.config.setting_templates import list_part_names, list_templates
    from palaver.inbox.registry import COMMANDS
    from palaver.jobs import cron, descriptions
    from palaver.operation.doctor.finding import FindingCode
    from palaver.platforms.registry import VALUE_PROBLEMS
    from palaver.platforms.settings_catalog import InstalledPlatforms

    for error_class in _iterate_error_classes():
        yield from _find_texts(error_class.describe_class())
    findings = [(code.subject, code.text, code.fix) for code in FindingCode]
    names = (list_part_names(), list_choice_names())
    calendar = (cron.WEEKDAYS, cron.MONTHS, descriptions.WEEKDAYS, descriptions.MONTHS)
    states = (descriptions.JOB_STATES, descriptions.RUN_STATES)
    forms = InstalledPlatforms({}).list_forms()
    for declared in (list_templates(), names, calendar, states, COMMANDS, forms, VALUE_PROBLEMS, findings):
        yield from _find_texts(declared)


def _find_texts(value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Text):
        if not value.facts:  # otherwise it was said: there is its template
            yield value.code, str(value)
    elif isinstance(value, dict):
        yield from (found for each in value.values() for found in _find_texts(each))
    elif isinstance(value, list | tuple):
        yield from (found for each in value for found in _find_texts(each))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from (found for field in dataclasses.fields(value) for found in _find_texts(getattr(value, field.name)))


def _iterate_error_classes() -> Iterator[type[PalaverError]]:
    rooms = [each.name for each in pkgutil.iter_modules(palaver.__path__) if each.ispkg and each.name not in EDGES]
    for room in rooms:
        package = importlib.import_module(f"palaver.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    importlib.import_module(WEB_ERRORS)
    places = (*(f"palaver.{room}." for room in rooms), WEB_ERRORS)

    def walk(error_class: type[PalaverError]) -> Iterator[type[PalaverError]]:
        yield error_class
        for each in error_class.__subclasses__():
            yield from walk(each)

    yield from (each for each in walk(PalaverError) if each.__module__.startswith(places))


if __name__ == "__main__":
    main()
