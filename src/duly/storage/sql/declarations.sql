-- Which schedules programs have declared.

-- name: declaration_of
SELECT schedule_id, owner_user_id, program FROM declared_schedules WHERE schedule_id = :schedule_id

-- name: declarations_of_program
SELECT schedule_id, owner_user_id, program FROM declared_schedules
WHERE owner_user_id = :owner AND program = :program ORDER BY schedule_id

-- name: save_declaration
INSERT INTO declared_schedules (schedule_id, owner_user_id, program) VALUES (:schedule_id, :owner, :program)
ON CONFLICT (schedule_id) DO UPDATE SET owner_user_id = excluded.owner_user_id, program = excluded.program

-- name: forget_declaration
DELETE FROM declared_schedules WHERE schedule_id = :schedule_id
