"""What the API asks of the core: use cases, a noun per attribute."""

from typing import Protocol

from duly.application.accounts import Accounts
from duly.application.budgets import Budgets
from duly.application.grants import Grants
from duly.application.health import Health
from duly.application.jobs import Jobs
from duly.application.logs import Logs
from duly.application.pools import Pools
from duly.application.requests import Requests
from duly.application.runs import Runs
from duly.application.schedules import Schedules
from duly.application.tokens import Tokens
from duly.application.why import Why
from duly.ports.dice import Dice
from duly.ports.storage import Storage


class UseCases(Protocol):
    @property
    def storage(self) -> Storage: ...
    @property
    def dice(self) -> Dice: ...
    @property
    def accounts(self) -> Accounts: ...
    @property
    def budgets(self) -> Budgets: ...
    @property
    def grants(self) -> Grants: ...
    @property
    def health(self) -> Health: ...
    @property
    def jobs(self) -> Jobs: ...
    @property
    def logs(self) -> Logs: ...
    @property
    def pools(self) -> Pools: ...
    @property
    def requests(self) -> Requests: ...
    @property
    def runs(self) -> Runs: ...
    @property
    def schedules(self) -> Schedules: ...
    @property
    def tokens(self) -> Tokens: ...
    @property
    def why(self) -> Why: ...
