"""Adapters: one package for each platform that people write from, and what all of them share in `common`.

A package has `manifest.py` (settings, capabilities, and how the adapter is created: it imports no SDK), `adapter.py`
(one account, as `delivery.adapter.Adapter` says), `client.py` (the only module that talks to the platform),
`inbound.py` and `outbound.py` (pure: the platform's form of a message ↔ ours) and, where an API refuses in its own
words, `failures.py`.

Always true: an adapter acknowledges an update only after it is stored, says honestly whether a message may have
arrived, and imports nothing of another platform. Third parties' adapters are found and tested in the same way.
"""
