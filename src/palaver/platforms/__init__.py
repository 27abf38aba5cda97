"""Platforms: the edges through which people reach the agent."""
