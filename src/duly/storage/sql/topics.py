"""What commits announce."""

DUE = "due"
CANCEL = "cancel"
TICKET = "ticket"
SCHEDULES = "schedules"
REVIEWS = "reviews"
WEBHOOKS = "webhooks"


def pool_topic(name: str) -> str:
    return f"pool:{name}"


def execution_topic(run_id: str) -> str:
    return f"execution:{run_id}"
