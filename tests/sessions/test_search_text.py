"""Search words, queries and snippets."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, strategies as st

from palaver.sessions.search_text import (
    Query,
    Term,
    build_snippet,
    list_pairs,
    parse_query,
    split_index_words,
    split_words,
)

# Text with the difficult cases: accents composed and decomposed, ligatures, jamo, half-width kana, marks.
difficult_text = st.text(
    st.one_of(
        st.sampled_from(
            "aAbB 1-_.\"*'\n\u200bßẞİıéÉﬁ½²ǆ\u0301\u0308\u0345\ufe0f\u20e3漢字かがカｶﾞﾊﾟ한글\u1112\u1161\u11ab"
        ),
        st.sampled_from("สวัสดีလာလာកម្ពុជาहिन्दीعَرَبِيّΣσς𝐀𝟗😀👨\u200d👩ÅÅ゛"),
        st.characters(),
    ),
    max_size=60,
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        ("  \n", []),
        ("Hello, World!", ["hello", "world"]),
        ("server-42 /var/log/app.log a_b", ["server", "42", "var", "log", "app", "log", "a", "b"]),
        ("don't", ["don", "t"]),
        ("CAFÉ café cafe\u0301", ["cafe", "cafe", "cafe"]),
        ("Straße STRASSE", ["strasse", "strasse"]),
        ("İstanbul", ["istanbul"]),
        ("ﬁnd ½ x² Ａｂｃ", ["find", "1", "2", "x2", "abc"]),
        ("Развёртывание ЕЩЁ", ["развертывание", "еще"]),
        ("ΣΊΣΥΦΟΣ σίσυφος", ["σισυφοσ", "σισυφοσ"]),
        ("naïve—résumé…", ["naive", "resume"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("مُحَمَّد", ["مُحَمَّد"]),
        ("服务器", ["服", "务", "器"]),
        ("deploy服务器v2", ["deploy", "服", "务", "器", "v2"]),
        ("𠮷野家 豈 々 〇", ["𠮷", "野", "家", "豈", "々", "〇"]),
        ("ひらがな カタカナ ﾊﾝｶｸ ー", [*"ひらがな", *"カタカナ", *"ハンカク", "ー"]),
        ("が か\u3099 ｶﾞ", ["が", "が", "ガ"]),
        ("한국어 \u1112\u1161\u11ab", ["한", "국", "어", "한"]),
        ("สวัสดี ๒๕", [*"สวัสดี", "๒", "๕"]),
        ("ສະບາຍ", [*"ສະບາຍ"]),
        ("កម្ពុជា។", [*"កម្ពុជា"]),
        ("မြန်မာ၊", [*"မြန်မာ"]),
        ("中文，标点。「引号」・", [*"中文标点引号"]),
        ("ok 👍🏽 ❤️ fine", ["ok", "fine"]),
        ("a\u200bb", ["a", "b"]),
        ("half\ud800pair", ["half", "pair"]),
        ("x" * 70 + " y", ["x" * 64, "y"]),
        ("é" * 70 + " y", ["e" * 64, "y"]),
        ("x" * 64, ["x" * 64]),
    ],
)
def test_text_is_split_into_words(text: str, words: list[str]) -> None:
    assert split_words(text) == words


@given(difficult_text)
def test_words_are_already_folded(text: str) -> None:
    words = split_words(text)
    assert split_words(" ".join(words)) == words


@given(difficult_text)
def test_a_word_consists_of_letters_digits_and_their_marks(text: str) -> None:
    for word in split_words(text):
        assert 0 < len(word) <= 64
        # Radicals are symbols, and planes 2 and 3 have Han characters that this Python may not know yet.
        assert all(c.isalnum() or unicodedata.category(c) in {"Mn", "Mc", "Me", "So", "Cn"} for c in word)


@given(difficult_text)
def test_composed_and_decomposed_accents_are_equal(text: str) -> None:
    assert split_words(unicodedata.normalize("NFD", text)) == split_words(unicodedata.normalize("NFC", text))


@given(st.text(st.characters(max_codepoint=127)))
def test_ascii_text_gives_the_same_words_within_other_text(text: str) -> None:
    assert split_words(f"{text} é") == [*split_words(text), "e"]


def test_the_words_of_the_index_end_at_a_limit() -> None:
    assert split_index_words("Hello, World! 服务") == ["hello", "world", "服", "务"]
    assert split_index_words("a b c d", limit=3) == ["a", "b", "c"]
    assert split_index_words("") == []
    assert len(split_index_words("word " * 20_000)) == 16_000
    assert len(split_index_words("字" * 20_000)) == 16_000


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("", []),
        ("not a word é ü", []),
        ("字", []),
        ("服务器", ["服务", "务器"]),
        ("服，务 器", ["服务", "务器"]),  # as in a phrase
        ("deploy服务v2器", ["", "服务", "", ""]),
        ("ไทย", ["ไท", "ทย"]),
        ("한국 がﾊ", ["한국", "국が", "がハ"]),
    ],
)
def test_characters_of_scripts_without_spaces_form_pairs(text: str, pairs: list[str]) -> None:
    assert list_pairs(split_words(text)) == pairs


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("", []),
        (' - * "" \'\' -"" ', []),
        ("deploy server", [Term(("deploy",)), Term(("server",))]),
        ("Café", [Term(("cafe",))]),
        ('"big server" now', [Term(("big", "server")), Term(("now",))]),
        ("„big server“ “x y”", [Term(("big", "server")), Term(("x", "y"))]),
        ('"never closed phrase', [Term(("never", "closed", "phrase"))]),
        ('foo"bar baz"qux', [Term(("foo",)), Term(("bar", "baz")), Term(("qux",))]),
        ("depl*", [Term(("depl",), prefix=True)]),
        ('"big ser"*', [Term(("big", "ser"), prefix=True)]),
        ('"big ser*"', [Term(("big", "ser"))]),
        ("a*b", [Term(("a", "b"))]),
        ("foo-ba*", [Term(("foo", "ba"), prefix=True)]),
        ("-draft", [Term(("draft",), excluded=True)]),
        ('-"rough draft" plan', [Term(("rough", "draft"), excluded=True), Term(("plan",))]),
        ("-dra*", [Term(("dra",), prefix=True, excluded=True)]),
        ("--verbose", [Term(("verbose",))]),
        ("foo-bar a.b", [Term(("foo", "bar")), Term(("a", "b"))]),
        ("服务器", [Term(("服", "务", "器"))]),
        ("服务*", [Term(("服", "务"))]),  # no longer word begins with a character
        ("deploy服务器", [Term(("deploy", "服", "务", "器"))]),
        (
            "AND OR NOT NEAR(a b) col:x",
            [Term((w,)) for w in ("and", "or", "not")] + [Term(("near", "a")), Term(("b",)), Term(("col", "x"))],
        ),
        ("x" * 70, [Term(("x" * 64,))]),
    ],
)
def test_a_query_is_parsed_as_people_type_it(text: str, terms: list[Term]) -> None:
    assert parse_query(text) == Query(tuple(terms))


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("dep", [Term(("dep",), prefix=True)]),
        ("big ser", [Term(("big",)), Term(("ser",), prefix=True)]),
        ("ser big ", [Term(("ser",)), Term(("big",))]),  # the space ends the word
        ("a de", [Term(("a",)), Term(("de",))]),  # too short
        ('"big ser', [Term(("big", "ser"), prefix=True)]),
        ('"big ser"', [Term(("big", "ser"))]),
        ("“big ser”", [Term(("big", "ser"))]),
        ("plan -dra", [Term(("plan",)), Term(("dra",), excluded=True)]),
        ("服务器", [Term(("服", "务", "器"))]),
        ("Äpf", [Term(("apf",), prefix=True)]),
        ("", []),
        (" ", []),
    ],
)
def test_the_word_that_is_being_typed_may_be_incomplete(text: str, terms: list[Term]) -> None:
    assert parse_query(text, is_typing=True) == Query(tuple(terms))


@pytest.mark.parametrize(
    ("text", "is_empty"), [("", True), ("?!", True), ("-draft", True), ("-draft plan", False), ("plan", False)]
)
def test_a_query_with_only_exclusions_is_empty(text: str, is_empty: bool) -> None:
    assert parse_query(text).is_empty is is_empty


@given(difficult_text)
def test_any_text_is_a_valid_query(text: str) -> None:
    for term in parse_query(text).terms:
        assert term.words
        assert all(word for word in term.words)


@given(difficult_text)
def test_a_quoted_text_is_a_phrase_of_its_words(text: str) -> None:
    query = parse_query('"' + text.replace('"', " ") + '"')
    assert [word for term in query.terms for word in term.words] == split_words(text.replace('"', " "))


@pytest.mark.parametrize(
    ("text", "query", "highlighted"),
    [
        ("The server is down", "server", "The [server] is down"),
        ("The  server\n\tis   down", "SERVER down", "The [server] is [down]"),
        ("Servers serve", "serv*", "[Servers] [serve]"),
        ("Servers serve", "server", "Servers serve"),
        ("a big server, not a small server", '"big server"', "a [big server], not a small server"),
        ("see foo-bar and foo bar", "foo-bar", "see [foo-bar] and [foo bar]"),
        ("Das Café in der STRASSE", "cafe straße", "Das [Café] in der [STRASSE]"),
        ("Das cafe\u0301 da", "café", "Das [cafe\u0301] da"),
        ("die Straße hier", "strasse", "die [Straße] hier"),
        ("ﬁne ﬁnd ½ cup", "find 2", "ﬁne [ﬁnd] [½] cup"),
        ("请重启服务器，谢谢", "服务器", "请重启[服务器]，谢谢"),
        ("请deploy服务器，谢谢", "deploy服务", "请[deploy服务]器，谢谢"),
        ("ﾊﾞｯｸｱｯﾌﾟ完了", "バック", "[ﾊﾞｯｸ]ｱｯﾌﾟ完了"),
        ("\u1112\u1161\u11ab\u1100\u1173\u11af!", "한글", "[\u1112\u1161\u11ab\u1100\u1173\u11af]!"),
        ("big big server", '"big server"', "big [big server]"),
        ("big big big", '"big big"', "[big big] big"),
        ("keep draft", "keep -draft", "[keep] draft"),
        ("nothing here", "elsewhere", "nothing here"),
        ("nothing here", "", "nothing here"),
        ("end of big", '"big server"', "end of big"),
        ("", "x", ""),
        ("[brackets] stay", "brackets", "[[brackets]] stay"),
    ],
)
def test_matches_are_highlighted_in_the_original_text(text: str, query: str, highlighted: str) -> None:
    assert build_snippet(text, parse_query(query)).highlight() == highlighted


LONG = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau"


@pytest.mark.parametrize(
    ("query", "highlighted"),
    [
        ("alpha", "[alpha] beta gamma delta epsilon zeta eta…"),
        ("theta", "…zeta eta [theta] iota kappa lambda mu…"),
        ("tau", "…mu nu xi omicron pi rho sigma [tau]"),
        ("nowhere", "alpha beta gamma delta epsilon zeta eta…"),
        ("-theta", "alpha beta gamma delta epsilon zeta eta…"),
    ],
)
def test_a_snippet_shows_the_first_match_and_where_it_was_cut(query: str, highlighted: str) -> None:
    assert build_snippet(LONG, parse_query(query), width=40).highlight() == highlighted


def test_a_match_longer_than_the_snippet_is_cut() -> None:
    assert build_snippet("x" * 100, parse_query("x*"), width=20).highlight() == "[" + "x" * 19 + "]…"
    phrase = build_snippet(f"see {LONG} end", parse_query(f'"{LONG}"'), width=40).highlight()
    assert phrase.startswith("see [alpha beta")
    assert phrase.endswith("]…")


def test_text_without_spaces_is_cut_anywhere() -> None:
    highlighted = build_snippet("前" * 300 + "服务器" + "后" * 300, parse_query("服务器"), width=30).highlight()
    assert highlighted == "…" + "前" * 9 + "[服务器]" + "后" * 16 + "…"


def test_a_snippet_has_its_text_and_the_spans_of_its_highlights() -> None:
    snippet = build_snippet("a b c b", parse_query("b"))
    assert snippet.segments == (("a ", False), ("b", True), (" c ", False), ("b", True))
    assert (snippet.text, snippet.highlights) == ("a b c b", [(2, 3), (6, 7)])
    assert snippet.highlight("<b>", "</b>") == "a <b>b</b> c <b>b</b>"
    assert str(snippet) == "a [b] c [b]"


@given(difficult_text, difficult_text, st.integers(0, 80))
def test_a_snippet_is_part_of_the_text_and_fits(text: str, query: str, width: int) -> None:
    excerpt = build_snippet(text, parse_query(query), width).text
    normalized = " ".join(text.split())
    assert len(excerpt) <= max(width, 16)
    assert excerpt == normalized or excerpt.strip("…") in normalized


@given(difficult_text)
def test_every_word_of_a_text_can_be_highlighted(text: str) -> None:
    for word in split_words(text):
        query = Query((Term((word,)),))
        snippet = build_snippet(text, query, width=1000)
        start, end = snippet.highlights[0]
        assert word in split_words(snippet.text[start:end])
