"""Every language has all texts that are said or declared, with the same gaps, and no others."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from docs.languages import LANGUAGE_FILES, Translation, find_problems, iterate_english

from palaver.core.texts import COMMAND_SLASH, ENGLISH, LANGUAGES
from palaver.inbox.registry import find_command

if TYPE_CHECKING:
    from collections.abc import Collection


@pytest.mark.slow
def test_a_code_stands_for_one_text_that_every_language_has() -> None:
    english: dict[str, str] = {}
    for code, text in iterate_english():
        assert english.setdefault(code, text) == text, f"{code} stands for two texts"
    for language in LANGUAGES:
        if language != ENGLISH:
            texts = json.loads((LANGUAGE_FILES / f"{language}.json").read_text("utf-8"))
            assert list(find_problems(english, texts)) == [], language
            assert list(texts) == sorted(texts), language


@pytest.mark.slow
def test_every_command_that_a_text_names_exists() -> None:
    """Its slash is replaced on platforms where commands begin differently: nothing else may look like one."""
    texts: dict[str, Translation] = {**dict(iterate_english())}
    for language in LANGUAGES:
        if language != ENGLISH:
            texts |= json.loads((LANGUAGE_FILES / f"{language}.json").read_text("utf-8"))
        for code, text in texts.items():
            forms: Collection[str] = text.values() if isinstance(text, dict) else (text,)
            for form in forms:
                for match in COMMAND_SLASH.finditer(form):
                    word = re.split(r"[^a-z{}]", form[match.end() :])[0]
                    is_known = word in {"{command}", "{kind}", "{line}"} or find_command(word) is not None
                    assert is_known, f"{code}: {form[match.start() :]}"


def test_problems_are_found() -> None:
    english = {"a": "A", "b": "B {name}", "c": "{count} files"}
    german: dict[str, Translation] = {"b": "B {place}", "c": {"one": "{count} Datei", "other": " "}, "d": "D"}
    assert [problem.partition(" |")[0] for problem in find_problems(english, german)] == [
        "missing: a: A",
        "gaps differ: b: B {name}",
        "gaps differ: c: {count} files",
        "not said any more: d",
    ]
