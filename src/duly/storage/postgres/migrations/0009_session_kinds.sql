-- Which kinds of jobs a session has handlers for, as a JSON list; not known of one that was opened before it was asked.

ALTER TABLE sessions ADD COLUMN kinds text;
