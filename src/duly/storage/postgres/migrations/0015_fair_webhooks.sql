-- Webhooks: what waits for one endpoint is found without a look at what waits for others.

CREATE INDEX webhook_deliveries_due_of_endpoint ON webhook_deliveries (endpoint_id, due_at) WHERE state = 'pending';
