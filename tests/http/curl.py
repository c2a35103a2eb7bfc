"""What a line of shell that begins with curl sends, so that the examples of pages can be tried."""

import json
import shlex
from typing import Any

ADDRESS = "localhost:8470"


def request_of(line: str) -> dict[str, Any]:
    """As the client takes it; anything that the pages do not use is an error."""
    curl, *words = shlex.split(line, comments=True)
    assert curl == "curl"
    sent: dict[str, Any] = {"method": None, "headers": {}}
    rest = iter(words)
    for word in rest:
        if word == "-X":
            sent["method"] = next(rest)
        elif word == "-H":
            name, _, value = next(rest).partition(": ")
            sent["headers"][name] = value
        elif word == "--json":
            sent["json"] = json.loads(next(rest))
        elif word != "-N":
            assert word.startswith(f"{ADDRESS}/"), word
            sent["url"] = word.removeprefix(ADDRESS)
    sent["method"] = sent["method"] or ("POST" if "json" in sent else "GET")
    return sent
