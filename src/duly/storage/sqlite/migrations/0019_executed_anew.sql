-- A stored outcome is final for its key. What a person has tried again after one is executed under a key of its own.

ALTER TABLE manual_retries ADD COLUMN execution_key TEXT;
