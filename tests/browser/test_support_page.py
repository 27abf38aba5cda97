"""The examples of `tests/support/README.md`, run as they stand there: how a test gets what it needs."""

from __future__ import annotations

import re
from pathlib import Path

import httpx2
from playwright.async_api import expect

from browser.conftest import Visitors, send_message
from palaver import SessionSource, SessionStore
from palaver.testing import FakeClock, ScriptedAgent
from support.process import find_free_port, run_server
from support.warm_process import WarmLauncher
from support.web import StartWebServer

PAGE = Path(__file__).parents[1] / "support" / "README.md"
# What the examples use.
__all__ = ["FakeClock", "ScriptedAgent", "SessionSource", "SessionStore", "StartWebServer", "Visitors", "WarmLauncher"]
__all__ += ["expect", "find_free_port", "httpx2", "run_server", "send_message"]

for example in re.findall(r"```py\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
    exec(compile(example, str(PAGE), "exec"))
