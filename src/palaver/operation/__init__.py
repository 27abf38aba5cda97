"""Operation: what keeps an installation healthy.

Backups and restores, checks and repairs, cleanup and retention, erasing people, metrics, the move to another database,
and `palaver doctor`.

Always true: each transaction is small, so that messages are stored in between; what was interrupted goes on where it
was; a check changes nothing; an erased person is in no table and in no file, and the totals of the usage stay.
"""
