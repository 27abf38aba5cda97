"""A person's saved prompts: `view.part(SavedPromptOperations)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.core.operation import R, read_operation, write_operation
from palaver.prompts import table as saved_prompts
from palaver.sessions.view.scope import ViewPart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.core.engines.base import Transaction
    from palaver.prompts.model import SavedPrompt


class SavedPromptOperations(ViewPart[R]):
    """The principal's own saved prompts. An owner who sees everything still sees only their own."""

    @read_operation
    def list(self, tx: Transaction) -> Sequence[SavedPrompt]:
        return saved_prompts.list_prompts(tx, self._scope.person_id)

    @write_operation
    def create(self, tx: Transaction, name: str, text: str, /, **others: str | None) -> SavedPrompt:
        given = {"name": name, "text": text, **others}
        return saved_prompts.create(tx, self._scope.person_id, given, self._scope.now())

    @write_operation
    def update(self, tx: Transaction, prompt_id: str, /, **given: str | None) -> SavedPrompt:
        return saved_prompts.update(tx, self._scope.person_id, prompt_id, given, self._scope.now())

    @write_operation
    def delete(self, tx: Transaction, prompt_id: str) -> SavedPrompt:
        return saved_prompts.delete(tx, self._scope.person_id, prompt_id)
