-- Webhooks: nobody is held up by others' slowness, nor by what cannot be read.

-- What waits for one endpoint is found without a look at what waits for others.
CREATE INDEX webhook_deliveries_due_of_endpoint ON webhook_deliveries (endpoint_id, due_at) WHERE state = 'pending';

-- Set aside: no courier could read it, and why.
ALTER TABLE webhook_outbox ADD COLUMN aside_at INTEGER;
ALTER TABLE webhook_outbox ADD COLUMN aside_reason TEXT;

-- Of endpoints that were deleted before their hosts were forgotten with them.
DELETE FROM webhook_hosts WHERE NOT EXISTS (
  SELECT 1 FROM webhook_endpoints e WHERE e.owner_user_id = webhook_hosts.owner_user_id AND e.host = webhook_hosts.host);
