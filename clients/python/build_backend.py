"""Build backend of this package (PEP 517 and PEP 660). It needs no other package, so that pip installs the client
without a network: `pip install ./clients/python`."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import re
import tarfile
import zipfile
from pathlib import Path
from typing import Any, Dict, List, Optional

ROOT = Path(__file__).resolve().parent
NAME = "zerofleet"

_found = re.search(r'__version__ = "([^"]+)"', (ROOT / NAME / "version.py").read_text(encoding="utf-8"))
VERSION = _found.group(1) if _found else "0"
INFO = f"{NAME}-{VERSION}.dist-info"

METADATA = f"""Metadata-Version: 2.1
Name: {NAME}
Version: {VERSION}
Summary: Client of the zerofleet API: training jobs over HTTP
License: Apache-2.0
Classifier: Typing :: Typed
Requires-Python: >=3.9
Requires-Dist: httpx >=0.23
Provides-Extra: notebook
Requires-Dist: pandas ; extra == 'notebook'
Requires-Dist: tqdm ; extra == 'notebook'
Description-Content-Type: text/markdown

{(ROOT / "README.md").read_text(encoding="utf-8")}"""

WHEEL = f"Wheel-Version: 1.0\nGenerator: {NAME}\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
Settings = Optional[Dict[str, Any]]


def get_requires_for_build_wheel(config_settings: Settings = None) -> List[str]:
    return []


get_requires_for_build_editable = get_requires_for_build_sdist = get_requires_for_build_wheel


def build_wheel(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: Optional[str] = None
) -> str:
    files = {f"{NAME}/{path.name}": path.read_bytes() for path in _sources()}
    return _write_wheel(wheel_directory, files)


def build_editable(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: Optional[str] = None
) -> str:
    return _write_wheel(wheel_directory, {f"{NAME}.pth": f"{ROOT}\n".encode()})


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    folder = f"{NAME}-{VERSION}"
    others = ("build_backend.py", "pyproject.toml", "README.md", "LICENSE")
    paths = [*_sources(), *(ROOT / name for name in others)]
    contents = {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in paths}
    contents["PKG-INFO"] = METADATA.encode()
    with Path(sdist_directory, f"{folder}.tar.gz").open("wb") as file:
        # Neither times nor owners of files: the same sources give the same bytes.
        with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
            with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
                for name, content in contents.items():
                    entry = tarfile.TarInfo(f"{folder}/{name}")
                    entry.size = len(content)
                    archive.addfile(entry, io.BytesIO(content))
    return f"{folder}.tar.gz"


def _sources() -> List[Path]:
    return sorted([*(ROOT / NAME).glob("*.py*"), ROOT / NAME / "py.typed"])


def _write_wheel(directory: str, files: Dict[str, bytes]) -> str:
    license_text = (ROOT / "LICENSE").read_bytes()
    info = {"METADATA": METADATA.encode(), "WHEEL": WHEEL.encode(), "LICENSE": license_text}
    contents = {**files, **{f"{INFO}/{name}": content for name, content in info.items()}}
    rows = [f"{name},sha256={_digest(content)},{len(content)}" for name, content in contents.items()]
    contents[f"{INFO}/RECORD"] = "\n".join([*rows, f"{INFO}/RECORD,,", ""]).encode()
    wheel = f"{NAME}-{VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(Path(directory, wheel), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)
    return wheel


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
