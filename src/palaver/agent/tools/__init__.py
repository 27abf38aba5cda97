"""Tools that Palaver itself gives the agent; each is bound to whoever is asking, and knows nothing of others."""
