"""`duly init`: a program to begin with."""

from pathlib import Path

from duly.domain.errors import Conflict, InvalidInput

EXAMPLE = '''\
"""What runs, and when. `duly dev` runs it and follows every change you save."""

from duly import Duly, Slot, cron, every

app = Duly()
together = app.pool("together", limit=4)  # its jobs run beside each other; those that name no pool, one at a time


@app.job(schedule=every("5s"), pool=together)
async def greet(slot: Slot) -> str:
    return f"hello from {slot}"


@app.job(schedule=cron("0 9 * * MON-FRI", tz="Europe/Berlin"), overlap="skip", retries=3, timeout="10m")
def digest(slot: Slot) -> None:
    print("the digest of", slot.at.date())
'''


class AlreadyThere(Conflict):
    code = "already_there"

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} is there already, and was left as it is")
        self.path = path


def write_example(path: Path) -> None:
    """Never over what is there, even if it came there this very moment."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(EXAMPLE)
    except FileExistsError:
        raise AlreadyThere(path) from None
    except OSError as error:
        raise InvalidInput(
            "FILE", f"{path}: {error.strerror}", fix="name one in a folder that you may write to"
        ) from error
