"""Delivers webhooks: calls out, safely, and at least once."""
