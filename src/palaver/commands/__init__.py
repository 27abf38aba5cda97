"""Slash commands, the same on every surface: what one is, the registry that finds and parses them, the runner.

`CommandRegistry` turns a text into a call; `CommandRunner` runs a call in a transaction. Always true: a command acts on
a session only after it was checked for the person who asks, and one that only reads runs in a read transaction. The
commands themselves are in the rooms of their nouns, and the list of all of them in `inbox/registry.py`.
"""
