"""The page in a browser: what the first load asks for, and how quick it is with few and with many conversations.

    python -m benchmarks.page [--sessions 10,10000] [--messages 10000] [--rounds 5] [--words 180000]

A real `palaver serve` in a process of its own, on a store that was filled through `SessionStore`, and the machine's own
Chromium. `--words` is what an agent says in an hour at fifty words a second; here it comes within a minute or two. Prints a
Markdown table, beside what was measured of hermes-webui.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.corpus import text
from benchmarks.measure import quantile
from benchmarks.served import browsing, database_of, served
from palaver import SessionSource, SessionStore
from palaver.services.accounts.accounts import Accounts
from palaver.testing import FakeClock

if TYPE_CHECKING:
    from playwright.sync_api import Browser, CDPSession, Page, StorageState

TOGETHER = 200  # conversations written at once
LONG = "The long one"
FLOW = "The flowing one"
WORDS_EACH = 3_000  # in one answer
PATIENCE = 600_000  # milliseconds
SCREEN = {"width": 1280, "height": 820}

# When the page can be used: there is a place to write, and the list beside it is drawn.
_READY = """
const look = () => {
  const isThere = document.querySelector('#composer') && document.querySelector('.session');
  if (isThere) requestAnimationFrame(() => setTimeout(() => { window.readyAt = performance.now(); }));
  else requestAnimationFrame(look);
};
requestAnimationFrame(look);
"""

# From a press of a key to the frame that shows it.
_KEYS = """
window.keys = [];
addEventListener('keydown', event => {
  const pressed = event.timeStamp;
  requestAnimationFrame(() => {
    const painted = new MessageChannel();
    painted.port1.onmessage = () => window.keys.push(performance.now() - pressed);
    painted.port2.postMessage(0);
  });
}, true);
"""

# From a press on a link to the frame that shows the end of what it leads to.
_OPENED = """([id, said]) => new Promise(then => {
  const began = performance.now();
  document.querySelector(`.session a[href$="${id}"]`).click();
  const look = () => {
    const shown = [...document.querySelectorAll('.row')].some(row => row.textContent.includes(said));
    if (shown) requestAnimationFrame(() => setTimeout(() => then(performance.now() - began)));
    else requestAnimationFrame(look);
  };
  look();
})"""


@dataclass
class Found:
    """What was measured with one store."""

    requests: int = 0
    bytes: int = 0
    script_bytes: int = 0
    ready: list[float] = field(default_factory=list)
    again: list[float] = field(default_factory=list)  # with everything in the browser's cache
    opened: list[float] = field(default_factory=list)
    keys: list[float] = field(default_factory=list)
    heap: float = 0
    heap_after: float = 0
    nodes_after: int = 0


# ---- the store -------------------------------------------------------------------------------------------


async def fill(home: Path, sessions: int, messages: int) -> tuple[str, str]:
    """Conversations of the owner on the web; the ids of the long one and of the one that will flow."""
    now = datetime.now(UTC)
    clock = FakeClock(now - timedelta(days=30))
    with SessionStore.open(database_of(home), clock=clock) as store:
        await Accounts(store).owner_link()  # from now on the owner has an account on the web
        owner = await store.aio.owner()

        async def talk(number: int) -> str:
            source = SessionSource("web", f"chat-{number}", user_id=owner.id, user_name=owner.name)
            said = await store.aio.record_user_message(source, text(number))
            await store.aio.append_to_transcript(said.session_id, {"role": "assistant", "content": text(number + 1)})
            return said.session_id

        for first in range(0, sessions, TOGETHER):
            clock.set(now - timedelta(days=30) * (1 - first / sessions))
            await asyncio.gather(*(talk(number) for number in range(first, min(first + TOGETHER, sessions))))
        clock.set(now)
        long, flow = await talk(sessions), await talk(sessions + 1)
        await store.aio.rename_session(long, LONG)
        await store.aio.rename_session(flow, FLOW)
        roles = ("user", "assistant")
        said = [{"role": roles[number % 2], "content": f"{text(number)} ({number})"} for number in range(messages)]
        await store.aio.rewrite_transcript(long, said)
        return long, flow


# ---- in the browser --------------------------------------------------------------------------------------


def sign_in(browser: Browser, link: str) -> StorageState:
    context = browser.new_context()
    page = context.new_page()
    page.goto(link)
    page.locator("main.main h1").wait_for()
    kept = context.storage_state()
    context.close()
    return kept


def first_load(browser: Browser, url: str, who: StorageState, found: Found) -> None:
    """Load the page as somebody does who has never been here, and then once more."""
    # Without the service worker, whose requests no page sees: it asks for itself and the document, and no more.
    context = browser.new_context(storage_state=who, viewport=SCREEN, service_workers="block")
    context.add_init_script(_READY)
    page = context.new_page()
    asked: list[str] = []
    sizes: dict[str, int] = {}
    scripts: set[str] = set()
    line = context.new_cdp_session(page)
    line.on("Network.requestWillBeSent", lambda event: asked.append(event["request"]["url"]))
    line.on("Network.responseReceived", lambda event: event["type"] == "Script" and scripts.add(event["requestId"]))
    line.on("Network.loadingFinished", lambda event: sizes.update({event["requestId"]: event["encodedDataLength"]}))
    line.send("Network.enable")
    found.ready.append(_ready(page, url))
    page.wait_for_load_state("load")
    page.wait_for_timeout(1000)  # what is fetched ahead counts too
    found.requests = len(asked)
    found.bytes = sum(sizes.values())
    found.script_bytes = sum(size for request, size in sizes.items() if request in scripts)
    found.again.append(_ready(page, url))
    context.close()


def _ready(page: Page, url: str) -> float:
    page.goto(f"{url}/")
    page.wait_for_function("() => window.readyAt", timeout=PATIENCE)
    at: float = page.evaluate("window.readyAt")
    return at


def open_long(browser: Browser, url: str, who: StorageState, long: str, last: str, found: Found) -> None:
    """Go from the start page to the end of the longest conversation."""
    context = browser.new_context(storage_state=who, viewport=SCREEN)
    page = context.new_page()
    page.goto(f"{url}/")
    page.locator(f'.session a[href$="{long}"]').wait_for()
    page.wait_for_timeout(300)
    found.opened.append(page.evaluate(_OPENED, [long, last]))
    context.close()


def stream(browser: Browser, url: str, who: StorageState, flow: str, words: int, found: Found) -> None:
    """Write while an answer streams, and look at the heap before and after an hour's worth of words."""
    context = browser.new_context(storage_state=who, viewport=SCREEN)
    context.add_init_script(_KEYS)
    page = context.new_page()
    line = context.new_cdp_session(page)
    page.goto(f"{url}/{flow}")
    page.locator(".answer").last.wait_for()
    found.heap = _heap(line)

    _say(page, f"say {WORDS_EACH} words at 200")
    page.locator(".answer[aria-busy=true] table").first.wait_for(timeout=PATIENCE)
    page.locator("#composer").press_sequentially("Meanwhile somebody writes on, as people do. " * 3, delay=40)
    found.keys = page.evaluate("window.keys")[5:]  # not those that sent the message
    page.locator("#composer").fill("")

    for _ in range(max(1, words // WORDS_EACH)):
        _answered(page)
        _say(page, f"say {WORDS_EACH} words at 20000")
    _answered(page)
    found.heap_after = _heap(line)
    found.nodes_after = page.evaluate("document.querySelectorAll('*').length")
    context.close()


def _say(page: Page, what: str) -> None:
    page.locator("#composer").fill(what)
    page.locator("#composer").press("Enter")
    page.locator(".answer[aria-busy=true]").wait_for(timeout=PATIENCE)


def _answered(page: Page) -> None:
    page.locator(".answer[aria-busy=true]").wait_for(state="detached", timeout=PATIENCE)


def _heap(line: CDPSession) -> float:
    """Megabytes of JavaScript that are still in use."""
    line.send("HeapProfiler.collectGarbage")
    used: dict[str, Any] = line.send("Runtime.getHeapUsage")
    return float(used["usedSize"]) / 1e6


# ---- the table -------------------------------------------------------------------------------------------


def measure(sessions: int, messages: int, rounds: int, words: int) -> Found:
    found = Found()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        long, flow = asyncio.run(fill(home, sessions, messages))
        with served(home, "benchmarks.flowing") as (url, link), browsing() as browser:
            who = sign_in(browser, link)
            for _ in range(rounds):
                first_load(browser, url, who, found)
                open_long(browser, url, who, long, f"({messages - 1})", found)
            stream(browser, url, who, flow, words, found)
    return found


def report(by_size: dict[int, Found], messages: int, words: int) -> str:
    def middle(values: list[float]) -> str:
        return f"{statistics.median(values):.0f} ms"

    lines: list[tuple[str, Any, str]] = [
        ("requests of the first load", lambda each: each.requests, "44"),
        ("bytes of the first load", lambda each: f"{each.bytes / 1e3:.0f} KB packed", "4.3 MB, not packed"),
        ("of them JavaScript", lambda each: f"{each.script_bytes / 1e3:.0f} KB packed", ""),
        ("until it can be used, nothing cached", lambda each: middle(each.ready), ""),
        ("until it can be used, the second time", lambda each: middle(each.again), ""),
        (f"opening a conversation of {messages:,} messages", lambda each: middle(each.opened), ""),
        (
            "key to frame while an answer streams, p50 / p95",
            lambda each: f"{quantile(each.keys, 0.5):.0f} / {quantile(each.keys, 0.95):.0f} ms",
            "",
        ),
        ("JavaScript heap, a conversation just opened", lambda each: f"{each.heap:.1f} MB", ""),
        (f"JavaScript heap after {words:,} streamed words", lambda each: f"{each.heap_after:.1f} MB", ""),
        ("elements on the page then", lambda each: f"{each.nodes_after:,}", ""),
    ]
    heads = ["", *(f"{size:,} sessions" for size in by_size), "hermes-webui"]
    rows = [[name, *(str(show(found)) for found in by_size.values()), peer] for name, show, peer in lines]
    cells = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page")
    parser.add_argument("--sessions", default="10,10000", help="how many conversations there are, several by commas")
    parser.add_argument("--messages", type=int, default=10_000, help="in the longest conversation")
    parser.add_argument("--rounds", type=int, default=5, help="loads; the middle one counts")
    parser.add_argument("--words", type=int, default=180_000, help="streamed before the heap is looked at again")
    given = parser.parse_args()
    sizes = [int(size) for size in given.sessions.split(",")]
    by_size = {size: measure(size, given.messages, given.rounds, given.words) for size in sizes}
    print(report(by_size, given.messages, given.words))


if __name__ == "__main__":
    main()
