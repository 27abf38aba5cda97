-- What was not delivered lately is found by an index, however much was.
CREATE INDEX delivery_trouble ON delivery (ended_at) WHERE state IN ('uncertain', 'failed');
