"""Names in place of ids: `client.jobs.get("my-run")`, `client.checkpoints.get("my-run@400")`."""

from __future__ import annotations

import re
from typing import Any, Callable, Dict, List, Mapping, Optional
from urllib.parse import quote, unquote

from .errors import ZerofleetError

Get = Callable[[str, Mapping[str, object]], Any]
"""Reads a page of a list: path and query."""

# A name that looks like an id is taken as one.
LOOKS_LIKE_ID = re.compile(r"(job|ds|mdl|ckpt|swp|upl|key|wh|usr|shr)_\w+")
PATH = re.compile(r"/v1/(jobs|datasets|models|checkpoints|sweeps)/([^/?]+)(.*)", re.DOTALL)
CHECKPOINT = re.compile(r"(.+)@(\d+)", re.DOTALL)
SHOWN = 5


def with_id(path: str, get: Get) -> str:
    """A path whose name of a job, dataset, model, checkpoint or sweep is replaced by an id. Raises ZerofleetError for
    a name that nothing or more than one thing has."""
    found = PATH.fullmatch(path)
    if found is None:
        return path
    kind, name, rest = found.group(1), unquote(found.group(2)), found.group(3)
    is_job = kind == "checkpoints" and name.startswith("job_")
    if LOOKS_LIKE_ID.fullmatch(name) and not is_job:
        return path
    identity = _checkpoint(name, get) if kind == "checkpoints" else find_id(kind, name, get)
    return f"/v1/{kind}/{quote(identity, safe='')}{rest}"


def find_id(kind: str, name: str, get: Get) -> str:
    """The id of the only job, dataset, model or sweep (`kind` is `jobs`, …) with a name."""
    found = named(kind, name, get)
    if not found:
        raise ZerofleetError(f"no {kind[:-1]} is named {name!r}")
    if len(found) > 1:
        ids = ", ".join(record["id"] for record in found[:SHOWN])
        raise ZerofleetError(f"{len(found)} or more {kind} are named {name!r}; give an id: {ids}")
    return str(found[0]["id"])


def named(kind: str, name: str, get: Get) -> List[Dict[str, Any]]:
    page: List[Dict[str, Any]] = get(f"/v1/{kind}", {"name": name, "limit": SHOWN})["data"]
    return page


def _checkpoint(name: str, get: Get) -> str:
    """`JOB` stands for its newest checkpoint, `JOB@STEP` for the one after a step."""
    with_step = CHECKPOINT.fullmatch(name)
    job, step = (with_step.group(1), int(with_step.group(2))) if with_step else (name, None)
    job_id = job if LOOKS_LIKE_ID.fullmatch(job) else find_id("jobs", job, get)
    after: Optional[str] = None
    while True:
        page = get(f"/v1/jobs/{job_id}/checkpoints", {"after": after, "limit": 100})
        for checkpoint in page["data"]:
            if step is None or checkpoint["step"] == step:
                return str(checkpoint["id"])
        after = page["next_cursor"]
        if after is None:
            raise ZerofleetError(f"{job} has no checkpoint" + ("" if step is None else f" after step {step}"))
