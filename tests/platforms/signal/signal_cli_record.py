"""What the real signal-cli has printed and answered: the measure for its stand-in."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Self

RECORD_FILE: Final = Path(__file__).with_name("signal_cli_record.json")
# Records of what people write. When other events come, such as those of contacts, differs from run to run.
_KINDS: Final = ("dataMessage", "editMessage", "sentMessage", "groupInfo")


@dataclass
class SignalCliRecord:
    """One example of each kind of event, and of each form of request with its answer."""

    events: dict[str, Any] = field(default_factory=dict)
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add_event(self, event: dict[str, Any]) -> None:
        if kind := name_kind(event):
            self.events.setdefault(kind, event)

    def add_answer(self, method: str, parameters: dict[str, Any], result: Any) -> None:
        if method == "version":  # asked for when some time has passed
            return
        name = " ".join([method, *sorted(parameters)])
        self.answers.setdefault(name, {"method": method, "parameters": parameters, "result": result})

    @classmethod
    def load(cls) -> Self:
        return cls(**json.loads(RECORD_FILE.read_text()))

    def save(self) -> None:
        RECORD_FILE.write_text(json.dumps(asdict(self), indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def name_kind(event: dict[str, Any]) -> str:
    """Return the records that an event has, from outside to inside."""

    def walk(value: Any) -> list[str]:
        if not isinstance(value, dict):
            return []
        return [name for key, each in value.items() for name in ([key] if key in _KINDS else []) + walk(each)]

    return " ".join(walk(event))


def describe_fields(value: Any) -> Any:
    """Return the fields of a value, without what they contain."""
    if isinstance(value, dict):
        return {name: describe_fields(each) for name, each in value.items()}
    if isinstance(value, list):
        return [describe_fields(each) for each in value[:1]]
    return "value"


def describe_record(record: SignalCliRecord) -> dict[str, Any]:
    events = {name: describe_fields(event) for name, event in record.events.items()}
    return {"events": events, "answers": {name: describe_fields(each) for name, each in record.answers.items()}}
