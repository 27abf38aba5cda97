"""Live updates: the feed of one conversation, and the channels and clients that follow it."""
