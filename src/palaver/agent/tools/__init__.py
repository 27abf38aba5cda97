"""Palaver's own tools for the agent; each is bound to the person who asks and sees only what they may see."""
