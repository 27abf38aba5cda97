-- A job with many runs and a project with many conversations are deleted in pieces, like a long conversation: first they
-- disappear, then the runs are deleted, or the conversations leave the project, in transactions of their own.

-- 1: it is being deleted. Its row has only what its other rows refer to.
ALTER TABLE job ADD COLUMN is_deleted SMALLINT NOT NULL DEFAULT 0 CHECK (is_deleted IN (0, 1));
CREATE INDEX job_deletion ON job (no) WHERE is_deleted = 1;
ALTER TABLE project ADD COLUMN is_deleted SMALLINT NOT NULL DEFAULT 0 CHECK (is_deleted IN (0, 1));
CREATE INDEX project_deletion ON project (no) WHERE is_deleted = 1;
