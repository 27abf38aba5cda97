"""Live updates: the feed of a conversation, and the channels and clients that follow it."""
