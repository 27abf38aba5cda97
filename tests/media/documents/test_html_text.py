"""HTML as text: structure that stays, what is left out, and broken pages."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from palaver.media.documents.html_text import read_html

BASE = "https://e.example/dir/page"


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<h1>A</h1><h3>B</h3>", "# A\n\n### B"),
        ("<ul><li>a<li>b<ol><li>c<li>d</ol></ul>", "- a\n- b\n  1. c\n  2. d"),
        ("<table><tr><th>a<th>b<tr><td><p>1</p><td>2</table>", "a | b\n1 | 2"),
        ("<p>x<br>y   z", "x\ny z"),
        ("<pre>a\n  b</pre>", "```\na\n  b\n```"),
        ("<p>&lt;b&gt; &amp; &#228;&nbsp;x", "<b> & ä x"),
        ("<a href='../x y'>t</a>", "[t](https://e.example/x%20y)"),
        ("<a href='javascript:x'>t</a> <a href='#top'>u</a>", "t u"),
        ("<a href=/z>x</a><a href=/y></a>", "[x](https://e.example/z)"),
        ("<base href='https://o.example/'><base href='https://p.example'><a href=q>x</a>", "[x](https://o.example/q)"),
        ("<img alt='a cat'><img>", "(image: a cat)"),
        ("a<script>if (1 < 2) document.write('</p>')</script>b<style>p{}</style>c", "abc"),
        ("a<!-- <p>no --> b<!doctype x><?php no ?>", "a b"),
        ("<div hidden>no<div>no</div></div>yes<span style='display: none'>no</span>", "yes"),
        ("1 < 2 and 3 <4", "1 < 2 and 3 <4"),
        ("<p title='a > b'>x", "x"),
        ("<nav>menu</nav><p>text<footer>foot</footer>", "text"),
        ("<nav>only a menu</nav>", "only a menu"),
        ("x<!-- never closed <p>y", "x"),
        ('x<a b="never closed>y', "x"),
        ("<svg><text>no</text></svg>yes", "yes"),
    ],
)
def test_pages_as_text(page: str, expected: str) -> None:
    assert read_html(page, BASE)[1] == expected


def test_the_main_content_is_chosen_if_there_is_enough_of_it() -> None:
    story = "word " * 200
    assert read_html(f"<div>before</div><main><p>{story}</main><div>after</div>")[1] == story.strip()
    assert "before" in read_html("<div>before</div><main>loading</main>")[1]


def test_the_title_is_that_of_the_page() -> None:
    assert read_html("<title>\n A &amp; B </title><svg><title>icon</title></svg><p>x")[0] == "A & B"


@given(st.text(alphabet="<>/!-a'\"= &;#\nptdlihrefscy"))
def test_whatever_follows_what_was_read_before_stays(page: str) -> None:
    assert read_html(f"<p>start</p>{page}", BASE)[1].startswith("start")
