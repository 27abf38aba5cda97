"""Messages that a job or the agent sends to a chat: who may send where, and how they join its conversation."""
