"""Webhooks: being told of what has ended, signed, at least once, and at addresses that are safe to call."""
