"""Sources as JSON in the database."""

from __future__ import annotations

import json

from palaver.core.source import SessionSource
from palaver.core.text import make_json_storable


def encode_source(source: SessionSource) -> str:
    return json.dumps(make_json_storable(source.to_dict()), separators=(",", ":"))


def decode_source(text: str) -> SessionSource:
    return SessionSource.from_dict(json.loads(text))
