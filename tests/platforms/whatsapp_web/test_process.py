"""The child process as its parent sees it."""

from __future__ import annotations

import asyncio
import sys

import pytest

from palaver.platforms.whatsapp_web.process import ChildProcess
from palaver.platforms.whatsapp_web.protocol import ErrorKind, RequestError


async def test_a_child_whose_pipe_is_broken_has_ended_before_its_exit_is_noticed() -> None:
    """Otherwise a message whose file is asked for at that moment would be stored without its file."""
    child = await ChildProcess.start(["sleep", "60"])
    try:
        assert child.is_running
        stdin = child._process.stdin
        assert stdin is not None
        stdin.transport.abort()
        assert (child.is_running, child._process.returncode) == (False, None)
        with pytest.raises(RequestError) as refused:
            await child.request("download", seconds=5)
        assert refused.value.kind is ErrorKind.NOT_SENT
    finally:
        child._kill()
        async with asyncio.timeout(20):
            await child.close()


SIGNAL_TO_ANOTHER_THREAD = """
import signal, sys, threading, time
from palaver.platforms.whatsapp_web.child import end_with_parent

def end():
    time.sleep(0.3)  # the main thread waits for a line then
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

end_with_parent()
threading.Thread(target=end).start()
sys.stdin.read()
"""


async def test_a_signal_that_a_thread_of_the_library_gets_ends_the_process() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SIGNAL_TO_ANOTHER_THREAD, stdin=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(30):
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
