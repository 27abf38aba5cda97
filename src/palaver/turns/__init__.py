"""Turns: the claim of a queued turn, the run of the agent with its tools, compaction, and the end of the turn.

Always true: one worker runs a turn at a time, by a lease in the database. Whatever a run writes after it has lost its
lease is refused. The answer, its usage, the end of the turn and the delivery are one transaction. A turn whose tools
may have acted is never started again by itself. `commands` has the slash commands about conversations and their
answers.
"""
