"""Writes golden/zstd.json: contents packed by the program zstd (1.5), with their sizes and digests.

    python3 api/datasets/unpack/golden/make_golden_zstd.py
"""

import base64
import hashlib
import json
import pathlib
import random
import subprocess
import tempfile

HERE = pathlib.Path(__file__).parent
rng = random.Random(7)

words = ["".join(rng.choices("abcdefghijklmnop", k=rng.randint(2, 9))) for _ in range(60)]
sentences = [" ".join(rng.choices(words, k=12)) for _ in range(6)]
# More than two blocks of 128 KiB, with matches across their borders.
text = "".join(json.dumps({"text": rng.choice(sentences)}) + "\n" for _ in range(3000)).encode()


def packed(content, *options, from_file=True):
    """The header has the size of the content only if it is read from a file."""
    if not from_file:
        return subprocess.run(["zstd", "-q", "-c", *options], input=content, stdout=subprocess.PIPE, check=True).stdout
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        return subprocess.run(["zstd", "-q", "-c", *options, file.name], stdout=subprocess.PIPE, check=True).stdout


noise = rng.randbytes(1500)
skipped = b"\x53\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"notes"
cases = {
    "fast": (text, packed(text, "-1")),
    "best": (text, packed(text, "-19")),
    "of unknown size": (text, packed(text, "-3", from_file=False)),
    "without a checksum": (text, packed(text, "-3", "--no-check")),
    "of stored blocks": (noise, packed(noise)),
    "of runs": (bytes(300_000), packed(bytes(300_000))),
    "of twenty bytes": (text[:20], packed(text[:20])),
    "empty": (b"", packed(b"")),
    "of three frames and one to skip": (
        text[:5000] + noise + text[:20],
        packed(text[:5000]) + packed(noise) + skipped + packed(text[:20]),
    ),
}
golden = {
    name: {
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "packed": base64.b64encode(data).decode(),
    }
    for name, (content, data) in cases.items()
}
(HERE / "zstd.json").write_text(json.dumps(golden, indent=1) + "\n")
