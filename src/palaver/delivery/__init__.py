"""Delivery: the outbox, the parts of an answer on a platform, previews, notices, and our accounts there.

Always true: deliveries to one address arrive in the order in which they were queued. A message whose fate is unknown is
marked as uncertain and never silently sent again. A chat that a person may not send to looks like one that does not
exist. `adapter.py` is the interface that every platform implements.
"""
