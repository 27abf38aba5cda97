"""Decodes text in the charsets of mails. Pure.

Only charsets: Python knows codecs such as punycode, too, whose time grows with the square of the text.
"""

from __future__ import annotations

import re

_CHARSET = re.compile(
    r"iso[-_]?8859[-_]?\d{1,2}(?:[-_][ie])?|(?:windows|cp|ibm)[-_]?\d{3,5}|utf[-_]?(?:16|32)(?:[-_]?[bl]e)?|latin[-_]?\d{1,2}"
    r"|koi8[-_][rtu]|gb2312|gbk|gb18030|hz-gb-2312|big5(?:[-_]?hkscs)?|euc[-_]?(?:jp|kr)|shift[-_]?jis|iso-2022-(?:jp|kr)"
    r"|mac[-_]?(?:roman|cyrillic|greek|latin2)|macintosh|tis-620"
)


def decode_charset(data: bytes, charset: str) -> str:
    """Return a text, as far as it can be read; an unknown charset counts as UTF-8, as old mails lie about it."""
    name = charset.strip().lower()[:40]
    if _CHARSET.fullmatch(name):
        try:
            return data.decode(name, "replace")
        except LookupError:
            pass
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data":  # cut in the middle of a character
            return data.decode("utf-8-sig", "ignore")
        return data.decode("cp1252", "replace")
