"""Turns: claiming them, running the agent and its tools, compacting conversations, and finishing turns."""
