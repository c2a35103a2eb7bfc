"""What `duly dev` can be told."""

from dataclasses import dataclass, field
from pathlib import Path

from duly.bootstrap import Settings, settings_of_environment

PROGRAM = "schedules.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class DevOptions:
    """`folder` is where the program is looked for and where the database is, unless the settings name another.

    Port 0 is any that is free. Without a program the demo runs, unless `demo` says no. `command` is what people write
    to start Duly here.
    """

    folder: Path = field(default_factory=Path.cwd)
    settings: Settings = field(default_factory=settings_of_environment)
    host: str = Settings().host
    port: int = Settings().port
    postgres: bool = False
    demo: bool = True
    command: str = "duly"

    @property
    def program(self) -> Path:
        return self.folder / PROGRAM
