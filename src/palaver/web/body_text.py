"""Text in request bodies: what cannot be stored is replaced here, before anything else reads the body.

JSON can contain NUL and halves of surrogate pairs, as `\\u0000` and `\\ud800`. No database, log or response can hold
them.
"""

from __future__ import annotations

import json
import re

from palaver.core.text import make_json_storable

_SUSPICIOUS_ESCAPE = re.compile(rb"\\u(?:d[89a-f]|0000)", re.IGNORECASE)


def make_body_storable(body: bytes) -> bytes:
    """Return a JSON body with all its text storable; the same object if it already was."""
    if not _SUSPICIOUS_ESCAPE.search(body):
        return body
    try:
        value = json.loads(body)
        clean = make_json_storable(value)
    except (ValueError, RecursionError):  # not valid: reported when the route reads it
        return body
    return body if clean is value else json.dumps(clean).encode()
