"""Measures the page in a browser: its first load, opening a long conversation, typing while an answer streams, and the
time from Enter to the first word.

    python -m benchmarks.page [--sessions 10,10000] [--messages 10000] [--rounds 5] [--words 180000] [--turns 120]
    python -m benchmarks.page --only-turns

Starts a real `palaver serve` on a store filled through `SessionStore`, and the Chromium of this machine. The default of
`--words` is what an agent writes in an hour at 50 words per second; the benchmark streams it within a minute or two. Prints
a Markdown table with the figures of hermes-webui in the last column, and one of the turns. Their model is a server on this
machine with OpenAI's streaming API, so that the time between the model's first byte and the painted word is the time of
Palaver, the page and the browser. A browser paints 60 frames a second: a word waits up to 17 ms for the next one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.corpus import make_text
from benchmarks.measure import quantile
from benchmarks.palaver_server import build_database_url, open_browser, start_server
from benchmarks.paths import REPOSITORY_DIR
from palaver import SessionSource, SessionStore
from palaver.accounts.accounts import Accounts
from palaver.testing import FakeClock

if TYPE_CHECKING:
    from playwright.sync_api import Browser, CDPSession, Page, StorageState

    from drivers.openai_server import Exchange

SEED_BATCH = 200  # sessions written at once
LONG_TITLE = "The long one"
STREAM_TITLE = "The streaming one"
WORDS_PER_ANSWER = 3_000
TIMEOUT_MS = 600_000
MODEL_DELAY_SECONDS = 0.05  # until its first word
WARM_UP_TURNS = 5
TURNS_PER_CONVERSATION = 20
SCREEN = {"width": 1280, "height": 820}

# Records when the page is usable: the message box and the list of sessions are shown.
_READY_SCRIPT = """
const check = () => {
  const isReady = document.querySelector('#composer') && document.querySelector('.session');
  if (isReady) requestAnimationFrame(() => setTimeout(() => { window.readyAt = performance.now(); }));
  else requestAnimationFrame(check);
};
requestAnimationFrame(check);
"""

# Records the time from each key press to the frame that shows it.
_KEYS_SCRIPT = """
window.keys = [];
addEventListener('keydown', event => {
  const pressedAt = event.timeStamp;
  requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => window.keys.push(performance.now() - pressedAt);
    channel.port2.postMessage(0);
  });
}, true);
"""

# Clicks the link of a session and returns the time until a frame shows the session's last message.
_OPEN_SCRIPT = """([id, lastText]) => new Promise(resolve => {
  const start = performance.now();
  document.querySelector(`.session a[href$="${id}"]`).click();
  const check = () => {
    const isShown = [...document.querySelectorAll('.row')].some(row => row.textContent.includes(lastText));
    if (isShown) requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - start)));
    else requestAnimationFrame(check);
  };
  check();
})"""


# Records the moments of a turn: Enter, the request and its response, the first piece of the answer on the live stream, and
# the frame in which the browser has painted it.
_TURN_SCRIPT = """
window.turn = {};
addEventListener('keydown', event => { if (event.key === 'Enter') window.turn = { enter: event.timeStamp }; }, true);

const send = window.fetch;
window.fetch = async (input, options) => {
  const isMessage = options?.method === 'POST' && /messages$/.test(String(input));
  if (isMessage) window.turn.sent = performance.now();
  const response = await send(input, options);
  if (isMessage) window.turn.accepted = performance.now();
  return response;
};

const read = ReadableStreamDefaultReader.prototype.read;
ReadableStreamDefaultReader.prototype.read = async function () {
  const result = await read.call(this);
  if (typeof result.value === 'string' && result.value.includes('event: draft')) window.turn.arrived ??= performance.now();
  return result;
};

// A change that is made within a frame is painted at the end of it, any other one at the end of the next.
let isInFrame = false;
const afterFrame = act => {
  const channel = new MessageChannel();
  channel.port1.onmessage = act;
  channel.port2.postMessage(0);
};
const requestFrame = window.requestAnimationFrame;
window.requestAnimationFrame = act => requestFrame(time => {
  isInFrame = true;
  afterFrame(() => { isInFrame = false; });
  act(time);
});
new MutationObserver(() => {
  if (window.turn.enter === undefined || window.turn.rendered !== undefined) return;
  const answers = [...document.querySelectorAll('.answer[aria-busy=true]')];
  if (!answers.some(answer => answer.textContent.includes('first-word'))) return;
  const recordPaint = () => afterFrame(() => { window.turn.painted = performance.now(); });
  window.turn.rendered = performance.now();
  if (isInFrame) recordPaint();
  else requestFrame(recordPaint);
}).observe(document, { childList: true, subtree: true, characterData: true });
"""


@dataclass
class TurnMoments:
    """The moments of one turn, in milliseconds of the page's clock."""

    enter: float
    sent: float
    accepted: float
    model: float  # its first byte
    arrived: float
    rendered: float
    painted: float


@dataclass
class PageResults:
    """The measurements on one store."""

    requests: int = 0
    bytes: int = 0
    script_bytes: int = 0
    ready_ms: list[float] = field(default_factory=list)
    cached_ready_ms: list[float] = field(default_factory=list)  # with a full browser cache
    open_ms: list[float] = field(default_factory=list)
    key_ms: list[float] = field(default_factory=list)
    heap_mb: float = 0
    heap_after_mb: float = 0
    nodes_after: int = 0


# ---- the store -------------------------------------------------------------------------------------------


async def fill_store(home: Path, sessions: int, messages: int) -> tuple[str, str]:
    """Write web sessions of the owner. Returns the ids of the long session and of the one that answers stream into."""
    now = datetime.now(UTC)
    clock = FakeClock(now - timedelta(days=30))
    with SessionStore.open(build_database_url(home), clock=clock) as store:
        await Accounts(store).create_owner_link()  # gives the owner an account on the web
        owner = await store.aio.get_owner()

        async def write_session(number: int) -> str:
            source = SessionSource("web", f"chat-{number}", user_id=owner.id, user_name=owner.name)
            recorded = await store.aio.record_user_message(source, make_text(number))
            await store.aio.append_to_transcript(
                recorded.session_id, {"role": "assistant", "content": make_text(number + 1)}
            )
            return recorded.session_id

        for first in range(0, sessions, SEED_BATCH):
            clock.set(now - timedelta(days=30) * (1 - first / sessions))
            await asyncio.gather(*(write_session(number) for number in range(first, min(first + SEED_BATCH, sessions))))
        clock.set(now)
        long_id, stream_id = await write_session(sessions), await write_session(sessions + 1)
        await store.aio.rename_session(long_id, LONG_TITLE)
        await store.aio.rename_session(stream_id, STREAM_TITLE)
        roles = ("user", "assistant")
        history = [
            {"role": roles[number % 2], "content": f"{make_text(number)} ({number})"} for number in range(messages)
        ]
        await store.aio.rewrite_transcript(long_id, history)
        return long_id, stream_id


# ---- in the browser --------------------------------------------------------------------------------------


def sign_in(browser: Browser, link: str) -> StorageState:
    context = browser.new_context()
    page = context.new_page()
    page.goto(link)
    page.get_by_role("button", name="Skip for now").click()
    page.locator("main.main h1").wait_for()
    state = context.storage_state()
    context.close()
    return state


def measure_first_load(browser: Browser, url: str, signed_in: StorageState, results: PageResults) -> None:
    """Load the page with an empty cache, and then once more with a full one."""
    # Without the service worker: the page's session does not see its requests (only itself and the document).
    context = browser.new_context(storage_state=signed_in, viewport=SCREEN, service_workers="block")
    context.add_init_script(_READY_SCRIPT)
    page = context.new_page()
    urls: list[str] = []
    sizes: dict[str, int] = {}
    scripts: set[str] = set()
    devtools = context.new_cdp_session(page)
    devtools.on("Network.requestWillBeSent", lambda event: urls.append(event["request"]["url"]))
    devtools.on("Network.responseReceived", lambda event: event["type"] == "Script" and scripts.add(event["requestId"]))
    devtools.on("Network.loadingFinished", lambda event: sizes.update({event["requestId"]: event["encodedDataLength"]}))
    devtools.send("Network.enable")
    results.ready_ms.append(_load_page(page, url))
    page.wait_for_load_state("load")
    page.wait_for_timeout(1000)  # prefetched files count too
    results.requests = len(urls)
    results.bytes = sum(sizes.values())
    results.script_bytes = sum(size for request, size in sizes.items() if request in scripts)
    results.cached_ready_ms.append(_load_page(page, url))
    context.close()


def _load_page(page: Page, url: str) -> float:
    page.goto(f"{url}/")
    page.wait_for_function("() => window.readyAt", timeout=TIMEOUT_MS)
    ready_at: float = page.evaluate("window.readyAt")
    return ready_at


def measure_open(
    browser: Browser, url: str, signed_in: StorageState, long_id: str, last_text: str, results: PageResults
) -> None:
    """Open the long conversation from the home page."""
    context = browser.new_context(storage_state=signed_in, viewport=SCREEN)
    page = context.new_page()
    page.goto(f"{url}/")
    page.locator(f'.session a[href$="{long_id}"]').wait_for()
    page.wait_for_timeout(300)
    results.open_ms.append(page.evaluate(_OPEN_SCRIPT, [long_id, last_text]))
    context.close()


def measure_streaming(
    browser: Browser, url: str, signed_in: StorageState, stream_id: str, words: int, results: PageResults
) -> None:
    """Type while an answer streams, and measure the heap before and after all streamed words."""
    context = browser.new_context(storage_state=signed_in, viewport=SCREEN)
    context.add_init_script(_KEYS_SCRIPT)
    page = context.new_page()
    devtools = context.new_cdp_session(page)
    page.goto(f"{url}/{stream_id}")
    page.locator(".answer").last.wait_for()
    results.heap_mb = _read_heap_mb(devtools)

    _send_message(page, f"say {WORDS_PER_ANSWER} words at 200")
    page.locator(".answer[aria-busy=true] table").first.wait_for(timeout=TIMEOUT_MS)
    page.locator("#composer").press_sequentially("Meanwhile a person types, as people often do. " * 3, delay=40)
    results.key_ms = page.evaluate("window.keys")[5:]  # without the keys that sent the message
    page.locator("#composer").fill("")

    for _ in range(max(1, words // WORDS_PER_ANSWER)):
        _wait_for_answer(page)
        _send_message(page, f"say {WORDS_PER_ANSWER} words at 20000")
    _wait_for_answer(page)
    results.heap_after_mb = _read_heap_mb(devtools)
    results.nodes_after = page.evaluate("document.querySelectorAll('*').length")
    context.close()


class WordServer:
    """A model on loopback that knows when it has sent the first word of each answer."""

    def __init__(self) -> None:
        sys.path.insert(0, str(REPOSITORY_DIR / "tests"))
        from drivers.openai_server import OpenAIServer

        self.server = OpenAIServer()
        self.first_words: list[float] = []  # in seconds of the monotonic clock

    async def reply(self, to: Exchange) -> None:
        await to.start_stream()
        await asyncio.sleep(MODEL_DELAY_SECONDS)
        self.first_words.append(time.monotonic())
        await to.send_delta({"role": "assistant", "content": "The first-word "})
        for _ in range(10):
            await asyncio.sleep(0.02)
            await to.send_delta({"content": "and more "})
        await to.send_delta({}, "stop")
        await to.send_usage({"prompt_tokens": 10, "completion_tokens": 22, "total_tokens": 32})
        await to.send_done()


def measure_turns(count: int) -> list[TurnMoments]:
    """Send messages from the page, and follow each one to the first word of its answer."""
    words = WordServer()
    with tempfile.TemporaryDirectory() as folder, words.server as model:
        home = Path(folder)
        provider = {"base_url": model.url, "api_key": "sk-none"}
        rules = {"model": "lab:test-model", "providers": {"lab": provider}, "turns": {"model_titles": False}}
        (home / "config.yaml").write_text(json.dumps(rules))
        model.add_replies(*[words.reply] * (3 * count + 10))
        with start_server(home, model="lab:test-model") as (url, link), open_browser() as browser:
            context = browser.new_context(storage_state=sign_in(browser, link), viewport=SCREEN)
            context.add_init_script(_TURN_SCRIPT)
            page = context.new_page()
            turns = []
            for number in range(WARM_UP_TURNS + count):
                if number % TURNS_PER_CONVERSATION == 0:
                    page.goto(f"{url}/")
                    page.locator("#composer").wait_for()
                    offset = _compare_clocks(page)
                    page.locator("#composer").fill("the first question")  # not measured: it creates the conversation
                    page.locator("#composer").press("Enter")
                    page.locator(".answer .message-foot").wait_for(timeout=TIMEOUT_MS)
                turns.append(_measure_turn(page, words, offset))
            context.close()
    return turns[WARM_UP_TURNS:]


def _compare_clocks(page: Page) -> float:
    """Return what to add to the page's clock, in seconds, to get the monotonic clock of this process."""
    tries = []
    for _ in range(50):
        start = time.monotonic()
        page_seconds = page.evaluate("performance.now()") / 1e3
        end = time.monotonic()
        tries.append((end - start, (start + end) / 2 - page_seconds))
    return min(tries)[1]


def _measure_turn(page: Page, words: WordServer, offset: float) -> TurnMoments:
    words.first_words.clear()
    page.locator("#composer").fill("a question")
    page.locator("#composer").press("Enter")
    page.wait_for_function("() => window.turn.painted", timeout=TIMEOUT_MS)
    _wait_for_answer(page)
    moments = page.evaluate("window.turn")
    return TurnMoments(model=(words.first_words[0] - offset) * 1e3, **moments)


def _send_message(page: Page, text: str) -> None:
    page.locator("#composer").fill(text)
    page.locator("#composer").press("Enter")
    page.locator(".answer[aria-busy=true]").wait_for(timeout=TIMEOUT_MS)


def _wait_for_answer(page: Page) -> None:
    page.locator(".answer[aria-busy=true]").wait_for(state="detached", timeout=TIMEOUT_MS)


def _read_heap_mb(devtools: CDPSession) -> float:
    """Collect garbage and return the megabytes of JavaScript heap in use."""
    devtools.send("HeapProfiler.collectGarbage")
    usage: dict[str, Any] = devtools.send("Runtime.getHeapUsage")
    return float(usage["usedSize"]) / 1e6


# ---- the table -------------------------------------------------------------------------------------------


def measure(sessions: int, messages: int, rounds: int, words: int) -> PageResults:
    results = PageResults()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        long_id, stream_id = asyncio.run(fill_store(home, sessions, messages))
        with start_server(home, "benchmarks.streaming_server") as (url, link), open_browser() as browser:
            signed_in = sign_in(browser, link)
            for _ in range(rounds):
                measure_first_load(browser, url, signed_in, results)
                measure_open(browser, url, signed_in, long_id, f"({messages - 1})", results)
            measure_streaming(browser, url, signed_in, stream_id, words, results)
    return results


def format_report(by_size: dict[int, PageResults], messages: int, words: int) -> str:
    def format_median(values: list[float]) -> str:
        return f"{statistics.median(values):.0f} ms"

    rows: list[tuple[str, Any, str]] = [
        ("requests of the first load", lambda result: result.requests, "44"),
        ("bytes of the first load", lambda result: f"{result.bytes / 1e3:.0f} KB compressed", "4.3 MB, uncompressed"),
        ("of which JavaScript", lambda result: f"{result.script_bytes / 1e3:.0f} KB compressed", ""),
        ("usable after, empty cache", lambda result: format_median(result.ready_ms), ""),
        ("usable after, full cache", lambda result: format_median(result.cached_ready_ms), ""),
        (f"open a conversation of {messages:,} messages", lambda result: format_median(result.open_ms), ""),
        (
            "key to frame while an answer streams, p50 / p95",
            lambda result: f"{quantile(result.key_ms, 0.5):.0f} / {quantile(result.key_ms, 0.95):.0f} ms",
            "",
        ),
        ("JavaScript heap, conversation just opened", lambda result: f"{result.heap_mb:.1f} MB", ""),
        (f"JavaScript heap after {words:,} streamed words", lambda result: f"{result.heap_after_mb:.1f} MB", ""),
        ("elements on the page after that", lambda result: f"{result.nodes_after:,}", ""),
    ]
    header = ["", *(f"{size:,} sessions" for size in by_size), "hermes-webui"]
    body = [
        [name, *(str(format_cell(results)) for results in by_size.values()), peer] for name, format_cell, peer in rows
    ]
    cells = [header, ["---"] * len(header), *body]
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def format_turns(turns: list[TurnMoments]) -> str:
    rows = [
        ("Enter → request sent", "enter", "sent"),
        ("request sent → accepted", "sent", "accepted"),
        ("Enter → first byte of the model", "enter", "model"),
        ("first byte of the model → on the live stream", "model", "arrived"),
        ("on the live stream → rendered", "arrived", "rendered"),
        ("rendered → painted", "rendered", "painted"),
        ("**first byte of the model → painted**", "model", "painted"),
        ("Enter → first word painted", "enter", "painted"),
    ]
    lines = [f"| {len(turns)} turns | p50 | p99 |", "|---|---|---|"]
    for name, start, end in rows:
        times = [getattr(turn, end) - getattr(turn, start) for turn in turns]
        lines.append(f"| {name} | {quantile(times, 0.5):.1f} ms | {quantile(times, 0.99):.1f} ms |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page")
    parser.add_argument("--sessions", default="10,10000", help="numbers of sessions in the store, separated by commas")
    parser.add_argument("--messages", type=int, default=10_000, help="messages in the long conversation")
    parser.add_argument("--rounds", type=int, default=5, help="page loads; the median counts")
    parser.add_argument("--words", type=int, default=180_000, help="words streamed before the heap is measured again")
    parser.add_argument("--turns", type=int, default=120, help="turns from Enter to the first word")
    parser.add_argument("--only-turns", action="store_true")
    options = parser.parse_args()
    turns = format_turns(measure_turns(options.turns))
    if options.only_turns:
        print(turns)
        return
    sizes = [int(size) for size in options.sessions.split(",")]
    by_size = {size: measure(size, options.messages, options.rounds, options.words) for size in sizes}
    print(f"{format_report(by_size, options.messages, options.words)}\n\n{turns}")


if __name__ == "__main__":
    main()
