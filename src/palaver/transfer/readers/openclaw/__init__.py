"""Reading OpenClaw: its state folder, such as `~/.openclaw`."""

from palaver.transfer.readers.openclaw.reader import open_reader

__all__ = ["open_reader"]
