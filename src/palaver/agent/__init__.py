"""The agent: a port, the drivers behind it, and how a conversation is put before a model."""
