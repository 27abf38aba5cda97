-- Older versions may go on writing.
-- People are told once of an answer that may not have arrived, and take what went wrong off the list when it is settled.
ALTER TABLE delivery ADD COLUMN reported_at BIGINT;    -- when people in the chat were told that it may not have arrived
ALTER TABLE delivery ADD COLUMN dismissed_at BIGINT;   -- when a person took it off the list of problems
CREATE INDEX delivery_unreported ON delivery (ended_at) WHERE state = 'uncertain' AND reported_at IS NULL;
