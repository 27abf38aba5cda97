"""Push: notifications to browsers while the page is closed.

Owns the tables `push_subscription` and `push_message`, and the file `push.key`. Always true: a notification is claimed
by one process at a time, says nothing that the push service could read, and is not sent once its person has read the
conversation or is signed out.
"""
