"""What e-mail can do."""

from __future__ import annotations

from palaver.delivery.capabilities import Capabilities

MAX_FILE_BYTES = 18_000_000  # most servers take mails of 25 MB, and a file grows by a third in a mail

CAPABILITIES = Capabilities(
    max_file_bytes=MAX_FILE_BYTES,
    has_threads=True,
    has_groups=True,
    receives_files=True,
)
