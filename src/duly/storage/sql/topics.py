"""What commits announce."""

DUE = "due"
CANCEL = "cancel"
TICKET = "ticket"
SCHEDULES = "schedules"


def pool_topic(name: str) -> str:
    return f"pool:{name}"
