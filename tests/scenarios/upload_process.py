"""A process in which a person uploads a file, confirms it and imports it: kills itself at a crash point.

Run as a script, with JSON as its only argument.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from palaver import SessionStore
from palaver.core.clock import SystemClock
from palaver.core.crash_points import set_crash_hook
from palaver.media.attachments import Attachments
from palaver.transfer import conversation_writer, report as write_queue
from palaver.transfer.importer import Importer
from palaver.transfer.personal_imports import PersonalImports
from palaver.transfer.uploads import ImportUploads
from support.exports import make_chatgpt_conversation, make_chatgpt_export

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from palaver.people.model import Principal

WAIT_SECONDS = 60


async def read_file() -> AsyncIterator[bytes]:
    yield make_chatgpt_export(
        *(make_chatgpt_conversation(number, f"question {number}", "answer", f"Trip {number}") for number in range(8))
    )


async def finish_import(imports: PersonalImports, principal: Principal) -> None:
    """Do what the person does: upload the file unless it is here, wait for the check, confirm it, wait for the end."""
    async with asyncio.timeout(WAIT_SECONDS):
        if not await imports.list(principal):
            await imports.upload(principal, "export.zip", read_file())
        while (found := (await imports.list(principal))[0].upload).state != "done":
            assert found.state != "failed", found.error
            if found.state == "ready":
                await imports.confirm(principal, found.id)
            await asyncio.sleep(0.005)


async def run(url: str, folder: str, crash_at: list[object] | None) -> dict[str, int]:
    """Start as a server does, then import; kill this process at the given passing of a crash point."""
    passed: list[str] = []

    def pass_crash_point(name: str) -> None:
        passed.append(name)
        if [name, passed.count(name)] == crash_at:
            os.kill(os.getpid(), signal.SIGKILL)

    for module, name in ((write_queue, "MAX_BATCH_ROWS"), (conversation_writer, "ROWS_PER_STEP")):
        assert hasattr(module, name)
        setattr(module, name, 3)
    set_crash_hook(pass_crash_point)
    with SessionStore.open(url) as store:
        uploads = ImportUploads(Path(folder) / "imports", SystemClock())
        importer = Importer(store, Attachments(store, Path(folder) / "attachments"))
        imports = PersonalImports(store, lambda: importer, uploads, lambda: 10_000_000)
        await imports.start()
        try:
            await finish_import(imports, store.get_owner().principal)
        finally:
            await imports.stop()
    return {name: passed.count(name) for name in set(passed)}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(run(**json.loads(sys.argv[1])))))  # noqa: T201
