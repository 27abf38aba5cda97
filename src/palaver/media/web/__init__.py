"""Reading the web for the agent, and the guard that every request to an address from outside goes through."""
