"""Completions in the chat input: slash commands, titles of conversations after `/resume`, paths after `/attach`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from prompt_toolkit.completion import Completer, Completion, PathCompleter
from prompt_toolkit.document import Document

from palaver.cli.chat.attached_files import COMMANDS
from palaver.cli.output import clean_line, format_relative_time
from palaver.core.errors import StoreError
from palaver.inbox.registry import list_completions

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable

    from prompt_toolkit.completion import CompleteEvent

    from palaver.cli.chat.chat_session import ChatSession

MAX_SESSIONS_OFFERED = 100
_COMMAND_START = re.compile(r"/[\w-]*")
_ATTACH = re.compile(r"/attach\s+(?P<path>.*)", re.IGNORECASE)
_RESUME = re.compile(r"/resume\s+(?P<title>.*)", re.IGNORECASE)


class ChatCompleter(Completer):
    """Completes a command at the beginning of a message."""

    def __init__(self, chat: ChatSession) -> None:
        self._chat = chat
        self._paths = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Complete the name of a command, or the path of a file to attach."""
        text = document.text_before_cursor
        if match := _ATTACH.fullmatch(text):
            yield from self._paths.get_completions(Document(match["path"]), complete_event)
        if not _COMMAND_START.fullmatch(text):
            return
        for command in list_completions():
            if command.name.startswith(text.lower()):
                usage = f"{command.name} {command.usage}".rstrip()
                yield Completion(command.name, -len(text), display=usage, display_meta=command.summary)
        for name, (usage, summary) in COMMANDS.items():
            if name.startswith(text.lower()):
                yield Completion(name, -len(text), display=f"{name} {usage}".rstrip(), display_meta=summary)

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """Complete the name of a command, a path, or a title that contains the text after `/resume`."""
        for completion in self.get_completions(document, complete_event):
            yield completion
        match = _RESUME.fullmatch(document.text_before_cursor)
        if match is None:
            return
        text = match["title"]
        try:
            recent = await self._chat.view.list(limit=MAX_SESSIONS_OFFERED)
        except StoreError:  # no completions, but the message can still be sent
            return
        now = self._chat.now()
        for session in recent:
            title = clean_line(session.shown_title or "")
            if title and text.casefold() in title.casefold() and session.id != self._chat.session_id:
                yield Completion(title, -len(text), display_meta=format_relative_time(session.active_at, now))
