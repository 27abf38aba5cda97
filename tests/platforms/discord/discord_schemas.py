"""Checks what is sent to Discord and by it against Discord's published types."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jsonschema import Draft7Validator, ValidationError

SCHEMA_FILE = Path(__file__).parents[3] / "build" / "schemas" / "discord.json"
_OPTIONAL = "_AddUndefinedToPossiblyUndefinedPropertiesOfInterface"
_EMPTY_OBJECT = {"type": "object", "additionalProperties": False}
_OPTIONAL_TYPES: dict[str, dict[str, Any]] = {
    "<string>": {"type": "string"},
    "<(Snowflake|undefined)>": {"type": "string"},
    "<(boolean|undefined)>": {"type": "boolean"},
    "<(MessageReferenceType|undefined)>": {"type": "integer"},
}


@functools.cache
def load_schema() -> dict[str, Any]:
    if not SCHEMA_FILE.exists():
        raise FileNotFoundError("The schemas of Discord are missing. Run: make build/schemas/.generated")
    schema: dict[str, Any] = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    # What the generator does not understand: parts of a type, sums of flags, and the helper for optional fields.
    message, snapshot = (schema["definitions"][name] for name in ("APIMessage", "APIMessageSnapshotFields"))
    snapshot["properties"] = {name: message["properties"][name] for name in snapshot["properties"]}
    snapshot["required"] = ["attachments", "content", "embeds", "timestamp", "type"]
    for name, definition in schema["definitions"].items():
        if name.endswith("Flags"):
            schema["definitions"][name] = {"type": "integer", "minimum": 0}
        elif name.startswith(_OPTIONAL) and definition == _EMPTY_OBJECT:
            kind = name.removeprefix(_OPTIONAL)
            schema["definitions"][name] = _OPTIONAL_TYPES.get(kind, {"type": ["array", "string", "number", "null"]})
    return schema


@functools.cache
def get_validator(name: str) -> Draft7Validator:
    from jsonschema import Draft7Validator

    return Draft7Validator({**load_schema(), "$ref": f"#/definitions/{name}"})


def _find_cause(error: ValidationError) -> ValidationError:
    """Return what is wrong with the alternative that fits best, where a value may have one of several types."""
    from jsonschema.exceptions import best_match

    return (best_match(error.context) if error.context else None) or error


def list_problems(name: str, value: Any) -> list[str]:
    """Return how a value differs from a published type; `tests/platforms/schemas/discord.ts` names the types."""
    return list(_list_problems(name, json.dumps(value)))


@functools.lru_cache(maxsize=500)
def _list_problems(name: str, text: str) -> tuple[str, ...]:
    """Check a value in the form of JSON: what every connection sends and gets is the same, and is checked once."""
    if name not in load_schema()["definitions"]:
        return (f"{name} does not exist",)
    return tuple(
        f"{name}: {'.'.join(map(str, error.absolute_path))} {error.message[:300]}"
        for error in (_find_cause(each) for each in get_validator(name).iter_errors(json.loads(text)))
    )
