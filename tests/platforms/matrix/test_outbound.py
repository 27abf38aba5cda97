"""Markdown → the content of Matrix events."""

from __future__ import annotations

import json
from typing import Any

import pytest

from palaver.core.source import Platform
from palaver.delivery.adapter import OutgoingMessage
from palaver.platforms.matrix.manifest import CAPABILITIES
from palaver.platforms.matrix.outbound import build_content, build_edit, build_relation, render_html, render_messages
from palaver.sessions.delivery import Address, DeliveryKind

MAX_EVENT_BYTES = 65_536


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("Hello", "<p>Hello</p>"),
        ("**b** *i* ~~s~~ `c`", "<p><strong>b</strong> <em>i</em> <s>s</s> <code>c</code></p>"),
        ("one\ntwo", "<p>one<br>\ntwo</p>"),
        ("1 * 2 * 3", "<p>1 * 2 * 3</p>"),
        ("a **stray", "<p>a **stray</p>"),
        ("[a_(b)](https://example.org/a_(b))", '<p><a href="https://example.org/a_(b)">a_(b)</a></p>'),
        ("```python\nx < 1\n```", '<pre><code class="language-python">x &lt; 1\n</code></pre>'),
        ("- a\n  - b", "<ul>\n<li>a\n<ul>\n<li>b</li>\n</ul>\n</li>\n</ul>"),
        ("3. c\n4. d", '<ol start="3">\n<li>c</li>\n<li>d</li>\n</ol>'),
        ("> quote", "<blockquote>\n<p>quote</p>\n</blockquote>"),
        (
            "| a | b |\n|---|--:|\n| 1 | 2 |",
            "<table>\n<thead>\n<tr>\n<th>a</th>\n<th>b</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td>1</td>\n<td>2</td>\n</tr>"
            "\n</tbody>\n</table>",
        ),
        ("# Title", "<h1>Title</h1>"),
        ("![A cat](https://example.org/cat.png)", '<p><a href="https://example.org/cat.png">A cat</a></p>'),
        ('<img src=x onerror="x()"> & <b>b</b>', '<p>&lt;img src=x onerror="x()"&gt; &amp; &lt;b&gt;b&lt;/b&gt;</p>'),
        ("<span data-mx-spoiler>no</span>", "<p>&lt;span data-mx-spoiler&gt;no&lt;/span&gt;</p>"),
        ("[x](javascript:alert(1))", "<p>[x](javascript:alert(1))</p>"),
        ("[x](ftp://example.org)", "<p><a>x</a></p>"),
        ("@room hello", "<p>@room hello</p>"),
    ],
)
def test_html(markdown: str, html: str) -> None:
    assert render_html(markdown) == html


def make_message(markdown: str = "Hello", **fields: Any) -> OutgoingMessage:
    [body] = render_messages(markdown, CAPABILITIES)
    return OutgoingMessage(key="d_1.1", address=Address(Platform.MATRIX, "!room"), body=body, **fields)


def test_an_answer_is_a_notice_without_mentions() -> None:
    assert build_content(make_message("**Hello**"), send_as="notice") == {
        "msgtype": "m.notice",
        "body": "**Hello**",
        "format": "org.matrix.custom.html",
        "formatted_body": "<p><strong>Hello</strong></p>",
        "m.mentions": {},
    }


@pytest.mark.parametrize(
    ("send_as", "kind", "expected"),
    [
        ("notice", DeliveryKind.ANSWER, "m.notice"),
        ("text", DeliveryKind.ANSWER, "m.text"),
        ("text", DeliveryKind.NOTICE, "m.notice"),
    ],
)
def test_what_an_answer_is_sent_as(send_as: str, kind: DeliveryKind, expected: str) -> None:
    assert build_content(make_message(kind=kind), send_as=send_as)["msgtype"] == expected


@pytest.mark.parametrize(
    ("reply_to", "thread_id", "expected"),
    [
        (None, None, None),
        ("$a", None, {"m.in_reply_to": {"event_id": "$a"}}),
        (
            None,
            "$t",
            {"rel_type": "m.thread", "event_id": "$t", "is_falling_back": True, "m.in_reply_to": {"event_id": "$t"}},
        ),
        (
            "$a",
            "$t",
            {"rel_type": "m.thread", "event_id": "$t", "is_falling_back": True, "m.in_reply_to": {"event_id": "$a"}},
        ),
    ],
)
def test_replies_and_threads(reply_to: str | None, thread_id: str | None, expected: object) -> None:
    content = build_relation(reply_to=reply_to, thread_id=thread_id)
    assert content.get("m.relates_to") == expected


def test_an_edit_has_the_whole_text_once() -> None:
    text = "word " * 1000
    edit = build_edit("$a", make_message(text), send_as="notice")
    assert edit["m.new_content"]["body"] == text
    assert edit["m.relates_to"] == {"rel_type": "m.replace", "event_id": "$a"}
    assert len(edit["body"]) < 300
    assert "formatted_body" not in edit


@pytest.mark.parametrize(
    "markdown",
    [
        "word " * 20_000,
        '"<&>' * 8_000,
        "- a\n" * 2_500,
        "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 1_500,
        "```\n" + "x = 1\n" * 10_000 + "```",
        "😀" * 15_000,
        ">" * 5_000 + " deep",
    ],
    ids=["words", "escapes", "list", "table", "code", "emoji", "quotes"],
)
def test_an_encrypted_event_is_never_too_long(markdown: str) -> None:
    for body in render_messages(markdown, CAPABILITIES):
        message = OutgoingMessage(key="d_1.1", address=Address(Platform.MATRIX, "!room"), body=body)
        content = json.dumps(build_edit("$" + "a" * 43, message, send_as="notice"), ensure_ascii=False).encode()
        assert len(content) * 4 / 3 + 2_000 < MAX_EVENT_BYTES


def test_characters_that_no_homeserver_stores_are_replaced() -> None:
    [body] = render_messages("a\ud800b\0c", CAPABILITIES)
    assert json.loads(body)["body"] == "a?b\N{REPLACEMENT CHARACTER}c"
