"""What `Zerofleet.train` and `Zerofleet.session` make of their arguments."""

from __future__ import annotations

import os
from typing import Any, Dict, Literal, Mapping, Optional, Union

from .datasets import Datasets, Source
from .errors import ZerofleetError
from .names import CHECKPOINT, find_id, named
from .schemas import Dataset, JobSpec
from .transport import Transport, quoted

Method = Literal["full", "lora", "dora"]
Data = Union[Source, Dataset]
URIS = ("hf://", "s3://")


def document(
    http: Transport,
    datasets: Datasets,
    data: Data,
    *,
    model: str,
    method: Method,
    name: Optional[str],
    train: Mapping[str, Any],
    fields: Mapping[str, Any],
) -> JobSpec:
    """A job document. A file is uploaded."""
    dataset = None if isinstance(data, str) and data.startswith(URIS) else _dataset(datasets, data)
    settings = _settings(method, train)
    if "steps" not in settings:
        settings.setdefault("epochs", 3)
    if dataset is not None and "objective" not in settings:
        # The usual objective of preferences.
        if dataset["num_preferences"] > 0:
            settings["objective"] = {"type": "dpo"}
        elif dataset["num_labelled"] > 0:
            settings["objective"] = {"type": "kto"}
    spec: Dict[str, Any] = {
        "model": _base(http, model),
        "data": {"uri": data} if dataset is None else {"dataset": dataset["id"]},
        "train": settings,
        **fields,
    }
    if name is not None:
        spec["name"] = name
    return spec  # type: ignore[return-value]


def session_document(
    http: Transport,
    *,
    model: str,
    method: Method,
    name: Optional[str],
    idle_seconds: Optional[int],
    train: Mapping[str, Any],
    fields: Mapping[str, Any],
) -> JobSpec:
    """The document of a session."""
    session = {} if idle_seconds is None else {"idle_seconds": idle_seconds}
    spec: Dict[str, Any] = {
        "model": _base(http, model),
        "data": {},
        "train": {**_settings(method, train), "session": session},
        **fields,
    }
    if name is not None:
        spec["name"] = name
    return spec  # type: ignore[return-value]


def _settings(method: Method, train: Mapping[str, Any]) -> Dict[str, Any]:
    settings: Dict[str, Any] = {**train}
    if method != "full":
        settings["adapter"] = {"type": method, **settings.get("adapter", {})}
    return settings


def _dataset(datasets: Datasets, data: Data) -> Dataset:
    if isinstance(data, dict):
        return data
    if isinstance(data, (str, os.PathLike)) and not os.path.isfile(data):
        if isinstance(data, str):
            return datasets.get(data)
        raise ZerofleetError(f"there is no file {os.fspath(data)}")
    if isinstance(data, bytes):
        return datasets.upload(data, name="data")
    return datasets.upload(data)


def _base(http: Transport, model: str) -> Dict[str, Any]:
    """The section `model` for a preset, a URI, an uploaded model, a checkpoint, or a job's newest checkpoint."""
    if model.startswith(URIS):
        return {"init_from": model}
    if model.startswith("mdl_"):
        return {"init_from": {"model": model}}
    if not model.startswith(("ckpt_", "job_")) and not CHECKPOINT.fullmatch(model):
        if model in http.get("/v1/models", {"limit": 1})["presets"]:
            return {"preset": model}
        if named("models", model, http.get):
            return {"init_from": {"model": find_id("models", model, http.get)}}
    checkpoint = http.json("GET", f"/v1/checkpoints/{quoted(model)}")
    begun = http.json("GET", f"/v1/jobs/{checkpoint['job_id']}")["spec"]["model"]
    base = {"config": begun["config"]} if begun["preset"] is None else {"preset": begun["preset"]}
    return {**base, "init_from": {"checkpoint": checkpoint["id"], "restore": "weights"}}
