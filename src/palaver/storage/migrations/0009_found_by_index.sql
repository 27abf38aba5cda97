-- What is looked for often is found by an index, however much there is.

-- A turn that goes with its session finds its deliveries. Only answers belong to turns.
DROP INDEX one_answer_per_address;
CREATE UNIQUE INDEX one_answer_per_address ON delivery (turn_no, address) WHERE turn_no IS NOT NULL;

-- Turns that wait for their time, and not only for a worker.
CREATE INDEX turn_later ON turn (due_at) WHERE state = 'queued' AND due_at > 0;
