-- Older versions may go on writing.
-- What the price list says, where the provider itself has reported the cost. NULL: the cost is an estimate itself, or nothing is
-- known to compare it with. On a session: the estimate of all its priced turns; NULL until one of them has a reported cost.
ALTER TABLE usage ADD COLUMN estimated_nanos BIGINT;
ALTER TABLE session ADD COLUMN estimated_nanos BIGINT;
