"""HTML is read as people see it: tables as rows, nothing that is hidden, and every size is bounded."""

from __future__ import annotations

import pytest

from palaver.platforms.email.html_text import MAX_TABLE_DEPTH, read_html

# ---- HTML -------------------------------------------------------------------------------------------------


def test_html_is_read_as_people_see_it() -> None:
    html = (
        "<html><head><title>x</title><style>p{color:red}</style></head><body><!-- hidden --><p>Hello&nbsp;<b>Anna</b>,"
        "</p><div>see <a href='https://example.org/a?b&amp;c'>this</a> and <a href=\"https://x.org\">https://x.org</a>"
        "<br>1 &lt; 2</div><ul><li>one<li>two</ul><script>alert(1)</script><img src='https://track.er/x.gif'>"
        "<pre>a\n  b</pre><blockquote>quoted<blockquote>twice</blockquote></blockquote></body></html>"
    )
    assert read_html(html).split("\n") == [
        "Hello Anna,",
        "",
        "see this (https://example.org/a?b&c) and https://x.org",
        "1 < 2",
        "- one",
        "- two",
        "",
        "a",
        "  b",
        "",
        "> quoted",
        "",
        "> > twice",
    ]


@pytest.mark.parametrize(
    "html",
    [
        "<",
        "<p",
        "a < b",
        "<!--",
        "<script>",
        "<b><i></b>",
        "<a href=",
        "</p></p>",
        "&#0;",
        "x&#" + "1" * 5000 + ";",
        "x&#x" + "1" * 5000,
    ],
)
def test_malformed_html_is_no_error(html: str) -> None:
    assert read_html(html) is not None


@pytest.mark.parametrize(
    "piece",
    [
        *("<div>", "<b><p>", "<", "<!--", "<a href='", "<blockquote>", "<pre>\n", "&", "<a<"),
        *("<table><tr><td>x", "<td>", "<ol><li>", "<p hidden>", "<blockquote><table>"),
    ],
)
def test_adversarial_html_is_read_in_time(piece: str) -> None:
    assert read_html(piece * (200_000 // len(piece))) is not None


@pytest.mark.parametrize(
    "start",
    [
        "<div style='display:none'>",
        '<div style="font-size:1px; DISPLAY : NONE ;color:#fff">',
        "<span style='visibility: hidden'>",
        "<td style='max-height:0px;overflow:hidden'>",
        "<p style='color:red;opacity:0'>",
        "<div hidden>",
    ],
)
def test_what_is_hidden_is_not_read(start: str) -> None:
    end = f"</{start[1:].partition(' ')[0]}>"
    assert read_html(f"{start}hidden<b>too</b>{end}<p>shown</p>") == "shown"


@pytest.mark.parametrize("style", ["font-size:0", "opacity:0.9", "max-height:0.5em", "x-display:none"])
def test_what_is_shown_is_read(style: str) -> None:
    assert read_html(f"<div style='{style}'>shown</div>") == "shown"


def test_elements_in_a_hidden_one_do_not_end_it() -> None:
    assert read_html("<div style='display:none'>a<div>b</div>c<br></div>d") == "d"


def test_nothing_is_lost_behind_a_hidden_element_that_ends_nowhere() -> None:
    assert "shown" in read_html("<p style='display:none'>hidden<p>shown")


def test_signs_that_only_fill_a_preview_are_left_out() -> None:
    assert read_html("Sale&#847;&zwnj;&#8203;&shy;<p>text") == "Sale\u200c\n\ntext"


def test_a_table_is_read_row_by_row() -> None:
    html = (
        "<table><thead><tr><th>Day</th><th>Who</th></tr></thead><tr><td><p>Mon</p></td><td><div>Ada</div></td></tr>"
        "<tr><td></td><td>Ben</td></tr><tr><td colspan=2>nobody else</td></tr></table>"
    )
    assert read_html(html).split("\n") == ["Day | Who", "Mon | Ada", " | Ben", "nobody else"]


def test_a_row_with_long_texts_is_read_one_after_the_other() -> None:
    long = "long text " * 30
    assert read_html(f"<table><tr><td>{long}</td><td>{long}</td></tr></table>").split("\n") == [long.strip()] * 2


def test_cells_and_rows_need_no_end() -> None:
    assert read_html("<table><tr><td>a<td>b<tr><td>c<td>d</table>after") == "a | b\nc | d\nafter"


def test_a_table_in_a_quote_is_quoted_once() -> None:
    html = "<blockquote>x<table><tr><td>a</td><td><blockquote>b</blockquote></td></tr></table></blockquote>y"
    assert read_html(html).split("\n") == ["> x", "> a | > b", "", "y"]


def test_tables_in_tables_are_bounded() -> None:
    deep = MAX_TABLE_DEPTH + 5
    assert read_html("<table><tr><td>" * deep + "inside" + "</td></tr></table>" * deep + "after") == "inside\nafter"


def test_lists_have_their_numbers() -> None:
    assert read_html("<ol start=3><li>c<li>d<ul><li>e</ul><li>f</ol>").split("\n") == ["3. c", "4. d", "- e", "5. f"]
