"""Groups as a store keeps them. Whatever ends a member's chain also moves its group on, in the same transaction."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from duly.domain.groups import Group, GroupStatus, Member, Progress
from duly.domain.ids import GroupId, JobId, MemberId, Owner
from duly.domain.instants import Instant


class GroupStore(Protocol):
    """A group is terminal if and only if none of its members is open."""

    async def add(self, group: Group, members: Sequence[Member], *, position: int) -> bool:
        """Writes it and puts all members, from a position on, or the first; False if there is one of this id."""

    async def get(self, group_id: GroupId) -> Group | None: ...

    async def lock(self, group_id: GroupId) -> Group | None:
        """Kept from changing until commit; lock the jobs of its members before, never after."""

    async def listed(
        self, owner: Owner | None, *, status: GroupStatus | None, before: GroupId | None, most: int
    ) -> list[Group]:
        """The last made first; everybody's if no owner is named."""

    async def members(self, group_id: GroupId, *, after: int = -1, most: int) -> list[Member]:
        """In their places."""

    async def member_of_chain(self, chain: JobId) -> MemberId | None:
        """The member whose chain it is now; None for one that was replaced when its group was tried again."""

    async def progress(self, group_id: GroupId) -> Progress: ...

    async def live_jobs(self, group_id: GroupId) -> list[JobId]:
        """The jobs of its members that have not ended, in order of id."""

    async def stop(self, group: Group, *, reason: str, now: Instant) -> Group:
        """Notes that it is cancelled and ends what was not put; its live jobs are the caller's to cancel."""

    async def reopen(self, group: Group, ids: Mapping[int, JobId], *, now: Instant, position: int) -> None:
        """New chains, under the ids of their places, for members that failed or were cancelled."""

    async def revive(self, member: MemberId) -> None:
        """A member's chain goes on by hand, and what its failure had cancelled is pending again."""

    async def prune(self, before: Instant, most: int) -> int:
        """Forgets groups that ended before an instant, oldest first; answers how many."""
