"""What is offered while somebody types: commands with what they do, and titles after `/resume`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from prompt_toolkit.completion import Completer, Completion

from palaver.cli.output import ago, line
from palaver.domain.errors import StoreError
from palaver.services.commands import completions

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable

    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.document import Document

    from palaver.cli.chat.chat_session import Talk

OFFERED = 100  # conversations
_NAME = re.compile(r"/[\w-]*")
_RESUME = re.compile(r"/resume\s+(?P<title>.*)", re.IGNORECASE)


class ChatCompleter(Completer):
    """Completes what is typed at the beginning of a message."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Commands by the beginning of their name."""
        typed = document.text_before_cursor
        if not _NAME.fullmatch(typed):
            return
        for each in completions():
            if each.name.startswith(typed.lower()):
                usage = f"{each.name} {each.usage}".rstrip()
                yield Completion(each.name, -len(typed), display=usage, display_meta=each.summary)

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """The same, and conversations by what their titles hold."""
        for completion in self.get_completions(document, complete_event):
            yield completion
        typed = _RESUME.fullmatch(document.text_before_cursor)
        if typed is None:
            return
        wanted = typed["title"].casefold()
        try:
            recent = await self._talk.view.list(limit=OFFERED)
        except StoreError:  # nothing can be offered; what is typed can still be sent
            return
        now = self._talk.now()
        for session in recent:
            title = line(session.title or "")
            if title and wanted in title.casefold() and session.id != self._talk.session_id:
                yield Completion(title, -len(typed["title"]), display_meta=ago(session.active_at, now))
