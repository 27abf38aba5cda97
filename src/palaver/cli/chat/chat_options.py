"""The options of a terminal chat."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class StartMode(Enum):
    """The conversation that the chat starts in."""

    RECENT = "recent"  # the current one if it is not old, otherwise a new one
    LAST = "last"
    NEW = "new"
    NAMED = "named"  # the one given with --resume


class ChatMode(Enum):
    """The kind of chat: how it is shown, and the source of its messages."""

    SCREEN = "screen"  # a terminal with escape codes
    LINES = "lines"  # a terminal that can only show lines
    PIPE = "pipe"  # lines from another program
    ONE_SHOT = "one_shot"  # one message from the command line


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOptions:
    mode: ChatMode
    start: StartMode = StartMode.RECENT
    resume: str = ""  # title, id or number of a conversation
    profile: str | None = None  # to choose in that conversation; "default" resets it
    personality: str | None = None
    workspace: str | None = None
    message: str | None = None
    files: tuple[Path, ...] = ()  # for the first message
    as_json: bool = False
    quiet: bool = False
    is_temporary: bool = False  # in the memory of this process only
