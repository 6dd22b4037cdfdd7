"""Creates the model folder beside this file with transformers: a small Llama with random bf16 weights, in shards, and a
byte-level BPE tokenizer with a chat template.

    python make.py            (transformers 5.18, torch 2.13)
"""

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

FOLDER = Path(__file__).parent / "model"
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
CORPUS = ["What is the color of the sky? The answer is blue.", "user assistant What is the answer? The answer is 42."]
TEMPLATE = """{% for message in messages %}<|im_start|>{{ message.role }}
{% if message.role == 'assistant' %}{% generation %}{{ message.content }}<|im_end|>{% endgeneration %}{% else %}\
{{ message.content }}<|im_end|>{% endif %}

{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""

tokens = Tokenizer(models.BPE())
tokens.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokens.decoder = decoders.ByteLevel()
alphabet = pre_tokenizers.ByteLevel.alphabet()
trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False)
tokens.train_from_iterator(CORPUS * 10, trainer)
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=tokens, bos_token=SPECIAL[0], eos_token=SPECIAL[2], pad_token=SPECIAL[0], model_max_length=128
)
tokenizer.chat_template = TEMPLATE
tokenizer.save_pretrained(FOLDER)

config = LlamaConfig(
    hidden_size=48,
    intermediate_size=96,
    num_hidden_layers=2,
    num_attention_heads=6,
    num_key_value_heads=2,
    vocab_size=304,
    max_position_embeddings=128,
    rms_norm_eps=1e-5,
    rope_parameters={"rope_type": "default", "rope_theta": 50000.0},
    bos_token_id=tokenizer.bos_token_id,
    eos_token_id=tokenizer.eos_token_id,
)
torch.manual_seed(0)
model = LlamaForCausalLM(config).to(torch.bfloat16)
for name, parameter in model.named_parameters():
    # New norms are ones; other values prove that they were read.
    if name.endswith("norm.weight"):
        torch.nn.init.normal_(parameter, mean=1.0, std=0.1)
model.save_pretrained(FOLDER, max_shard_size="60KB")
