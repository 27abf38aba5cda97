"""Signal: the agent as a linked device of a person's account, or with a number of its own, through signal-cli."""
