"""The result of a check: written after each step, and merged with those of earlier calls at the same day and commit."""

import datetime
import json
import os
import re

from machine import ROOT
from steps import NOT_RUN

FORMAT = 1
COMMITTED = ROOT / "bench" / "results"


def write_atomically(file, text):
    """A reader sees the old or the new content, whatever interrupts the writing."""
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(file.name + ".new")
    with open(new, "w", encoding="utf-8") as sink:
        sink.write(text)
        sink.flush()
        os.fsync(sink.fileno())
    new.replace(file)


class Result:
    """`folder` gets the result. A copy is kept in the build folder: on a lent machine the other folder is emptied
    between calls."""

    def __init__(self, folder, build, device, commit, machine):
        day = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
        name = "-".join(re.sub(r"[^a-z0-9]+", "-", part.lower()).strip("-") for part in (device, day, commit.replace("+", "-changed")))
        self.file = folder / f"{name}.json"
        self._copy = build / "check-results" / f"{name}.json"
        self.content = {"format": FORMAT, "date": day, "commit": commit, "device": device, "machine": machine, "stages": {}}
        self.recorded = []  # steps of this call
        for earlier in (COMMITTED / f"{name}.json", self._copy, self.file):
            if earlier.exists():
                for stage, steps in json.loads(earlier.read_text(encoding="utf-8"))["stages"].items():
                    for step in steps:
                        self._put(stage, step)

    def step(self, name):
        """The step of that name, of this or an earlier call, or None."""
        return next((step for steps in self.content["stages"].values() for step in steps if step["name"] == name), None)

    def record(self, stage, step):
        """A step that was not run leaves the result of an earlier call as it is, and so does that result itself."""
        if step is self.step(step["name"]):
            return
        self.recorded.append(step)
        self._put(stage, step)
        text = json.dumps(self.content, indent=1, ensure_ascii=False) + "\n"
        for file in {self._copy, self.file}:
            write_atomically(file, text)

    def _put(self, stage, step):
        steps = self.content["stages"].setdefault(stage, [])
        for index, other in enumerate(steps):
            if other["name"] == step["name"]:
                if step["status"] != NOT_RUN or other["status"] == NOT_RUN:
                    steps[index] = step
                return
        steps.append(step)
