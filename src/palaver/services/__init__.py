"""Verbs: what can be done with conversations. Each class owns one family and gets its collaborators ready-made."""
