"""Conversations: keys, lanes, the reset policy, the log with its versions, search, turns, usage, shares, and the store.

Always true: the log of a session is only appended to; what an undo, an edit or another version hides stays in it.
`store.py` trusts its caller; whatever answers a person goes through a view (`view/`), for which a session of somebody
else and one that does not exist are the same. Both share one description of each verb and differ in their scope. SQL is
in the modules named `*_table`, `*_queries`, `*_leases`, `*_edits` and `hidden_ranges`; rows are read by the names of
their columns. The JSON of a noun is written and read by the noun itself (`wire.py`).
"""
