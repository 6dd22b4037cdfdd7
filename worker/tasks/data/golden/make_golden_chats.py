"""Writes chats.json: tokenizers, chat templates and chats with the ids and the assistant masks of transformers.

    python worker/tasks/data/golden/make_golden_chats.py

Needs transformers, tokenizers and jinja2. The tokenizers are trained on a few sentences here, so that nothing is
downloaded.
"""
import json
import tempfile
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

SENTENCES = [
    "The quick brown fox jumps over the lazy dog. 12345 times, isn't it?",
    "Die Grüße kamen über die Straße; 世界 und 🌍 auch.",
    "def f(x):\n    return x + 1\n\n\nprint(f(41))",
    "user assistant system What is the answer? The answer is 42. Hello, how are you? I am fine.",
] * 20

CHATS = [
    [{"role": "user", "content": "What is the answer?"}, {"role": "assistant", "content": "The answer is 42."}],
    [
        {"role": "system", "content": "You are a fox."},
        {"role": "user", "content": "Hello, how are you?"},
        {"role": "assistant", "content": "I am fine.\n\n  And you?  "},
        {"role": "user", "content": "世界 🌍"},
        {"role": "assistant", "content": "Grüße aus der Straße 🌍!"},
    ],
    [{"role": "assistant", "content": ""}, {"role": "user", "content": "x"}],
    [{"role": "user", "content": "<|im_end|> in the text"}, {"role": "assistant", "content": "  def f(x):\n    return x"}],
]

# Turns between special tokens, with tags around the assistant's text and its end.
CHATML = """{% for message in messages %}
    {{- '<|im_start|>' + message['role'] + '\\n' }}
    {%- if message['role'] == 'assistant' %}
        {%- generation %}
            {{- message['content'] + '<|im_end|>' }}
        {%- endgeneration %}
    {%- else %}
        {{- message['content'] + '<|im_end|>' }}
    {%- endif %}
    {{- '\\n' }}
{% endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{% endif %}"""

# No special tokens at the borders: a token may cross them.
PLAIN = """{{ bos_token }}{% for message in messages %}{% if message['role'] == 'assistant' %}A: {% generation %}{{ message['content'] }}{% endgeneration %}
{% else %}{{ message['role'] | upper }}: {{ message['content'] | trim }}
{% endif %}{% endfor %}"""


def byte_level():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        show_progress=False,
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    return tokenizer, {"bos_token": "<|endoftext|>", "eos_token": "<|im_end|>"}


def metaspace():
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    special = ["<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=420, special_tokens=special + [f"<0x{byte:02X}>" for byte in range(256)], show_progress=False
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    # Byte fallback tokens are not added tokens.
    content = json.loads(tokenizer.to_str())
    content["added_tokens"] = [token for token in content["added_tokens"] if not token["content"].startswith("<0x")]
    tokenizer = Tokenizer.from_str(json.dumps(content))
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return tokenizer, {"bos_token": "<s>", "eos_token": "</s>"}


def cases():
    for name, make in {"byte level BPE": byte_level, "BPE with byte fallback": metaspace}.items():
        tokenizer, special = make()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "tokenizer.json"
            tokenizer.save(str(path))
            fast = PreTrainedTokenizerFast(tokenizer_file=str(path), **special)
            content = json.loads(path.read_text())
        texts = [{"text": text, "ids": fast(text)["input_ids"]} for text in dict.fromkeys(SENTENCES)]
        chats = []
        for template_name, template in {"chatml": CHATML, "plain": PLAIN}.items():
            for messages in CHATS:
                made = fast.apply_chat_template(
                    messages, chat_template=template, tokenize=True, return_dict=True, return_assistant_tokens_mask=True
                )
                text = fast.apply_chat_template(messages, chat_template=template, tokenize=False)
                chats.append(
                    {
                        "template": template_name,
                        "messages": messages,
                        "text": text,
                        "ids": made["input_ids"],
                        "mask": made["assistant_masks"],
                    }
                )
        yield {"name": name, "tokenizer": content, "config": special, "texts": texts, "chats": chats}


golden = {"templates": {"chatml": CHATML, "plain": PLAIN}, "tokenizers": list(cases())}
target = Path(__file__).parent / "chats.json"
target.write_text(json.dumps(golden, ensure_ascii=True) + "\n")
print(target, target.stat().st_size, "bytes")
