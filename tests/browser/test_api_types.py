"""The TypeScript types of the page match the API."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from palaver.drivers.demo import DemoAgent

if TYPE_CHECKING:
    from support.web import StartWebServer

SCHEMA_FILE = Path(__file__).parents[2] / "frontend" / "src" / "api" / "schema.ts"


def normalize_numbers(value: Any) -> Any:
    """Turn whole floats into integers, because JavaScript has only one type of number."""
    if isinstance(value, dict):
        return {key: normalize_numbers(each) for key, each in value.items()}
    if isinstance(value, list):
        return [normalize_numbers(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


async def test_the_page_has_the_current_api_types(start_web: StartWebServer) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    document = web.app.openapi()
    types = normalize_numbers({"paths": document["paths"], "schemas": document["components"]["schemas"]})
    text = json.dumps(types, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    digest = hashlib.sha256(text.encode()).hexdigest()
    found = re.search(r"Digest: ([0-9a-f]{64})", SCHEMA_FILE.read_text())
    assert found is not None
    assert found[1] == digest, "the API has changed: regenerate its types (frontend/README.md, “Types”)"
