"""Makes events.out.tfevents.golden of metrics.json with the messages and the writer of TensorBoard: python3
make_golden.py

Needs tensorboard (2.21 made the committed file).
"""

import json
from datetime import datetime
from pathlib import Path

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

HERE = Path(__file__).parent
SCALARS = ["loss", "aux_loss", "grad_norm", "lr", "loss_scale", "skipped_steps", "tokens", "tokens_per_second", "world_size", "memory_bytes"]


def seconds(time):
    return datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp()


def values(item):
    yield from ((name, item[name]) for name in SCALARS if name in item)
    for group in ("preference", "seconds"):
        yield from ((f"{group}/{name}", value) for name, value in item.get(group, {}).items())
    for name, by_rank in item.get("system", {}).items():
        yield from ((f"system/{name}/{rank}", value) for rank, value in enumerate(by_rank))
    for i, ratios in enumerate(item.get("trust_ratios", [])):
        yield from ((f"trust_ratios/{i}/{name}", value) for name, value in ratios.items())
    for name, value in item.get("eval_losses", {}).items():
        yield ("eval_loss" if name == "validation" else f"eval_loss/{name}"), value


def events(job, items):
    created = seconds(job["created_at"])
    start = SessionLog(status=SessionLog.START)
    yield Event(wall_time=created, file_version="brain.Event:2")
    yield Event(wall_time=created, session_log=start)
    last = 0
    for item in items:
        at = {"wall_time": seconds(item["at"]), "step": item["step"]}
        if item["step"] <= last:
            yield Event(**at, session_log=start)
        last = item["step"]
        scalars = [Summary.Value(tag=tag, simple_value=float("nan") if value is None else value) for tag, value in values(item)]
        yield Event(**at, summary=Summary(value=scalars))


def main():
    given = json.loads((HERE / "metrics.json").read_text())
    with open(HERE / "events.out.tfevents.golden", "wb") as file:
        writer = RecordWriter(file)
        for event in events(given["job"], given["metrics"]):
            writer.write(event.SerializeToString(deterministic=True))


main()
