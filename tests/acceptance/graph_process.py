"""A `duly` command as people start it, which ends itself at a named point; leases are short, so that tests are.

python -m tests.acceptance.graph_process --statements FILE [--crash-at statement:moment:nth] COMMAND …
"""

import argparse
import sys
import threading
from functools import partial
from pathlib import Path

from duly import bootstrap
from duly.__main__ import main as duly
from duly.application.attempts import AttemptPace
from duly.domain.instants import SECOND, Micros
from tests.acceptance import crash_points
from tests.acceptance.crash_points import CrashPoint, Watch
from tests.acceptance.worker_process import end_with_parent

LEASE_SECONDS = 2.0
GRACE_SECONDS = 0.5
PACE = partial(AttemptPace, lease=Micros(int(LEASE_SECONDS * SECOND)), grace=Micros(int(GRACE_SECONDS * SECOND)))


def main() -> int:
    threading.Thread(target=end_with_parent, daemon=True).start()
    parser = argparse.ArgumentParser()
    parser.add_argument("--statements", type=Path, required=True)
    parser.add_argument("--crash-at", type=CrashPoint.read)
    given, command = parser.parse_known_args()
    noted = given.statements.open("a", buffering=1)
    crash_points.install(Watch(given.crash_at, lambda statement: print(statement, file=noted)))
    vars(bootstrap)["AttemptPace"] = PACE
    return duly(command)


if __name__ == "__main__":
    sys.exit(main())
