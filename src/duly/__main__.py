"""The `duly` command."""

import sys

from duly.cli.commands import main as main  # noqa: PLC0414 - what the console script calls

if __name__ == "__main__":
    sys.exit(main())
