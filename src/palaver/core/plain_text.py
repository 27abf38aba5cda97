"""Plain text made from Markdown, for places that show one line of it: previews and titles."""

from __future__ import annotations

import re

_MAX_SPAN_CHARS = 400  # between two marks that belong together; it also bounds the time for marks without a partner

_MARKS = re.compile(r"[*_`~#>\[\\|<=+)-]")
_WORDLESS_LINES = re.compile(  # code fences, rules, the underline of a heading, the line below the head of a table
    r"^[ \t>]{0,20}(?:(?:`{3,9}|~{3,9})[^`\n]{0,100}|[-*_=](?:[ \t]?[-*_=]){2,200}[ \t]{0,20}"
    r"|(?=[^\n]{0,200}\|)(?=[^\n]{0,200}-)[ \t:|-]{3,300})$",
    re.MULTILINE,
)
_BLOCK_MARKS = re.compile(  # of quotes, headings, lists and tasks; they may follow one another
    r"^(?:[ \t]{0,20}(?:>|#{1,6}(?=[ \t])|[-*+](?=[ \t])|\d{1,3}[.)](?=[ \t])))+[ \t]{0,20}(?:\[[ xX]\][ \t])?",
    re.MULTILINE,
)
_CLOSING_HASHES = re.compile(r"(?<![ \t])[ \t]{1,20}#{1,6}[ \t]{0,20}$", re.MULTILINE)
_TABLE_ROWS = re.compile(r"^[ \t]{0,20}\|.*", re.MULTILINE)
_FOOTNOTES = re.compile(r"\[\^[^\]\s]{1,40}\]:?")
_LINKS = re.compile(
    rf"!?\[([^\[\]]{{0,{_MAX_SPAN_CHARS}}})\]"
    r"(?:\([^()\s]{0,1000}(?:[ \t]+[\"'][^\"'\n]{0,200}[\"'])?\)|\[[^\[\]]{0,100}\])"
)
_AUTOLINKS = re.compile(r"<((?:https?://|mailto:)[^<>\s]{1,1000})>")
_TAGS = re.compile(r"</?(?:br|details|summary|sub|sup)(?:[ \t]+[^<>]{0,200})?/?>", re.IGNORECASE)
_CODE = re.compile(rf"(?<!`)(`{{1,3}})(?!`) ?([^`]{{1,{_MAX_SPAN_CHARS}}}?) ?(?<!`)\1(?!`)")
_EMPHASIS = re.compile(rf"(?<![\w*\\])(\*{{1,3}}|~~)(?=[^\s*~])([^*~]{{1,{_MAX_SPAN_CHARS}}})(?<=[^\s*~\\])\1(?![\w*])")
_UNDERSCORES = re.compile(
    rf"(?<![\w\\])(_{{1,3}})(?=[^\s_])([^_]{{1,{_MAX_SPAN_CHARS}}})(?<=[^\s_\\])\1(?![\w(/-]|\.\w)"
)
_ESCAPES = re.compile(r"\\([\\`*_{}\[\]()#+.!|<>~-])")

# In order: a mark that a text must contain, what stands for it, and what is left of that.
_INLINE_RULES = (
    ("#", _CLOSING_HASHES, ""),
    ("[^", _FOOTNOTES, ""),
    ("](", _LINKS, r"\1"),
    ("](", _LINKS, r"\1"),  # an image in a link
    ("][", _LINKS, r"\1"),
    ("<", _AUTOLINKS, r"\1"),
    ("<", _TAGS, " "),
    ("`", _CODE, r"\2"),
    ("*", _EMPHASIS, r"\2"),
    ("*", _EMPHASIS, r"\2"),  # around other emphasis
    ("~~", _EMPHASIS, r"\2"),
    ("_", _UNDERSCORES, r"\2"),
    ("\\", _ESCAPES, r"\1"),
)


def strip_markdown(text: str) -> str:
    """Return the text without Markdown's marks; what only looks like one, as in `snake_case` or `2 * 3`, stays."""
    if _MARKS.search(text) is None and "\n" not in text and not text[:1].isdigit():
        return text  # most messages
    plain = _BLOCK_MARKS.sub("", _WORDLESS_LINES.sub("", text))
    if "|" in plain:
        plain = _TABLE_ROWS.sub(lambda row: row[0].replace("|", " "), plain)
    for mark, pattern, replacement in _INLINE_RULES:
        if mark in plain:
            plain = pattern.sub(replacement, plain)
    return plain
