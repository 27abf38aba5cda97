"""Whatever the path or the query of a request contains, the answer is an error of the request, never of the server.

The operations come from the OpenAPI document, so that new ones are tested automatically.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.web import build_api_document

if TYPE_CHECKING:
    from support.web import StartWebServer

DOCUMENT = build_api_document()
STREAMS = {"open_live_stream"}
TEXTS = ["%00", "a%00b", "%ED%A0%80", "%FF", "x" * 3000, "%F0%9F%92%A9", "%0A%1B", "'%22%5C%25_", "..%2F..%2Fetc"]


def choose_value(schema: dict[str, Any], text: str) -> str:
    """Return the text, or a valid value where the schema allows only a few."""
    if "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    schema = next((each for each in schema.get("anyOf", ()) if each.get("type") != "null"), schema)
    if "enum" in schema or "const" in schema:
        return str([*schema.get("enum", ()), schema.get("const")][0])
    return "1" if schema.get("type") in {"integer", "boolean"} else text


def list_addresses(text: str) -> list[tuple[str, str, str]]:
    """Return id, method and address of each operation, with the text in its path and in each part of its query."""
    found = []
    for path, operations in DOCUMENT["paths"].items():
        for method, operation in operations.items():
            values = {
                (each["in"], each["name"]): choose_value(each["schema"], text)
                for each in operation.get("parameters", [])
            }
            filled = path.format_map({name: value for (place, name), value in values.items() if place == "path"})
            addresses = [filled] + [
                f"{filled}?{name}={value}" for (place, name), value in values.items() if place == "query"
            ]
            found += [(operation["operationId"], method.upper(), each) for each in addresses if text in each]
    return [each for each in found if each[0] not in STREAMS]


@pytest.mark.both_engines
@pytest.mark.parametrize("text", TEXTS)
async def test_any_text_in_an_address_is_answered(start_web: StartWebServer, text: str) -> None:
    web = await start_web()
    owner = await web.sign_in()
    failures = []
    for operation, method, address in list_addresses(text):
        response = await owner.request(method, address, json={} if method in {"POST", "PUT", "PATCH"} else None)
        if response.status_code >= 500:
            failures.append((operation, address[:80], response.status_code, response.text[:200]))
    assert failures == []
