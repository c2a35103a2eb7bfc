-- Templates: a row each, with what was asked as JSON.

-- fragment: template_columns
name, owner_user_id, version, created_at, updated_at, spec

-- name: insert_template
INSERT INTO templates (name, owner_user_id, version, created_at, updated_at, spec)
VALUES (:name, :owner, 1, :now, :now, :spec)
ON CONFLICT (name) DO NOTHING
RETURNING name

-- name: template_by_name
SELECT {template_columns} FROM templates WHERE name = :name

-- name: template_by_name_locked
SELECT {template_columns} FROM templates WHERE name = :name {lock}

-- name: update_template
UPDATE templates SET version = version + 1, updated_at = :now, spec = :spec WHERE name = :name

-- name: delete_template
DELETE FROM templates WHERE name = :name

-- name: templates_listed
SELECT {template_columns} FROM templates WHERE name > :after ORDER BY name LIMIT :most

-- name: templates_listed_of_owner
SELECT {template_columns} FROM templates WHERE owner_user_id = :owner AND name > :after ORDER BY name LIMIT :most
