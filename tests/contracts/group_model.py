"""Groups as a person would describe them: lists of members, and what follows when one ends."""

from dataclasses import dataclass, field

from tests.contracts.model import Refusal

GOOD = ("COMPLETED", "SKIPPED")
OPEN = ("pending", "live")


@dataclass
class ModelMember:
    attempts: int
    state: str = "pending"
    left: int = 0
    worker: int | None = None  # who runs it
    asked_to_stop: bool = False
    was_put: bool = False  # since the group was last tried again
    was_ever_put: bool = False

    def put(self) -> None:
        self.state, self.left, self.worker, self.asked_to_stop = "live", self.attempts, None, False
        self.was_put = self.was_ever_put = True


@dataclass
class ModelGroup:
    sequential: bool
    stops: bool
    members: list[ModelMember]
    cancelled: bool = False

    @property
    def status(self) -> str:
        states = [member.state for member in self.members]
        if any(state in OPEN for state in states):
            return "RUNNING"
        if all(state in GOOD for state in states):
            return "COMPLETED"
        return "CANCELLED" if self.cancelled or set(states) == {"CANCELLED"} else "PARTIAL"

    def start(self) -> None:
        pending = [member for member in self.members if member.state == "pending"]
        for member in pending[:1] if self.sequential else pending:
            member.put()

    def end(self, member: ModelMember, state: str) -> None:
        member.state, member.worker = state, None
        if not self.sequential or self.cancelled:
            return
        if self.stops and state not in GOOD:
            self._cancel_pending()
        else:
            self.start()

    def _cancel_pending(self) -> None:
        for member in self.members:
            if member.state == "pending":
                member.state = "CANCELLED"


@dataclass
class GroupModel:
    groups: dict[str, ModelGroup] = field(default_factory=dict)

    def create(self, name: str, *, sequential: bool, stops: bool, attempts: list[int]) -> None:
        group = ModelGroup(sequential, sequential and stops, [ModelMember(count) for count in attempts])
        self.groups[name] = group
        group.start()

    def running(self) -> list[tuple[str, int]]:
        return [at for at, member in self.members() if member.worker is not None]

    def members(self) -> list[tuple[tuple[str, int], ModelMember]]:
        return [
            ((name, place), member) for name, group in self.groups.items() for place, member in enumerate(group.members)
        ]

    def at(self, name: str, place: int) -> tuple[ModelGroup, ModelMember]:
        return self.groups[name], self.groups[name].members[place]

    def claim(self, name: str, place: int, worker: int) -> None:
        _, member = self.at(name, place)
        assert (member.state, member.worker) == ("live", None)
        member.worker = worker

    def report(self, name: str, place: int, ending: str) -> None:
        """`ending` is a status, or `hopeless`: a failure that is not tried again."""
        group, member = self.at(name, place)
        if ending in GOOD:
            group.end(member, ending)
        elif member.asked_to_stop:
            group.end(member, "CANCELLED")
        elif ending == "FAILED" and member.left > 1:
            member.left -= 1
            member.worker = None
        else:
            group.end(member, "FAILED")

    def lose(self, worker: int) -> None:
        for (name, place), member in self.members():
            if member.worker == worker:
                self.report(name, place, "FAILED")

    def cancel_job(self, name: str, place: int) -> bool:
        group, member = self.at(name, place)
        if member.worker is None:
            group.end(member, "CANCELLED")
            return True
        member.asked_to_stop = True
        return False

    def cancel(self, name: str) -> str:
        group = self.groups[name]
        if group.status != "RUNNING":
            raise Refusal("group_already_ended")
        group.cancelled = True
        group._cancel_pending()
        for place, member in enumerate(group.members):
            if member.state == "live":
                self.cancel_job(name, place)
        return group.status

    def retry(self, name: str) -> str:
        group = self.groups[name]
        if group.status == "RUNNING":
            raise Refusal("group_running")
        if group.status == "COMPLETED":
            raise Refusal("group_already_ended")
        group.cancelled = False
        for member in group.members:
            if member.state in ("FAILED", "CANCELLED"):
                member.state, member.was_put = "pending", False
        group.start()
        return group.status

    def retry_job(self, name: str, place: int) -> str:
        """Of the member's last chain."""
        group, member = self.at(name, place)
        if member.state == "live":
            raise Refusal("chain_live")
        if group.status == "RUNNING" and (group.sequential or group.cancelled):
            raise Refusal("group_running")
        group.cancelled = False
        member.put()
        if group.sequential:
            for follower in group.members[place + 1 :]:
                if follower.state == "CANCELLED" and not follower.was_put:
                    follower.state = "pending"
        return "created"
