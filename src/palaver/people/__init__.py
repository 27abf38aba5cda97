"""People: persons with their accounts on platforms, roles and audiences, how they sign in, and who asks for access.

Owns the tables of people and the rules for names, passwords, tokens and commands. `person_data.py` has the types with
which every table of every room says what linking, unlinking, erasing, exporting and restoring do with a person's rows.
Always true: a person has one audience of their own; secrets are stored only as digests; a person who was linked to
another keeps their row, which points at the other.
"""
