"""The page's types and the API that they describe."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from palaver.agent.demo import DemoAgent

if TYPE_CHECKING:
    from support.web import StartWeb

TYPES = Path(__file__).parents[2] / "frontend" / "src" / "api" / "schema.ts"


def as_javascript_has_it(value: Any) -> Any:
    """JavaScript knows one kind of number."""
    if isinstance(value, dict):
        return {key: as_javascript_has_it(each) for key, each in value.items()}
    if isinstance(value, list):
        return [as_javascript_has_it(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


async def test_the_types_of_the_page_are_those_of_the_api(start_web: StartWeb) -> None:
    web = await start_web(DemoAgent(pace=0))
    shapes = as_javascript_has_it(web.app.openapi()["components"]["schemas"])
    text = json.dumps(shapes, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    digest = hashlib.sha256(text.encode()).hexdigest()
    found = re.search(r"Shapes: ([0-9a-f]{64})", TYPES.read_text())
    assert found is not None
    assert found[1] == digest, "the API has changed: write its types anew (frontend/README.md, “Types”)"
