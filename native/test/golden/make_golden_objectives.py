"""Writes the golden files of preference objectives: losses, metrics and gradients by torch's autograd.

    pip install torch transformers peft numpy
    python native/test/golden/make_golden_objectives.py [directory]

Each case is a pair of files as make_golden_families.py describes them:
  objectives_full  all parameters are trained; the reference is another model, whose log-probabilities are in the file.
  objectives_lora  adapters of peft are trained; the reference is the model with its adapters disabled.
The formulas are written down from the papers: Rafailov 2023 (DPO; cDPO by Mitchell), Azar 2023 (IPO, with means over
tokens), Hong 2024 (ORPO), Ethayarajh 2024 (KTO), Meng 2024 (SimPO). Losses are sums over pairs, or over sequences in
KTO.
"""

import copy
import pathlib
import sys

import numpy as np
import torch
from peft import LoraConfig, get_peft_model
from torch.nn.functional import logsigmoid
from transformers import LlamaConfig, LlamaForCausalLM, Qwen3Config, Qwen3ForCausalLM

from make_golden_adapters import plain
from make_golden_families import randomise, write_architecture
from make_golden_model import IGNORED, GoldenFile

SMALL = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2,
         "num_key_value_heads": 1, "vocab_size": 29, "max_position_embeddings": 64, "rms_norm_eps": 1e-6,
         "attn_implementation": "eager", "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}}
LENGTH = 13
PROMPTS, ENDS = (3, 5), ((13, 10), (8, 13))  # tokens of the prompt of each pair, and of both sequences
DESIRABLE = (1, 0, 0, 1)
OPTIONS = {
    "dpo": {"beta": 0.1},
    "cdpo": {"beta": 0.3, "label_smoothing": 0.15},
    "ipo": {"beta": 0.4},
    "orpo": {"beta": 0.7},
    "simpo": {"beta": 2.0, "gamma": 0.6},
    "kto": {"beta": 0.2, "desirable_weight": 1.25, "undesirable_weight": 0.75},
}


def leaf(vocab):
    """Sequences 2i and 2i + 1 have a prompt in common; targets are the completions' tokens."""
    tokens = torch.randint(vocab, (len(DESIRABLE), LENGTH + 1))
    for pair, prompt in enumerate(PROMPTS):
        tokens[2 * pair + 1, :prompt] = tokens[2 * pair, :prompt]
    return with_targets(tokens, [prompt for prompt in PROMPTS for _ in range(2)], [end for ends in ENDS
        for end in ends])


def with_targets(tokens, prompts, ends):
    targets = tokens[:, 1:].clone()
    for row, (prompt, end) in enumerate(zip(prompts, ends)):
        targets[row, : prompt - 1] = IGNORED
        targets[row, end - 1:] = IGNORED
    return tokens[:, :-1], targets


def mismatched(vocab):
    """A leaf for KTO's estimate of the divergence."""
    return with_targets(torch.randint(vocab, (len(DESIRABLE), LENGTH + 1)), (4, 2, 3, 5), (9, 13, 12, 7))


def log_probs(model, tokens, targets):
    """(B) sums over targets, and their numbers."""
    logits = model(input_ids=tokens, use_cache=False).logits.double()
    counts = targets != IGNORED
    of_targets = logits.log_softmax(-1).gather(-1, targets.clamp(min=0)[..., None])[..., 0]
    return (of_targets * counts).sum(-1), counts.sum(-1)


def pair_losses(kind, options, policy, reference, counts):
    """(pairs) losses, and (B) rewards."""
    beta, ratio = options["beta"], policy - reference
    mean, mean_ratio = policy / counts, ratio / counts

    def apart(values):
        return values[0::2] - values[1::2]

    if kind in ("dpo", "cdpo"):
        epsilon = options.get("label_smoothing", 0.0)
        losses = -(1 - epsilon) * logsigmoid(beta * apart(ratio)) - epsilon * logsigmoid(-beta * apart(ratio))
        return losses, beta * ratio
    if kind == "ipo":
        return (apart(mean_ratio) - 1 / (2 * beta)) ** 2, beta * mean_ratio
    if kind == "orpo":
        probability = mean.exp()
        odds = probability / (1 - probability)
        log_odds_ratio = torch.log(odds[0::2] / odds[1::2])
        return -mean[0::2] - beta * torch.log(torch.sigmoid(log_odds_ratio)), beta * mean
    assert kind == "simpo"
    return -logsigmoid(beta * mean[0::2] - beta * mean[1::2] - options["gamma"]), beta * mean


def kto(options, policy, reference, kl):
    """(B) λ_y − v(x, y), and β r and whether r is on the right side of the reference point."""
    desirable = torch.tensor(DESIRABLE).bool()
    beta, ratio = options["beta"], policy - reference
    gain = options["desirable_weight"] * torch.sigmoid(beta * (ratio - kl))
    pain = options["undesirable_weight"] * torch.sigmoid(beta * (kl - ratio))
    weights = torch.where(desirable, options["desirable_weight"], options["undesirable_weight"])
    return weights - torch.where(desirable, gain, pain), beta * ratio, (ratio > kl) == desirable


def write_objective(golden, model, kind, data, reference, kl):
    options = OPTIONS[kind]
    model.zero_grad()
    policy, counts = log_probs(model, *data)
    if kind == "kto":
        losses, rewards, correct = kto(options, policy, reference, kl)
        chosen = torch.tensor(DESIRABLE).bool()
    else:
        losses, rewards = pair_losses(kind, options, policy, reference, counts)
        chosen, correct = torch.arange(len(policy)) % 2 == 0, rewards[0::2] > rewards[1::2]
    losses.sum().backward()
    numbers = {**options, "loss": losses.sum().item(), "accuracy": correct.double().mean().item(),
               "reward_chosen": rewards[chosen].sum().item(), "reward_rejected": rewards[~chosen].sum().item(),
               "margin": (rewards[chosen].mean() - rewards[~chosen].mean()).item(),
               "log_prob_chosen": policy[chosen].sum().item(), "log_prob_rejected": policy[~chosen].sum().item()}
    for key, value in numbers.items():
        golden.number(f"{kind}.{key}", value)
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            golden.tensor(f"grad.{kind}.{plain(name)}", parameter.grad.numpy().copy())


def full(seed):
    torch.manual_seed(seed)
    model = Qwen3ForCausalLM(Qwen3Config(**SMALL, head_dim=8,
        tie_word_embeddings=True)).float().eval()
    randomise(model)
    other = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.03)
    return model, lambda leaf: log_probs(other, *leaf)[0]


def lora(seed):
    torch.manual_seed(seed)
    model = LlamaForCausalLM(LlamaConfig(**SMALL)).float().eval()
    randomise(model)
    model = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", r=3, lora_alpha=5, target_modules=LORA_TARGETS)).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if ".lora_" in name:
                parameter.copy_((torch.randn_like(parameter) * 0.2).to(torch.bfloat16).float())

    def reference(leaf):
        with model.disable_adapter():
            return log_probs(model, *leaf)[0]

    return model, reference


LORA_TARGETS = ["q_proj", "v_proj", "up_proj", "down_proj"]


def one_case(directory, name, make, seed):
    while True:  # until KTO's reference point is not 0
        model, reference_of = make(seed)
        vocab = model.config.vocab_size
        data, other = leaf(vocab), mismatched(vocab)
        with torch.no_grad():
            reference, reference_kl = reference_of(data), reference_of(other)
            kl = (log_probs(model, *other)[0] - reference_kl).mean().clamp(min=0)
        if kl > 0.2:
            break
        seed += 1
    golden = GoldenFile(directory, name)
    write_architecture(golden, model.config)
    for key, value in {"batch": len(DESIRABLE), "length": LENGTH, "kl": kl.item()}.items():
        golden.number(key, value)
    if make is lora:
        golden.number("adapter.rank", 3)
        golden.number("adapter.scale", 5 / 3)
        golden.lines.append("word adapter.target_modules " + ",".join(LORA_TARGETS))
    for prefix, (tokens, targets), values in (("", data, reference), ("kl.", other, reference_kl)):
        golden.tensor(prefix + "tokens", tokens.numpy().astype(np.int32))
        golden.tensor(prefix + "targets", targets.numpy().astype(np.int32))
        for row, value in enumerate(values):
            golden.number(f"{prefix}reference.{row}", value.item())
    for key, parameter in model.named_parameters():
        golden.bf16_tensor("param." + plain(key), parameter)
    for kind in OPTIONS:
        write_objective(golden, model, kind, data, reference, kl)
    golden.write()


def main():
    directory = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    torch.set_num_threads(1)
    one_case(directory, "objectives_full", full, seed=5)
    one_case(directory, "objectives_lora", lora, seed=6)


if __name__ == "__main__":
    main()
