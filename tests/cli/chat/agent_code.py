"""Python code that starts `palaver` with a changed demo agent, for tests that run it as a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import timedelta

QUICK_AGENT_CODE = """
from palaver.drivers.demo import DemoAgent
DemoAgent.__init__.__kwdefaults__["word_delay"] = 0.001
from palaver.cli import main
main()
"""
# Every answer pauses after its first words until there is a file `continue` in the home folder. A process that is told
# to stop hardly waits for it. Two presses of Ctrl-C are a double press unless there is a file `later` between them.
PAUSED_AGENT_CODE = """
import asyncio
import os
import time
from pathlib import Path
from types import SimpleNamespace
from palaver.drivers.demo import DemoAgent
from palaver.cli.chat import chat_runner, feed_presenter

home = Path(os.environ["PALAVER_HOME"])
DemoAgent.__init__.__kwdefaults__["word_delay"] = 0.001
yield_words = DemoAgent._yield_words

async def yield_first_words(self, text):
    count = 0
    async for word in yield_words(self, text):
        while count == 5 and not (home / "continue").exists():
            await asyncio.sleep(0.02)
        yield word
        count += 1

DemoAgent._yield_words = yield_first_words
chat_runner.SHUTDOWN_GRACE_SECONDS = 0.1
feed_presenter.DOUBLE_PRESS_SECONDS = 60
feed_presenter.time = SimpleNamespace(monotonic=lambda: time.monotonic() + 3600 * (home / "later").exists())
from palaver.cli import main
main()
"""
FAILING_AGENT_CODE = """
from palaver.agent.base import TextDelta
from palaver.drivers.demo import DemoAgent
from palaver.core.errors import AgentRejected

async def run(self, request):
    yield TextDelta("It begins")
    raise AgentRejected("The key is not accepted.")

DemoAgent.run = run
from palaver.cli import main
main()
"""
PROVIDER_AGENT_CODE = """
from palaver.drivers import demo
make_usage = demo.make_free_usage  # as providers report it: the model without the provider
demo.make_free_usage = lambda model, provider, *tokens: make_usage("fast", "workshop", *tokens)
demo.DemoAgent.model = property(lambda self: "workshop:fast", lambda self, _: None)  # as the settings name it
from palaver.cli import main
main()
"""
WARNING_AGENT_CODE = """
import logging
from palaver.drivers.demo import DemoAgent
check_model = DemoAgent.check_model

def warn(self, name):
    logging.getLogger("palaver.test").info("not_shown")
    logging.getLogger("palaver.test").warning("cellar_flooded", extra={"depth": "1 m"})
    check_model(self, name)

DemoAgent.check_model = warn
from palaver.cli import main
main()
"""


def make_later_code(delay: timedelta) -> str:
    """Make code that starts `palaver` with a clock that is ahead."""
    return f"""
import time
from datetime import UTC, datetime, timedelta
from palaver.core.clock import SystemClock

real_time = time.time
time.time = lambda: real_time() + {delay.total_seconds()}
SystemClock.now = lambda self: datetime.now(UTC) + timedelta(seconds={delay.total_seconds()})
{QUICK_AGENT_CODE}
"""
