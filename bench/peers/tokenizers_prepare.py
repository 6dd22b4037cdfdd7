"""The preparation of bench/prepare.ts with Hugging Face's `tokenizers`, and its inputs.

`tokenizers_prepare.py make FOLDER --from FOLDER --megabytes N` writes text.jsonl and chats.jsonl, made of the
paragraphs of Markdown files in a random order. It also writes tokenizer.json, a byte-level BPE of 32,000 tokens trained
on them. `tokenizers_prepare.py encode FOLDER KIND` reads the lines with `json`, renders chats with a compiled Jinja
template and encodes them in batches. It writes the tokens to a file, and prints one JSON line. `RAYON_NUM_THREADS` is
the number of threads.
"""

import argparse
import array
import json
import random
import resource
import time
from pathlib import Path

from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

VOCAB = 32_000
BATCH = 1_000
SPECIAL = ["<|im_start|>", "<|im_end|>"]


def paragraphs(folder):
    found = []
    for file in sorted(Path(folder).rglob("*.md")):
        text = file.read_text(encoding="utf8", errors="ignore")
        found += [part for part in text.split("\n\n") if 40 < len(part) < 2000 and "\ufffd" not in part and "<|" not in part]
    random.Random(1).shuffle(found)
    return found


def make(folder, source, megabytes):
    parts = paragraphs(source)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(parts, trainers.BpeTrainer(vocab_size=VOCAB - len(SPECIAL),
        initial_alphabet=alphabet, show_progress=False))
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL])
    tokenizer.save(str(folder / "tokenizer.json"))
    draw = random.Random(2)
    def chat():
        questions = [draw.choice(parts)[:400], draw.choice(parts)[:200]]
        roles = ["user", "assistant", "user", "assistant"]
        return {"messages": [{"role": role, "content": questions[at // 2] if at % 2 == 0 else draw.choice(parts)} for at, role in enumerate(roles)]}
    def text():
        return {"text": "\n\n".join(draw.choice(parts) for _ in range(draw.randint(1, 6)))}
    for name, row in (("text", text), ("chats", chat)):
        written = 0
        with open(folder / f"{name}.jsonl", "w", encoding="utf8") as file:
            while written < megabytes * 1e6:
                written += file.write(json.dumps(row(), ensure_ascii=False) + "\n")


def encode(folder, kind):
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    template = ImmutableSandboxedEnvironment(trim_blocks=True,
        lstrip_blocks=True).from_string((folder / "template.jinja").read_text())
    began, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    count = 0
    with open(folder / f"{kind}.jsonl", encoding="utf8") as lines, open(folder / "peer.tokens", "wb") as out:
        def flush(texts):
            ids = array.array("H")
            for encoded in tokenizer.encode_batch_fast(texts, add_special_tokens=False):
                ids.extend(encoded.ids)
            ids.tofile(out)
            return len(ids)
        texts = []
        for line in lines:
            row = json.loads(line)
            texts.append(row["text"] if kind == "text" else template.render(messages=row["messages"], add_generation_prompt=False))
            if len(texts) == BATCH:
                count += flush(texts)
                texts = []
        count += flush(texts)
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
    print(json.dumps({"tokens": count, "seconds": time.perf_counter() - began, "cpu_seconds": cpu}))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["make", "encode"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("kind", nargs="?", choices=["text", "chats"])
    parser.add_argument("--from", dest="source")
    parser.add_argument("--megabytes", type=int)
    args = parser.parse_args()
    if args.what == "make":
        make(args.folder, args.source, args.megabytes)
    else:
        encode(args.folder, args.kind)


main()
