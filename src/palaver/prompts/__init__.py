"""Saved prompts: texts with placeholders that a person keeps to send them again.

Always true: a prompt belongs to one person, and an owner sees only their own; names are unique for each person, in any
case. `SavedPrompt` in `model.py` declares the fields: the table, the requests, `palaver prompts` and the export derive
from it.
"""
