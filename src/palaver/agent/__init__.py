"""The agent: the port, its drivers, and building requests to a model from a conversation."""
