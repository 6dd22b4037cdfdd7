"""Makes wandb.json: what the client of W&B sends for the metrics of formats/metric-files/golden/metrics.json.

    python3 make_golden.py && npx biome check --write wandb.json

Needs wandb (0.30.0 made the committed file), whose client runs online against the small server below. Fields that
differ from run to run or from machine to machine are left out.
"""

import gzip
import json
import os
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HERE = Path(__file__).parent
METRICS = HERE.parents[2] / "formats" / "metric-files" / "golden" / "metrics.json"
SCALARS = ["loss", "aux_loss", "grad_norm", "lr", "loss_scale", "skipped_steps", "tokens", "tokens_per_second", "world_size",
           "memory_bytes"]
KEY = "0123456789abcdef0123456789abcdef01234567"
STATUSES = [400, 401, 403, 404, 409, 410, 413, 422, 429, 500, 501, 502, 503]
GIVEN = {
    "project": "language models",
    "id": "job_01KAJX9B2M4P6R8T0V2X4Z6B8D",
    "name": "tiny",
    "tags": ["team=docs", "nightly"],
    "config": {
        "model": {"preset": "llama-tiny", "init_from": None},
        "data": {"dataset": "ds_01KAJX8W3Q5R7T9V1X3Z5B7D9F", "packing": True},
        "train": {"steps": 5, "optimizer": {"type": "adamw", "lr": 0.001, "betas": [0.9, 0.95]}},
        "zero": {"stage": 2},
        "zerofleet": {"job_id": "job_01KAJX9B2M4P6R8T0V2X4Z6B8D", "project": "default"},
    },
}
OUTCOME = {"zerofleet.state": "succeeded", "zerofleet.checkpoint_id": "ckpt_01KAJXAF2N4Q6S8V0X2Z4B6D8F"}
MACHINE = {"host", "program", "commit", "repo"}


def values(item):
    yield from ((name, item[name]) for name in SCALARS if name in item)
    for group in ("preference", "seconds"):
        yield from ((f"{group}/{name}", value) for name, value in item.get(group, {}).items())
    for name, of_ranks in item.get("system", {}).items():
        yield from ((f"system/{name}/{rank}", value) for rank, value in enumerate(of_ranks))
    for i, ratios in enumerate(item.get("trust_ratios", [])):
        yield from ((f"trust_ratios/{i}/{name}", value) for name, value in ratios.items())
    for name, value in item.get("eval_losses", {}).items():
        yield ("eval_loss" if name == "validation" else f"eval_loss/{name}"), value


def rows():
    """Steps with their values; a step that is not above those before is left out."""
    last = 0
    for item in json.loads(METRICS.read_text())["metrics"]:
        if item["step"] > last:
            last = item["step"]
            yield last, {name: float("nan") if value is None else value for name, value in values(item)}


def client(case):
    """The part of the script that uses W&B."""
    import wandb

    fields = {**GIVEN, "resume": "must"} if case["resume"] else GIVEN
    run = wandb.init(**fields, settings=wandb.Settings(heartbeat_seconds=1, init_timeout=30))
    for step, row in rows():
        if not case["resume"]:
            run.log(row, step=step)
    if case["resume"]:
        run.log({"loss": 0.5})
    run.summary.update(OUTCOME)
    if case["end"] == "interrupt":
        raise KeyboardInterrupt
    if case["end"] == "idle":
        sys.stdin.readline()
    run.finish(exit_code=case["end"] if case["end"] == 1 else None)


class Server(ThreadingHTTPServer):
    """Answers as W&B does, as far as its client needs it, and keeps the requests."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests, self.run, self.history, self.summary = [], None, {}, "{}"
        self.fault = None
        self.beat = threading.Event()

    def answer(self, path, sent):
        name = sent.get("operationName") if path == "/graphql" else path.rsplit("/", 1)[-1]
        self.requests.append((name, sent))
        if self.fault and self.fault[0] == name:
            status, self.fault = self.fault[1], None
            return status, {"errors": [{"message": "as asked"}]}
        if name == "file_stream":
            if not sent:
                self.beat.set()
            files = sent.get("files", {})
            history = files.get("wandb-history.jsonl", {"offset": 0, "content": []})
            self.history.update(enumerate(history["content"], history["offset"]))
            self.summary = files.get("wandb-summary.json", {"content": [self.summary]})["content"][-1]
        return 200, {"data": self.data(name, sent.get("variables") or {})} if path == "/graphql" else {}

    def data(self, name, given):
        owner = {"id": "p", "name": given.get("project"), "entity": {"id": "e", "name": "somebody"}}
        if name == "Viewer":
            return {"viewer": {"id": "u", "entity": "somebody", "username": "somebody", "flags": "{}"}}
        if name == "UpsertBucket":
            self.run = {**(self.run or {}), **{key: value for key, value in given.items() if value is not None}}
            bucket = {"id": "r", "name": given["name"], "displayName": self.run.get("displayName"), "project": owner}
            return {"upsertBucket": {"bucket": {**bucket, "historyLineCount": len(self.history)}, "inserted": True}}
        if name == "RunResumeStatus":
            tail = json.dumps([self.history[max(self.history)]])
            lines = {"historyLineCount": len(self.history), "historyTail": tail, "summaryMetrics": self.summary}
            other = {"logLineCount": 0, "eventsLineCount": 0, "eventsTail": "[]", "wandbConfig": '{"t": {}}', "tags": self.run["tags"]}
            bucket = {"id": "r", "name": given["name"], "config": self.run["config"], **lines, **other}
            return {"model": {**owner, "bucket": bucket}}
        return {"createRunFiles": {"runID": "r", "uploadHeaders": [], "files": []}}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle(self):
        try:
            super().handle()
        except ConnectionError:
            pass

    def respond(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        is_json = self.headers.get("content-type") == "application/json"
        self.server.authorization = self.headers.get("authorization") or self.server.authorization
        status, answer = self.server.answer(self.path, json.loads(body) if is_json else {})
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PUT = respond

    def log_message(self, *args):
        pass


Server.authorization = None


def perform(server, end=0, resume=False):
    """Runs the client once. Returns the requests that the server has had from it."""
    before = len(server.requests)
    settings = {"ERROR_REPORTING": "false", "DISABLE_CODE": "true", "DISABLE_GIT": "true", "CONSOLE": "off", "SILENT": "true"}
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, **{f"WANDB_{name}": value for name, value in settings.items()}}
        env.update(WANDB_BASE_URL=f"http://127.0.0.1:{server.server_address[1]}", WANDB_API_KEY=KEY, WANDB_DIR=folder, WANDB_X_DISABLE_STATS="true")
        case = json.dumps({"end": end, "resume": resume})
        command = [sys.executable, __file__, case]
        child = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        if end == "idle":
            server.beat.wait(60)
        child.communicate(b"\n", timeout=120)
    return server.requests[before:]


def parsed(line):
    """A line of a file, with the names of numbers that are not finite, without the times of the recording."""
    fields = json.loads(line, parse_constant=lambda name: name)
    times = {name for name in ("_timestamp", "_runtime") if isinstance(fields.pop(name, None), (int, float))}
    if "_wandb" in fields:
        fields["_wandb"] = sorted(fields["_wandb"])
    return {**fields, "times": sorted(times)}


def variables(given):
    """Variables of a mutation that have a value, without those of the machine."""
    kept = {key: value for key, value in given.items() if value is not None and key not in MACHINE}
    if "config" in kept:
        config = json.loads(kept["config"])
        kept["config"] = {**config, "_wandb": sorted(config["_wandb"]["value"])}
    return kept


def record(server, requests):
    """The effect of requests, however the client has divided them."""
    streams = [sent for name, sent in requests if name == "file_stream"]
    lines = {}
    for sent in streams:
        history = sent.get("files", {}).get("wandb-history.jsonl", {"offset": 0, "content": []})
        lines.update(enumerate(history["content"], history["offset"]))
    return {
        "first": next(name for name, _ in requests if name in ("RunResumeStatus", "UpsertBucket")),
        "upsert": variables(next(sent["variables"] for name, sent in requests if name == "UpsertBucket")),
        "history": {str(at): parsed(line) for at, line in sorted(lines.items())},
        "summary": parsed(server.summary),
        "end": {key: value for key, value in streams[-1].items() if key not in ("files", "uploaded")},
    }


def is_repeated(name, status):
    server = start()
    server.fault = (name, status)
    requests = [sent for each, sent in perform(server) if each == name]
    return requests.count(requests[0]) > 1


def start():
    server = Server()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def main():
    server = start()
    finished = record(server, perform(server))
    resumed = record(server, perform(server, resume=True))
    failed, interrupted, idle = start(), start(), start()
    ends = {"failed": record(failed, perform(failed, end=1))["end"]}
    ends["interrupted"] = record(interrupted, perform(interrupted, end="interrupt"))["end"]
    import wandb

    golden = {
        "client": f"wandb {wandb.__version__}",
        "key": KEY,
        "authorization": server.authorization,
        "given": GIVEN,
        "outcome": OUTCOME,
        "finished": finished,
        "resumed": resumed,
        "ends": ends,
        "beat": next(sent for name, sent in perform(idle, end="idle") if name == "file_stream" and not sent),
        "repeated": {name: {str(status): is_repeated(name, status) for status in STATUSES} for name in ("UpsertBucket", "file_stream")},
    }
    (HERE / "wandb.json").write_text(json.dumps(golden, indent=2, sort_keys=True) + "\n")


if len(sys.argv) > 1:
    client(json.loads(sys.argv[1]))
else:
    main()
