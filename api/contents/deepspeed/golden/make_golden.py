"""Makes NAME.tar.br: python3 make_golden.py NAME FOLDER

FOLDER has config.json files and checkpoints that DeepSpeed 0.19.6 wrote with torch 2.13 on two ranks. deepspeed, after
six steps of AdamW, fp32:
  zero2/global_step6, zero3/global_step6                            of engine.save_checkpoint
  zero2/global_step6_universal, zero3/global_step6_universal        of ds_to_universal.py --inject_missing_state

modes, after five steps, stage 2:
  round_robin/global_step5[_universal]   Llama, fp32, round_robin_gradients
  mixtral/global_step5[_universal]       Mixtral of transformers 5.18, fp32
  fp16/global_step5                      Llama, fp16 with a dynamic loss scale that began at 2^20; three steps were
                                         skipped

Pickle and zip layout are DeepSpeed's. Only the values of storages with more than 16 elements are reduced, which makes
some hundred kB of 5 MB. In deepspeed each 32-bit float keeps its sign and exponent, in modes its sign alone (1 or -1),
and below modes/fp16/ all values are zeros. Equal values stay equal in all files, so a raw checkpoint still has the
numbers of its universal one.
"""

import io
import struct
import subprocess
import sys
import tarfile
import zipfile
import zlib
from pathlib import Path

HERE = Path(__file__).parent
BROTLI = """
const { brotliCompressSync, constants: c } = require('node:zlib');
const chunks = [];
process.stdin.on('data', (d) => chunks.push(d)).on('end', () => process.stdout.write(brotliCompressSync(Buffer.concat(chunks), {
  params: { [c.BROTLI_PARAM_LGWIN]: 24, [c.BROTLI_PARAM_QUALITY]: 11 },
})));
"""


def coarse(content):
    data = bytearray(content)
    count = len(data) // 4
    data[0::4] = data[1::4] = bytes(count)
    data[2::4] = bytes(byte & 0x80 for byte in data[2::4])
    return bytes(data)


def signs(content):
    data = bytearray(content)
    count = len(data) // 4
    data[0::4] = data[1::4] = bytes(count)
    data[2::4] = b"\x80" * count
    data[3::4] = bytes(byte & 0x80 | 0x3F for byte in data[3::4])
    return bytes(data)


def zeros(content):
    return bytes(len(content))


def patched(file, change):
    """The same archive with changed values and their checksums."""
    data = bytearray(file)
    archive = zipfile.ZipFile(io.BytesIO(file))
    at = archive.start_dir
    for info in archive.infolist():
        name_bytes, extra, comment = struct.unpack_from("<HHH", data, at + 28)
        if "/data/" in info.filename and info.file_size > 64 and info.file_size % 4 == 0:
            local_name, local_extra = struct.unpack_from("<HH", data, info.header_offset + 26)
            begin = info.header_offset + 30 + local_name + local_extra
            end = begin + info.file_size
            data[begin:end] = change(data[begin:end])
            crc = struct.pack("<L", zlib.crc32(data[begin:end]))
            data[at + 16 : at + 20] = crc
            if info.flag_bits & 8:
                assert data[end : end + 4] == b"PK\x07\x08", "the data descriptor has a signature"
                data[end + 4 : end + 8] = crc
            if any(data[info.header_offset + 14 : info.header_offset + 18]):
                data[info.header_offset + 14 : info.header_offset + 18] = crc
        at += 46 + name_bytes + extra + comment
    assert zipfile.ZipFile(io.BytesIO(bytes(data))).testzip() is None
    return bytes(data)


def main(name, folder):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in sorted(folder.rglob("*")):
            at = path.relative_to(folder)
            is_config = path.name == "config.json"
            if not (is_config or (path.suffix == ".pt" and path.is_file())):
                continue
            content = path.read_bytes()
            change = coarse if name == "deepspeed" else zeros if at.parts[0] == "fp16" else signs
            content = content if is_config else patched(content, change)
            info = tarfile.TarInfo(at.as_posix())
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    packed = subprocess.run(["node", "-e", BROTLI], input=out.getvalue(), capture_output=True, check=True).stdout
    (HERE / f"{name}.tar.br").write_bytes(packed)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
