"""A person's saved prompts: `view.saved_prompts`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.services.operation import R, operation
from palaver.services.view.part import ViewPart
from palaver.storage import saved_prompts
from palaver.storage.engines.base import Read, Write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.domain.saved_prompt import SavedPrompt
    from palaver.storage.engines.base import Work


class SavedPromptOperations(ViewPart[R]):
    """The principal's own saved prompts. An owner who sees everything still sees only their own."""

    @operation
    def list(self) -> Work[Sequence[SavedPrompt]]:
        """List the saved prompts by name."""
        return Read(lambda tx: saved_prompts.list_prompts(tx, self._scope.person_id))

    @operation
    def create(self, name: str, text: str) -> Work[SavedPrompt]:
        now = self._scope.now()
        return Write(lambda tx: saved_prompts.create(tx, self._scope.person_id, name, text, now))

    @operation
    def update(self, prompt_id: str, *, name: str | None = None, text: str | None = None) -> Work[SavedPrompt]:
        """Change the name or the text of a saved prompt."""
        now = self._scope.now()
        return Write(lambda tx: saved_prompts.update(tx, self._scope.person_id, prompt_id, name, text, now))

    @operation
    def delete(self, prompt_id: str) -> Work[SavedPrompt]:
        return Write(lambda tx: saved_prompts.delete(tx, self._scope.person_id, prompt_id))
