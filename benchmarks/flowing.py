"""`palaver serve` with an agent that says as much as it is asked for, as fast as it is asked to.

    python -m benchmarks.flowing serve …

"say 3000 words at 50" is answered with that many words of Markdown, so many of them in a second.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

from palaver.agent.base import TextDelta
from palaver.agent.demo import DemoAgent
from palaver.agent.tokens import text_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from palaver.agent.base import AgentEvent, AgentRequest

ASKED = re.compile(r"say (?P<words>\d+) words at (?P<pace>\d+)")
SAID = """\
Much can be said about the sea, and **most of it** has been said before, by people who knew it better. Here are three
things, in no order:

- it is never the same *twice*
- it has no `edges`
- nobody owns it

| what | how much |
|---|---|
| water | a lot |
| salt | enough |

```python
def tide(moon: float, sun: float) -> float:
    return moon + 0.46 * sun
```

"""


class Flowing(DemoAgent):
    """The demo agent, which can also talk for hours."""

    async def run(self, request: AgentRequest) -> AsyncIterator[AgentEvent]:
        """Say as many words as were asked for, at their pace."""
        asked = ASKED.search(text_of(request.messages[-1]) if request.messages else "")
        if asked is None:
            async for event in super().run(request):
                yield event
            return
        count, pace = int(asked["words"]), int(asked["pace"])
        words = re.findall(r"\S+\s*", SAID)
        together = max(1, pace // 100)  # a model does not say more than a hundred things in a second either
        for place in range(0, count, together):
            said = (words[number % len(words)] for number in range(place, min(place + together, count)))
            yield TextDelta("".join(said))
            await asyncio.sleep(together / pace)


def main() -> None:
    """Run the command line with this agent in place of the demo."""
    from palaver.agent import selection
    from palaver.cli import main as command_line

    selection.DemoAgent = Flowing  # type: ignore[misc]
    command_line()


if __name__ == "__main__":
    main()
