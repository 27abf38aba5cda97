"""Turns: claiming them, running the agent, its tools, compaction, and finishing a turn."""
