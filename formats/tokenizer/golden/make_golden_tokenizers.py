"""Writes tokenizers.json: what the Rust library of Hugging Face makes of each component of a tokenizer.json.

    pip install tokenizers==0.23.2 sentencepiece==0.2.2
    python formats/tokenizer/golden/make_golden_tokenizers.py

A component that the library can't read, or that fails for a text, has an error in place of a result.
"""
import json
from pathlib import Path

from make_components import (
    ADDED_TEXTS,
    DECODERS,
    FULL_MODEL,
    MODELS,
    NORMALIZERS,
    PIECES,
    PRE_TOKENIZERS,
    TOKEN_LISTS,
    TOKENIZERS,
)
from tokenizers import Tokenizer

TEXTS = [
    "",
    " ",
    "Hello, world!  It's 12345 o'clock... isn't it?",
    "  leading and trailing \t\n",
    "\u00a0\u3000wide\u2003spaces\u0085here\ufeff",
    "Grüße aus Zürich: ÀÉÎ café cafe\u0301 ΑΣ ΟΔΟΣ İstanbul",
    "世界 und 🌍👩‍👩‍👧 १२३ ٣٤٥ ½ ⅷ ①",
    "a--b__c!!??«x»‚y‛ – —  $5+3=8 ~`^|",
    "line one\nline two\r\n\r\nline  three\n\n\n",
    "\u0000ctrl\u0007\u200b\u200d\u00ad\ufffd\ue000x\u0378y",
    "ﬁne ℌello ｆｕｌｌ ㍿ ²³ ǆ",
    "▁under▁▁score ▁ x",
    "हिन्दी नमस्ते ไทย คำ עִבְרִית العَرَبِيَّة 한국어 한글",
    "don't we'll I'm they've HE'S\u2019s",
    "don't . no , yes ? n't 'm ' x ' s",
    "x" * 30,
]


def minimal(**parts):
    model = {"type": "BPE", "vocab": {"a": 0}, "merges": []}
    file = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None}
    return file | {"pre_tokenizer": None, "post_processor": None, "decoder": None, "model": model} | parts


def attempt(run):
    try:
        return {"result": run()}
    except BaseException as error:  # a panic of Rust is no Exception
        if isinstance(error, KeyboardInterrupt):
            raise
        return {"error": str(error)[:80]}


def load(**parts):
    return Tokenizer.from_str(json.dumps(minimal(**parts)))

def tokenizer_case(parts):
    parts = {"model": FULL_MODEL} | parts
    case = {"file": parts, **attempt(lambda: load(**parts) and None)}
    if "error" in case:
        return case
    plain, as_text = load(**parts), load(**parts)
    as_text.encode_special_tokens = True
    case["texts"] = [
        {
            "text": text,
            "ids": plain.encode(text, add_special_tokens=False).ids,
            "as_text": as_text.encode(text, add_special_tokens=False).ids,
            "whole": plain.encode(text).ids,
            "decoded": plain.decode(plain.encode(text, add_special_tokens=False).ids),
        }
        for text in ADDED_TEXTS
    ]
    return case


def cases(name, components, inputs, run):
    for component in components:
        loaded = attempt(lambda: load(**{name: component}) and None)
        if "error" in loaded:
            yield {"component": component, **loaded}
        else:
            tokenizer = load(**{name: component})
            yield {"component": component, "results": [attempt(lambda: run(tokenizer, given)) for given in inputs]}


def model_ids(tokenizer, piece):
    return tokenizer.encode(piece, add_special_tokens=False).ids


golden = {
    "texts": TEXTS,
    "normalizer": list(cases("normalizer", NORMALIZERS, TEXTS, lambda t, text: t.normalizer.normalize_str(text))),
    "pre_tokenizer": list(cases("pre_tokenizer", PRE_TOKENIZERS, TEXTS[1:], lambda t, text: [piece for piece, _ in t.pre_tokenizer.pre_tokenize_str(text)])),
    "pieces": PIECES,
    "model": list(cases("model", MODELS, PIECES, model_ids)),
    "token_lists": TOKEN_LISTS,
    "decoder": list(cases("decoder", DECODERS, TOKEN_LISTS, lambda t, tokens: t.decoder.decode(tokens))),
    "tokenizers": [tokenizer_case(parts) for parts in TOKENIZERS],
}
target = Path(__file__).parent / "tokenizers.json"
target.write_text(json.dumps(golden, ensure_ascii=True, separators=(",", ":")) + "\n")
print(target, target.stat().st_size, "bytes")
