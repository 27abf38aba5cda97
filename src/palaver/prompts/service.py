"""A person's saved prompts: `view.part(SavedPromptOperations)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.core.engines.base import Read, Work, Write
from palaver.core.operation import R, operation
from palaver.prompts import table as saved_prompts
from palaver.sessions.view.scope import ViewPart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.prompts.model import SavedPrompt


class SavedPromptOperations(ViewPart[R]):
    """The principal's own saved prompts. An owner who sees everything still sees only their own."""

    @operation
    def list(self) -> Work[Sequence[SavedPrompt]]:
        return Read(lambda tx: saved_prompts.list_prompts(tx, self._scope.person_id))

    @operation
    def create(self, name: str, text: str, /, **others: str | None) -> Work[SavedPrompt]:
        now, given = self._scope.now(), {"name": name, "text": text, **others}
        return Write(lambda tx: saved_prompts.create(tx, self._scope.person_id, given, now))

    @operation
    def update(self, prompt_id: str, /, **given: str | None) -> Work[SavedPrompt]:
        now = self._scope.now()
        return Write(lambda tx: saved_prompts.update(tx, self._scope.person_id, prompt_id, given, now))

    @operation
    def delete(self, prompt_id: str) -> Work[SavedPrompt]:
        return Write(lambda tx: saved_prompts.delete(tx, self._scope.person_id, prompt_id))
