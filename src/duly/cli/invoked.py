"""What to write to run this very `duly` again: the path it was started by, where the name alone leads elsewhere."""

import os
import shutil
import sys
from pathlib import Path


def invoked() -> str:
    started = Path(sys.argv[0])
    if started.name != "duly" or not started.is_file():
        return "duly"
    found = shutil.which("duly")
    if found is not None and Path(found).samefile(started):
        return "duly"
    return os.path.relpath(started) if started.absolute().is_relative_to(Path.cwd()) else str(started)
