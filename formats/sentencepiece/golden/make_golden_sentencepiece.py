"""Writes sentencepiece.json: small models of SentencePiece, and the pieces and texts that it gives.

    pip install sentencepiece==0.2.2
    python formats/sentencepiece/golden/make_golden_sentencepiece.py
"""
import base64
import contextlib
import io
import json
import random
import tempfile
from pathlib import Path

import sentencepiece

WORDS = "the cat sat on a mat and then the bat ran to the man with a hat in his hand as rain ran down 12 34 5".split()
TEXTS = [
    "",
    " ",
    "   ",
    "the cat sat on the mat",
    " the cat",
    "  the   cat  ",
    "the cat ",
    "the\ncat\n\nran",
    "\nthe",
    "hand\tin\thand",
    "a man with 1234 hats",
    "the▁cat ▁ sat▁▁",
    "▁the ▁",
    "Grüße 世界 🌍 <0x41> <s> </s> <unk> the",
    "世界世界 the 世",
    "<t>the cat",
    "the <t> cat<t><t>ran <u> on",
    "the<tt>cat <t",
    "<t>",
    "ﬁne ﬁ e\u0301 é ｆull 12",
    "thethethecatcatcat" * 20,
    "the cat sat " * 40,
]
RULES = ["FB01\t66 69", "FF46\t66", "A0\t20", "0065 0301\tE9", "A\t20", "9\t20", "1100 1161 11A8\tAC01", "1F30D\t77"]

BASE = {"minloglevel": 2, "hard_vocab_limit": False, "num_threads": 1, "character_coverage": 1.0}
PLAIN = {"normalization_rule_name": "identity"}
LLAMA = {**PLAIN, "byte_fallback": True, "remove_extra_whitespaces": False, "vocab_size": 340}
CASES = {
    "bpe_llama": {"model_type": "bpe", **LLAMA},
    "bpe_no_prefix": {"model_type": "bpe", **LLAMA, "add_dummy_prefix": False},
    "bpe_extra_whitespace": {"model_type": "bpe", **PLAIN, "vocab_size": 80},
    "bpe_symbols": {"model_type": "bpe", **LLAMA, "user_defined_symbols": ["<t>", "<tt>", "<u>"], "control_symbols": ["<c>"]},
    "bpe_symbols_no_prefix": {"model_type": "bpe", **LLAMA, "add_dummy_prefix": False, "user_defined_symbols": ["<t>", "\n", "▁▁", "<tt>"]},
    "bpe_rules": {"model_type": "bpe", "rules": RULES, "vocab_size": 80},
    "bpe_rules_kept_whitespace": {"model_type": "bpe", "rules": RULES, "vocab_size": 80, "remove_extra_whitespaces": False},
    "bpe_other_names": {"model_type": "bpe", **LLAMA, "bos_piece": "<bos>", "eos_piece": "<eos>", "unk_piece": "<oov>", "pad_id": 0, "eos_id": 1, "bos_id": 2, "unk_id": 3},
    "unigram": {"model_type": "unigram", **PLAIN, "vocab_size": 80},
    "unigram_llama": {"model_type": "unigram", **LLAMA},
    "unigram_no_prefix": {"model_type": "unigram", **PLAIN, "vocab_size": 80, "add_dummy_prefix": False, "remove_extra_whitespaces": False},
    "unigram_rules": {"model_type": "unigram", "rules": RULES, "vocab_size": 80},
    "unigram_symbols": {"model_type": "unigram", **LLAMA, "user_defined_symbols": ["<t>", "<tt>", "<u>"], "control_symbols": ["<c>"]},
    "word": {"model_type": "word", **PLAIN, "vocab_size": 20},
    "char": {"model_type": "char", **PLAIN, "vocab_size": 20},
    "suffix": {"model_type": "bpe", **PLAIN, "vocab_size": 80, "treat_whitespace_as_suffix": True},
    "symbol_in_rules": {"model_type": "bpe", "rules": RULES, "vocab_size": 80, "user_defined_symbols": ["\n"]},
}

# Cases whose decoded texts are written after each token.
STREAMED = ("bpe_llama", "unigram")


def sentences():
    draw = random.Random(7)
    return [" ".join(draw.choices(WORDS, k=8)) for _ in range(300)]


def train(rules=None, **options):
    model = io.BytesIO()
    # The model holds the path of its rules.
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        if rules is not None:
            path = Path("rules.tsv")
            path.write_text("\n".join(rules) + "\n")
            options["normalization_rule_tsv"] = str(path)
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(sentences()), model_writer=model, **BASE,
            **options)
    return model.getvalue()


def case(name, options):
    model = train(**options)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    texts = []
    for text in TEXTS:
        ids = processor.encode(text)
        # The text of an unknown character is " ⁇ " there, and special tokens have no text here.
        known = [token for token in ids if not processor.is_unknown(token)]
        prefixes = [processor.decode(known[:count]) for count in range(len(known)
            + 1)] if name in STREAMED and len(known) < 30 else None
        texts.append({"text": text, "ids": ids, "known": known, "prefixes": prefixes, "decoded": processor.decode(known)})
    return {"model": base64.b64encode(model).decode(), "texts": texts}


golden = {name: case(name, options) for name, options in CASES.items()}
target = Path(__file__).resolve().parent / "sentencepiece.json"
target.write_text(json.dumps(golden, ensure_ascii=True, separators=(",", ":")) + "\n")
print(target, target.stat().st_size, "bytes")
