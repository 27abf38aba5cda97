"""Jobs: prompts that run on a schedule, from making one to delivering what came out of its runs."""
