"""The way in for every message, command and update: platforms, the terminal, the web page and the API all call `Inbox`.

`Inbox.accept` takes a message or what a platform reports besides (`sessions/inbound.py`). In one transaction
it finds out who sends it, whether it came before and which session it belongs to, applies the reset policy, stores it
and queues the turn that answers it. How far an account has read on its platform is stored in that transaction, too.
When it returns, all of that is durable and the platform may be told. If the process dies earlier, nothing has happened,
and the platform sends the message again.

A slash command takes the same path, whether it comes as text, as a pressed button or, through `run_command`, as a call
with typed arguments: its changes, its reply and the record of its message are one transaction. A command that only
reads runs in a read transaction, so that a long one delays no message; a short write then stores the record and the
reply (decision 9).
"""

from palaver.inbox.inbox import Inbox as Inbox
from palaver.inbox.receipts import check_content as check_content
from palaver.sessions.message import MAX_MESSAGE_CHARS as MAX_MESSAGE_CHARS
