-- A process that was paused may still be editing a growing message when another process runs its account. The answer is
-- put into the message only if no other process can be editing it.
ALTER TABLE preview ADD COLUMN owner TEXT;                   -- the process that sends and edits it; NULL: none does
