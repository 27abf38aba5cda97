"""Exported HTML in a real browser: hostile text is shown, nothing of it runs, and no request leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver import SessionSource
from palaver.sessions.export import DocumentFormat
from palaver.transfer.documents import Documents

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.async_api import Browser, BrowserContext

    from palaver import SessionStore

HOSTILE = """<script>window.ran = 1</script><img src=x onerror="window.ran=1"><svg onload="window.ran=1"></svg>
<iframe srcdoc="<script>parent.ran=1</script>"></iframe><style>body{background:url(https://evil.example/css)}</style>
<link rel=stylesheet href=https://evil.example/a.css><meta http-equiv=refresh content="0;url=https://evil.example/">
![pixel](https://evil.example/pixel.png) [click](javascript:window.ran=1) <base href="https://evil.example/">

```html
</code></pre><script>window.ran = 1</script>
```
"""


def watch(context: BrowserContext) -> tuple[list[str], list[str]]:
    """Return what the pages of a context will request, and what they will complain about."""
    requests: list[str] = []
    problems: list[str] = []
    context.on("request", lambda request: requests.append(request.url))
    context.on("console", lambda line: problems.append(line.text))
    context.on("weberror", lambda error: problems.append(str(error.error)))
    return requests, problems


async def test_nothing_in_an_exported_conversation_runs_or_loads_anything(
    browser: Browser, sqlite_store: SessionStore, tmp_path: Path
) -> None:
    source = SessionSource("telegram", "eve", user_id="eve", user_name=f"Eve {HOSTILE}")
    session_id = sqlite_store.record_user_message(source, HOSTILE).session_id
    calls = [{"name": HOSTILE, "arguments": HOSTILE}]
    sqlite_store.append_to_transcript(
        session_id,
        [
            {"role": "assistant", "content": f"{HOSTILE}\n\n**the end**", "reasoning": HOSTILE, "tool_calls": calls},
            {"role": "tool", "content": HOSTILE, "tool_name": HOSTILE},
        ],
    )
    principal = sqlite_store.get_or_create_person(source).principal
    document = tmp_path / "export.html"
    pieces = Documents(sqlite_store, None).iterate(principal, session_id, DocumentFormat.HTML)
    document.write_text("".join(pieces), encoding="utf-8")
    for is_dark in (False, True):
        context = await browser.new_context(
            color_scheme="dark" if is_dark else "light", viewport={"width": 360, "height": 640}
        )
        requests, problems = watch(context)
        page = await context.new_page()
        await page.goto(document.as_uri())
        for folded in await page.locator("summary").all():
            await folded.click()
        await page.locator("a", has_text="pixel").first.wait_for()
        assert await page.evaluate("window.ran") is None
        assert await page.locator("article strong").inner_text() == "the end"
        assert "<script>window.ran = 1</script>" in await page.locator("article.user").inner_text()
        assert await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")  # it fits a phone
        background = await page.evaluate("getComputedStyle(document.querySelector('article.user')).borderRadius")
        assert background == "12px"  # the policy lets the stylesheet apply
        assert requests == [document.as_uri()]
        assert problems == []
        assert page.url == document.as_uri()
        await context.close()
