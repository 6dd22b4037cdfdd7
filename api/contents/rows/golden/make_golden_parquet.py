"""Writes golden/parquet.json: Parquet files of pyarrow 25, with the rows that they contain.

    python api/contents/rows/golden/make_golden_parquet.py
"""

import base64
import io
import json
import pathlib

import pyarrow as pa
import pyarrow.parquet as pq

HERE = pathlib.Path(__file__).parent

turn = [{"role": "user", "content": "Wie heißt 東京?"}, {"role": "assistant", "content": "Tokyo.\n"}]
call = {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "n": 9007199254740993}]}
chats = [turn, [{"role": "user", "content": "?"}, call], [{"role": "assistant", "content": ""}]]
texts = [f"row {i} é" for i in range(40)]
pairs = {"prompt": ["a", "b"], "chosen": ["c", "d"], "rejected": ["e", "f"], "id": [1, 2]}
labelled = {"prompt": ["a", "b"], "completion": ["c", "d"]}
message = pa.struct({"role": pa.string(), "content": pa.string()})

cases = {
    "of texts": (pa.table({"text": texts}), {}),
    "of pairs beside another column": (pa.table(pairs), {}),
    "of several row groups": (pa.table({"text": texts}), {"row_group_size": 7}),
    "of pages of version 2": (pa.table({"text": texts}), {"data_page_version": "2.0", "version": "2.6"}),
    "of plain values": (pa.table({"text": texts}), {"use_dictionary": False}),
    "of chats as structs": (pa.table({"messages": chats}), {}),
    "of chats with tools": (pa.table({"messages": [turn], "tools": [[{"name": "f"}]]}), {}),
    "of chats as JSON": (pa.table({"messages": [json.dumps(turn, indent=1)]}), {}),
    "of prompts that are chats": (
        pa.table({name: pa.array([rows], pa.list_(message)) for name, rows in [("prompt", turn[:1]), ("chosen", turn[1:]), ("rejected", turn[1:])]}),
        {},
    ),
    "of labels": (pa.table({**labelled, "label": [True, False]}), {}),
    "of labels that are numbers": (pa.table({**labelled, "label": [1, 0]}), {}),
    "of rows with nulls": (pa.table({"text": ["a", None], "messages": [None, turn]}), {}),
    "of long strings": (pa.table({"text": pa.array(texts, pa.large_string())}), {}),
}
for codec in ("none", "gzip", "zstd", "brotli", "lz4"):
    cases[f"packed by {codec}"] = (pa.table({"text": texts}), {"compression": codec})


def without_nulls(value):
    if isinstance(value, dict):
        return {name: without_nulls(each) for name, each in value.items() if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value


def written(table, **options):
    file = io.BytesIO()
    pq.write_table(table, file, **options)
    return base64.b64encode(file.getvalue()).decode()


def line(row):
    """Lists of messages may be columns of JSON, and labels numbers."""
    row = {name: value for name, value in without_nulls(row).items() if name != "id"}
    if isinstance(row.get("messages"), str):
        row["messages"] = json.loads(row["messages"])
    if "label" in row:
        row["label"] = bool(row["label"])
    return json.dumps(row, ensure_ascii=False)


golden = {
    name: {"file": written(table, **options), "lines": [line(row) for row in table.to_pylist()]}
    for name, (table, options) in cases.items()
}
wrong = {
    "bytes": written(pa.table({"text": pa.array([b"\xff\xfe"], pa.binary())})),
    "no column": written(pa.table({"content": ["a"], "other": [1]})),
    "a number that is none": written(pa.table({"messages": [turn], "tools": [[{"x": float("nan")}]]})),
    "a bad label": written(pa.table({**labelled, "label": ["yes", "no"]})),
}
(HERE / "parquet.json").write_text(json.dumps({"files": golden, "wrong": wrong}, ensure_ascii=False, indent=1) + "\n")
