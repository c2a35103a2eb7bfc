"""Ids as types of their own, so that a lane cannot be passed for a pool."""

from typing import NewType

JobId = NewType("JobId", str)
SessionId = NewType("SessionId", str)
TicketId = NewType("TicketId", str)
PoolName = NewType("PoolName", str)
Lane = NewType("Lane", str)
JobKey = NewType("JobKey", str)

# Fresh for every exchange of a session; a claim is named by (job, session, token) and by nothing less.
Token = NewType("Token", int)

ScheduleId = NewType("ScheduleId", str)
RunId = NewType("RunId", str)
Owner = NewType("Owner", str)

AccountId = NewType("AccountId", str)
VirtualKeyId = NewType("VirtualKeyId", str)
GrantId = NewType("GrantId", str)
BudgetId = NewType("BudgetId", str)
