"""Components of a tokenizer.json, each as make_golden_tokenizers.py gives it to the library."""
import base64
import io
import itertools
import tempfile
from pathlib import Path

import sentencepiece


def field(message, wanted):
    """A field of a protocol buffer: of a model 3 is the normalizer, and of that 2 is the table."""
    place, found = 0, b""

    def varint():
        nonlocal place
        value = shift = 0
        while True:
            byte = message[place]
            place, value, shift = place + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value

    while place < len(message):
        tag = varint()
        size = varint() if tag & 7 in (0, 2) else {1: 8, 5: 4}[tag & 7]
        if tag & 7 == 0:
            continue
        if tag >> 3 == wanted:
            found = message[place : place + size]
        place += size
    return found


def charsmap():
    """A table of a few replacements in the form of SentencePiece."""
    rules = ["FB01\t66 69", "FF46\t66", "20\t2581 20", "A0\t20", "2581\t20", "0065 0301\tE9", "0041 0301\tC1", "7\t", "130\t69", "0E04 0E33\t0E04"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rules.tsv"
        path.write_text("\n".join(rules) + "\n")
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["hello world", "a b c d e f g"] * 10),
            model_writer=model,
            vocab_size=16,
            normalization_rule_tsv=str(path),
            minloglevel=2,
        )
    return base64.b64encode(field(field(model.getvalue(), 3), 2)).decode()


CHARSMAP = charsmap()

NORMALIZERS = [
    *({"type": kind} for kind in ["NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt", "ByteLevel"]),
    *({"type": "Strip", "strip_left": left, "strip_right": right} for left in (True, False) for right in (True, False)),
    {"type": "Prepend", "prepend": "▁"},
    {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
    {"type": "Replace", "pattern": {"String": "a--"}, "content": "$&"},
    {"type": "Replace", "pattern": {"String": ""}, "content": "-"},
    {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "▁"},
    {"type": "Replace", "pattern": {"Regex": "\\s+"}, "content": ""},
    {"type": "Replace", "pattern": {"Regex": "(?=\\d)"}, "content": "|"},
    {"type": "Replace", "pattern": {"Regex": "(\\w)\\1"}, "content": "<$1\\1>"},
    {"type": "Precompiled", "precompiled_charsmap": CHARSMAP},
    {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}, {"type": "Lowercase"}]},
    {"type": "Sequence", "normalizers": []},
    *(
        {"type": "BertNormalizer", "clean_text": clean, "handle_chinese_chars": chinese, "strip_accents": accents, "lowercase": lower}
        for clean, chinese, accents, lower in [
            (True, True, None, True),
            (True, False, None, False),
            (False, True, True, False),
            (False, False, False, True),
        ]
    ),
    {"type": "Unheard"},
]

REGEXES = [
    "(?=\\d)",
    "(?<=\\d)(?=\\D)|$",
    "^",
    "\\d",
    "\\s",
    "\\w+",
    "\\W+",
    "\\b",
    "\\p{P}|\\p{S}",
    "[^\\s\\p{L}]+",
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    " ?[^(\\s|[.,!?…。，、।۔،])]+",
    "[一-龥぀-ゟ゠-ヿ]+",
    "[0-9][0-9][0-9]|\\h+",
    "[[:alpha:]]+|[[:punct:]]",
    "(?>a|ab)c|x++",
    "\\X",
    "(",
]
# Patterns that published files of families have, without those above: cl100k with possessive quantifiers, o200k,
# Mistral as it was trained, and the three of DeepSeek-V3.
FAMILY_REGEXES = [
    "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+",
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    "\\p{N}{1,3}",
    "[一-龥぀-ゟ゠-ヿ]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
]
BEHAVIORS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
METASPACE = {"type": "Metaspace", "replacement": "▁"}
BYTES_ONLY = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}

PRE_TOKENIZERS = [
    *({"type": kind} for kind in ["BertPreTokenizer", "Whitespace", "WhitespaceSplit", "UnicodeScripts", "Unheard"]),
    {"type": "Digits", "individual_digits": True},
    {"type": "Digits", "individual_digits": False},
    {"type": "Punctuation"},
    *({"type": "Punctuation", "behavior": behavior} for behavior in BEHAVIORS),
    {"type": "CharDelimiterSplit", "delimiter": "-"},
    {"type": "CharDelimiterSplit", "delimiter": "🌍"},
    {"type": "FixedLength", "length": 3},
    {"type": "FixedLength"},
    *(
        METASPACE | {"prepend_scheme": scheme, "split": split}
        for scheme in ["first", "never", "always"]
        for split in [True, False]
    ),
    METASPACE | {"add_prefix_space": True},
    METASPACE | {"add_prefix_space": False},
    METASPACE | {"add_prefix_space": False, "prepend_scheme": "never", "str_rep": "▁"},
    *(
        {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": regex}
        for prefix in [True, False]
        for regex in [True, False]
    ),
    *(
        {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": invert}
        for regex in REGEXES
        for invert in [False, True]
    ),
    *(
        {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}
        for pattern in [{"Regex": "(?=\\d)"}, {"Regex": "\\s"}, {"String": "--"}, {"String": ""}, {"Regex": "[^a-z]"}]
        for behavior in BEHAVIORS
        for invert in [False, True]
    ),
    {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, METASPACE | {"prepend_scheme": "first"}]},
    {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, METASPACE | {"prepend_scheme": "always"}]},
    {
        "type": "Sequence",
        "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": "\\p{N}{1,3}"}, "behavior": "Isolated", "invert": False},
            {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
        ],
    },
    {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, {"type": "Punctuation", "behavior": "Contiguous"}]},
    *(
        {"type": "Sequence", "pretokenizers": [*({"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False} for regex in regexes), BYTES_ONLY]}
        for regexes in [*([regex] for regex in FAMILY_REGEXES[:3]), FAMILY_REGEXES[3:]]
    ),
    {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, BYTES_ONLY | {"use_regex": True}]},
    {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False},
    {"type": "Sequence", "pretokenizers": [METASPACE, METASPACE | {"prepend_scheme": "first"}]},
    {"type": "Sequence", "pretokenizers": []},
]

LETTERS = {letter: id for id, letter in enumerate("abcdefgh")}
BYTES = {f"<0x{byte:02X}>": 100 + byte for byte in range(256)}


def bpe(merges, extra=(), **options):
    vocab = dict(LETTERS)
    for merge in merges:
        vocab.setdefault("".join(merge), len(vocab))
    for token in extra:
        vocab.setdefault(token, len(vocab))
    return {"type": "BPE", "vocab": vocab, "merges": [list(merge) for merge in merges]} | options


PAIRS = [("a", "b"), ("b", "c"), ("ab", "c"), ("a", "bc"), ("c", "d"), ("a", "a"), ("aa", "aa"), ("e", "f"), ("abc", "d")]
UNIGRAM = [["<unk>", 0.0], ["a", -1.0], ["b", -1.5], ["ab", -2.0], ["abc", -2.1], ["c", -2.5], ["cd", -4.0], ["d", -4.5], ["aaa", -2.9], ["世", -3.0], ["xy", -9.0], ["<0x78>", -9.5]]
MODELS = [
    bpe(PAIRS),
    bpe(PAIRS) | {"merges": [" ".join(pair) for pair in PAIRS]},
    bpe(PAIRS + [("a", "b")]),
    bpe(PAIRS, ["<unk>"], unk_token="<unk>"),
    bpe(PAIRS, ["<unk>"], unk_token="<unk>", fuse_unk=True),
    bpe(PAIRS + [("<unk>", "a")], ["<unk>"], unk_token="<unk>"),
    bpe(PAIRS, unk_token="<missing>"),
    bpe(PAIRS, ["<unk>", *BYTES], unk_token="<unk>", byte_fallback=True),
    bpe(PAIRS, ["<unk>", *list(BYTES)[:128]], unk_token="<unk>", byte_fallback=True),
    bpe(PAIRS, ["abcdefgh", "世界"], ignore_merges=True),
    bpe([], ["##b", "a##b", "ab", "##c"], continuing_subword_prefix="##") | {"merges": [["a", "##b"], ["ab", "##c"]], "vocab": {"a": 0, "##b": 1, "ab": 2, "##c": 3, "abc": 4}},
    bpe([], ["b</w>"], end_of_word_suffix="</w>") | {"vocab": LETTERS | {"b</w>": 8, "ab</w>": 9}, "merges": [["a", "b</w>"]]},
    bpe(PAIRS, dropout=0.0),
    bpe(PAIRS, dropout=0.5),
    bpe([("a", "z")]) | {"vocab": LETTERS},
    {"type": "WordPiece", "vocab": {"[UNK]": 0, "a": 1, "##b": 2, "ab": 3, "##c": 4, "##bc": 5, "世": 6, "##界": 7}, "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 10},
    {"type": "WordPiece", "vocab": {"a": 1}, "unk_token": "[UNK]", "continuing_subword_prefix": "@", "max_input_chars_per_word": 10},
    {"type": "Unigram", "vocab": UNIGRAM, "unk_id": 0},
    {"type": "Unigram", "vocab": UNIGRAM, "unk_id": None},
    {"type": "Unigram", "vocab": UNIGRAM, "unk_id": 99},
    {"type": "Unigram", "vocab": UNIGRAM + [[f"<0x{byte:02X}>", -20.0] for byte in range(256)], "unk_id": 0, "byte_fallback": True},
    {"type": "Unigram", "vocab": UNIGRAM, "unk_id": 0, "byte_fallback": True},
    {"type": "WordLevel", "vocab": {"a": 0, "[UNK]": 1}, "unk_token": "[UNK]"},
]
PIECES = ["a", "ab", "abc", "abcd", "abcdabcd", "aaaaaaa", "bcabcdaab", "abcdefgh", "世界", "世", "xa", "xyxy", "axxb世x", "zzz", "ézb", "🌍a🌍🌍", "abababababab", "aaab", "cdab", "xyzxy", "abcdaabcdb" * 4, "ab世xcd" * 9]

PROCESSORS = [
    None,
    {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
    {"type": "BertProcessing", "sep": ["h", 7], "cls": ["g", 6]},
    {"type": "RobertaProcessing", "sep": ["h", 7], "cls": ["g", 6], "trim_offsets": True, "add_prefix_space": True},
    {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "g", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "end", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {"g": {"id": "g", "ids": [6], "tokens": ["g"]}, "end": {"id": "end", "ids": [7, 5], "tokens": ["h", "f"]}},
    },
    {"type": "Unheard"},
]
PROCESSORS += [{"type": "Sequence", "processors": [PROCESSORS[index] for index in used]} for used in [(1, 4), (3, 1), (1, 4, 2)]]

TOKEN_LISTS = [
    ["a"],
    ["▁Hello", "▁wor", "##ld", "</w>"],
    ["Ġthe", "Ã", "©", "x", "世", "Ċ"],
    ["a", "<0xE4>", "<0xB8>", "<0x96>", "b", "<0xFF>", "<0xE4>", "c"],
    ["▁▁x▁", "--x--", "y</w>", "z</w>"],
    ["do", "n't", "##'s", "stop", ".", "' ", "do not", "!"],
]
DECODERS = [
    {"type": "BPEDecoder", "suffix": "</w>"},
    {"type": "ByteFallback"},
    {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
    {"type": "Fuse"},
    *(METASPACE | {"prepend_scheme": scheme, "split": True} for scheme in ["first", "never", "always"]),
    {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
    {"type": "Replace", "pattern": {"Regex": "[▁-]+"}, "content": " "},
    {"type": "Strip", "content": "-", "start": 1, "stop": 0},
    {"type": "Strip", "content": "▁", "start": 2, "stop": 1},
    {"type": "WordPiece", "prefix": "##", "cleanup": True},
    {"type": "WordPiece", "prefix": "##", "cleanup": False},
    {"type": "CTC", "pad_token": "<pad>", "word_delimiter_token": "|", "cleanup": True},
    {"type": "Unheard"},
]
DECODERS += [{"type": "Sequence", "decoders": [DECODERS[7], {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}]

ADDED_TEXTS = [
    "a<t>b",
    "a <t> b",
    " a  <t>  <t>  b ",
    "<t>",
    "ab<T>a<t><t>ab",
    "xa<t>b x<t> <t>x é<t>é",
    "a <tt> b<t>>c",
    "A AB ab",
    "\u00a0<t>\u2003a\n<t>\n",
]


def added(content="<t>", **flags):
    return {"content": content, "id": flags.pop("id", 20), "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True} | flags


VOCAB = {character: id for id, character in enumerate("abcdefgh <>tTxAé▁\n\u00a0z")}
FULL_MODEL = {"type": "BPE", "vocab": VOCAB, "merges": []}
NORMALIZED = [None, {"type": "Lowercase"}, {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}]
TOKENIZERS = [
    *(
        {"added_tokens": [added(**dict(zip(("single_word", "lstrip", "rstrip"), flags)), normalized=normalized, special=special)], "normalizer": normalizer}
        for flags in itertools.product([False, True], repeat=3)
        for normalized, special, normalizer in [(False, True, None), (True, False, NORMALIZED[1]), (True, True,
            NORMALIZED[2])]
    ),
    {"added_tokens": [added(), added("<tt>", id=21), added("<t", id=22)]},
    {"added_tokens": [added("A", id=14, normalized=True, special=False)], "normalizer": NORMALIZED[1]},
    {"added_tokens": [added(), added("<T>", id=21, normalized=True)], "normalizer": NORMALIZED[1]},
    {"added_tokens": [added(), added("<t>", id=20, lstrip=True)]},
    {"added_tokens": [added(id=99)]},
    {"added_tokens": [added(), added("<u>", id=22)]},
    {"added_tokens": [added("<t>", normalized=True, special=False), added("<T>", id=21, normalized=True, special=False)], "normalizer": NORMALIZED[1]},
    *({"added_tokens": [added()], "pre_tokenizer": METASPACE | {"prepend_scheme": scheme}} for scheme in ["first", "never", "always"]),
    *(
        {"added_tokens": [added()], "normalizer": normalizer, "pre_tokenizer": METASPACE | {"prepend_scheme": "first"}}
        for normalizer in [{"type": "Strip", "strip_left": True, "strip_right": False}, NORMALIZED[1], {"type": "Replace", "pattern": {"String": " a"}, "content": ""}]
    ),
    *({"added_tokens": [added()], "post_processor": processor} for processor in PROCESSORS),
]
