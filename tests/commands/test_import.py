"""Importing Duly brings only what is asked for."""

import subprocess
import sys

HEAVY = ("asyncio", "apsw", "asyncpg", "pydantic", "fastapi", "duly.bootstrap", "duly.domain.cadence")
PROGRAM = f"import sys, duly; print([name for name in {HEAVY} if name in sys.modules])"


def test_importing_the_package_loads_neither_drivers_nor_event_loops() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


def test_the_app_loads_no_driver_and_no_web_framework() -> None:
    program = PROGRAM.replace("import sys, duly", "import sys, duly; duly.Duly")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == "['asyncio', 'duly.bootstrap', 'duly.domain.cadence']\n"
