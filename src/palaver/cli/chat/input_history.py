"""The input history of the chat: what was sent, and what was typed but not sent.

It is a file in the home folder that only its owner can read. If the file can't be used, the history lasts until the
chat ends.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from prompt_toolkit.history import FileHistory

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from prompt_toolkit.buffer import Buffer


class InputHistory(FileHistory):
    """The input history in a file."""

    def __init__(self, file: Path) -> None:
        self.is_persistent = True  # everything so far is in the file
        with suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch(mode=0o600)
            file.chmod(0o600)
        super().__init__(str(file))

    def load_history_strings(self) -> Iterable[str]:
        """Return the inputs in the file, the newest first; none if it can't be read."""
        try:
            return list(super().load_history_strings())
        except OSError:
            return []

    def store_string(self, string: str) -> None:
        """Add an input to the file."""
        try:
            super().store_string(string)
        except OSError:
            self.is_persistent = False

    def save_draft(self, buffer: Buffer) -> str:
        """Add what was typed but not sent, so that the up arrow brings it back; return it (possibly empty).

        While the person looks at earlier inputs, the buffer has two texts: the earlier input, which they may have
        changed, and the draft behind it.
        """
        shown = buffer.text
        buffer.history_forward(count=sys.maxsize)
        draft = buffer.text
        known = self.get_strings()
        unsent = [text for text in (shown if shown not in known else "", draft) if text.strip()]
        for text in dict.fromkeys(unsent):
            if known[-1:] != [text]:
                self.append_string(text)
        return unsent[-1] if unsent else ""
