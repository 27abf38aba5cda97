"""Slash commands, defined once for every surface.

`parse_command` turns a text into a call; `CommandRunner` runs a call in a transaction. The inbox does both.
"""
