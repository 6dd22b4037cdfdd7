#!/usr/bin/env python3
"""Packs zerofleet-gpu-check.tar.gz: everything that tools/gpu/check.py needs on a machine without a network: `npm run gpu:pack`.

The native sources, the check, the two headers that are used from system packages (with their licences), and the commit.
"""

import argparse
import gzip
import io
import re
import subprocess
import tarfile
from pathlib import Path

from machine import ROOT, commit

FOLDER = "zerofleet-gpu-check"
SOURCES = ["native", "tools/gpu", "bench/gpu", "bench/results", "docs/gpu.md", "LICENSE"]
LEFT_OUT = ("native/js/", "native/binding/")
# Include path of each header, and the package that has its licence.
HEADERS = {"xxhash.h": "libxxhash-dev", "doctest/doctest.h": "doctest-dev"}
INCLUDE_FOLDERS = [Path("/usr/local/include"), Path("/usr/include")]


def git(*args):
    return subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def source_files():
    names = git("ls-files", "-z", *SOURCES).split("\0")
    return [name for name in names if name and not name.startswith(LEFT_OUT) and (ROOT / name).is_file()]


def header(name):
    found = next((folder / name for folder in INCLUDE_FOLDERS if (folder / name).exists()), None)
    if found is None:
        raise SystemExit(f"{name} is not installed: apt-get install {HEADERS[name]}")
    return found.read_bytes()


def licence(name):
    """The package's licence text, else the comment at the head of the header."""
    file = Path("/usr/share/doc") / HEADERS[name] / "copyright"
    if file.exists():
        return file.read_bytes()
    comment = re.match(rb"\s*(/\*.*?\*/|(//[^\n]*\n)+)", header(name), re.DOTALL)
    if comment is None:
        raise SystemExit(f"no licence text of {name} was found")
    return comment[0]


def contents():
    files = {name: (ROOT / name).read_bytes() for name in source_files()}
    for name in HEADERS:
        files[f"third_party/{name}"] = header(name)
        files[f"third_party/{name}.licence.txt"] = licence(name)
    files["COMMIT"] = f"{commit()}\n".encode()
    return files


def write(target):
    """Writes a reproducible archive: names are sorted, and all times are the commit's."""
    when = int(git("log", "-1", "--format=%ct"))
    files = contents()
    with open(target, "wb") as raw, gzip.GzipFile("", "wb", mtime=when, fileobj=raw) as packed:
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for name in sorted(files):
                entry = tarfile.TarInfo(f"{FOLDER}/{name}")
                entry.size, entry.mtime = len(files[name]), when
                entry.mode = 0o755 if files[name].startswith(b"#!") else 0o644
                archive.addfile(entry, io.BytesIO(files[name]))
    return len(files)


def main():
    parser = argparse.ArgumentParser(prog="gpu:pack", description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--out", type=Path, default=ROOT / f"{FOLDER}.tar.gz")
    target = parser.parse_args().out
    count = write(target)
    print(f"{target}: {count} files, {target.stat().st_size / 1e6:.1f} MB, commit {commit()}")
    print(f"there: tar xzf {target.name} && python3 {FOLDER}/tools/gpu/check.py")


if __name__ == "__main__":
    main()
