"""Imports conversations of other programs: each becomes a session with its log, counters, title, usage and lane.

A conversation that came in before is recognized by its id there. If it has grown there, and was not continued here,
its new messages are appended; if it was deleted here, it does not come back. A long one is written by several
transactions, which no list shows before the last. After a crash, the next run goes on where the last one stopped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.core.engines.base import Read
from palaver.transfer import import_rows, imports_table as imports
from palaver.transfer.conversation_end import describe_conversation
from palaver.transfer.conversation_place import PlaceFinder
from palaver.transfer.conversation_writer import ConversationWriter

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction
    from palaver.transfer.import_request import ImportRun
    from palaver.transfer.imported import ImportedConversation
    from palaver.transfer.imports_table import ImportedItem, ItemKey
    from palaver.transfer.write_queue import WriteQueue


class ConversationImporter:
    """Imports the conversations of one run."""

    def __init__(self, run: ImportRun, queue: WriteQueue) -> None:
        self._run = run
        self._queue = queue
        self._places = PlaceFinder(run)

    def add(self, conversation: ImportedConversation) -> None:
        run = self._run
        key = self._make_key(conversation)
        item, session_no = run.store.engine.run(Read(lambda tx: _find_known(tx, key)))
        if item is not None and session_no is None and item.is_done:
            run.report.count("deleted")
            return
        for line in conversation.folded:
            run.report.folded.add(f"{describe_conversation(conversation)}: {line}")
        writer = ConversationWriter(run, self._queue, self._places, conversation, key)
        if item is None:
            writer.write_new()
        elif item.is_done:
            writer.write_growth(item, session_no or 0)
        else:
            writer.resume(item, session_no)

    def _make_key(self, conversation: ImportedConversation) -> ItemKey:
        owner = self._run.get_owner(has_source=conversation.source is not None)
        return imports.make_key(self._run.reader.format, "conversation", owner, conversation.origin_id)


def _find_known(tx: Transaction, key: ItemKey) -> tuple[ImportedItem | None, int | None]:
    item = imports.find(tx, key)
    if item is None or item.session_id is None:
        return item, None
    return item, import_rows.find_value(tx, "session", "no", {"id": item.session_id})
