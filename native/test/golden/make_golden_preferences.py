"""Writes the golden file of trainings with preference objectives: what torch computes in several steps of AdamW.

    pip install torch transformers peft numpy
    python native/test/golden/make_golden_preferences.py [directory]

preference_training has the initial parameters of a small Llama, prompts and completions. For `dpo` and `kto` it has
the loss and the means of each step, with all parameters trained in float32. The reference is the model as the training
begins. Formulas are those of make_golden_objectives.py; the order of the data is that of docs/sequence_order.py, and
KTO's mismatched sequences are those of native/train/loss/preference_loss.h.
"""

import copy
import pathlib
import sys

import numpy as np
import torch
from transformers import LlamaForCausalLM

from make_golden_model import GoldenFile, config, write_config
from make_golden_objectives import log_probs, pair_losses, with_targets

sys.path.append(str(pathlib.Path(__file__).parents[3] / "docs"))
from sequence_order import sequence_at  # noqa: E402

STEPS, GLOBAL_BATCH, MICRO_BATCH, LENGTH, SEQUENCES, DATA_SEED = 8, 4, 2, 11, 20, 17
LR, BETAS, EPS, WEIGHT_DECAY, CLIPPING = 1e-2, (0.9, 0.95), 1e-8, 0.1, 1.0
OPTIONS = {"dpo": {"beta": 0.4, "label_smoothing": 0.1}, "kto": {"beta": 0.6, "desirable_weight": 1.25, "undesirable_weight": 0.75}}


def unit_at(num_units, position):
    return sequence_at(DATA_SEED, num_units, *divmod(position, num_units))


def make_sequences(vocab, rng):
    """Lists of (prompt, completion); those of a pair have a prompt in common."""
    prompts = [rng.integers(vocab, size=rng.integers(1, 5)).tolist() for _ in range(SEQUENCES // 2)]
    return [(prompts[i // 2], rng.integers(vocab, size=rng.integers(1, LENGTH - 4)).tolist()) for i in range(SEQUENCES)]


def leaf(sequences):
    """Tokens and targets (B, LENGTH)."""
    rows = torch.zeros(len(sequences), LENGTH + 1, dtype=torch.long)
    for row, (prompt, completion) in enumerate(sequences):
        tokens = (prompt + completion)[: LENGTH + 1]
        rows[row, : len(tokens)] = torch.tensor(tokens)
    ends = [min(len(prompt) + len(completion), LENGTH + 1) for prompt, completion in sequences]
    return with_targets(rows, [len(prompt) for prompt, _ in sequences], ends)


def dpo(model, reference, sequences, units, _):
    data = leaf([sequences[2 * unit + i] for unit in units for i in range(2)])
    policy, counts = log_probs(model, *data)
    losses, rewards = pair_losses("cdpo", OPTIONS["dpo"], policy, log_probs(reference, *data)[0].detach(), counts)
    chosen = torch.arange(len(policy)) % 2 == 0
    return losses, rewards, policy, chosen, rewards[0::2] > rewards[1::2]


def kto(model, reference, sequences, units, labels):
    options, data = OPTIONS["kto"], leaf([sequences[unit] for unit in units])
    other = leaf([(sequences[unit][0], sequences[(unit + max(1, SEQUENCES * 3 // 8)) % SEQUENCES][1]) for unit in units])
    with torch.no_grad():
        kl = (log_probs(model, *other)[0] - log_probs(reference, *other)[0]).mean().clamp(min=0)
    policy, _ = log_probs(model, *data)
    ratio, desirable = policy - log_probs(reference, *data)[0].detach(), torch.tensor([labels[unit]
        for unit in units]).bool()
    gain = options["desirable_weight"] * (1 - torch.sigmoid(options["beta"] * (ratio - kl)))
    pain = options["undesirable_weight"] * (1 - torch.sigmoid(options["beta"] * (kl - ratio)))
    return torch.where(desirable, gain, pain), options["beta"] * ratio, policy, desirable, torch.where(desirable, ratio > kl, ratio < kl)


def train(golden, name, run_leaf, initial, sequences, labels):
    model, reference = copy.deepcopy(initial), initial
    num_units = SEQUENCES // 2 if name == "dpo" else SEQUENCES
    matrices, others = ([p for p in model.parameters() if (p.dim() > 1) == of_matrices] for of_matrices in (True,
        False))
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": WEIGHT_DECAY}, {"params": others, "weight_decay": 0.0}],
                                  lr=LR, betas=BETAS, eps=EPS)
    for step in range(STEPS):
        optimizer.zero_grad()
        leaves = []
        for first in range(0, GLOBAL_BATCH, MICRO_BATCH):
            positions = [step * GLOBAL_BATCH + first + i for i in range(MICRO_BATCH)]
            leaves.append(run_leaf(model, reference, sequences, [unit_at(num_units, position)
                for position in positions], labels))
            (leaves[-1][0].sum() / GLOBAL_BATCH).backward()
        losses, rewards, policy, chosen, correct = (torch.cat([leaf[i].detach() for leaf in leaves]) for i in range(5))
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), CLIPPING)
        numbers = {"loss": losses.mean(), "accuracy": correct.double().mean(), "grad_norm": norm,
                   "reward_chosen": rewards[chosen].mean(), "reward_rejected": rewards[~chosen].mean(),
                   "log_prob_chosen": policy[chosen].mean(), "log_prob_rejected": policy[~chosen].mean()}
        for key, value in numbers.items():
            if not value.isnan():  # KTO may have no desirable sequence in a step
                golden.number(f"{name}.{step}.{key}", value.item())
        optimizer.step()
    print(name, losses.mean().item())


def main():
    directory = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    torch.set_num_threads(1)
    torch.manual_seed(4)
    rng = np.random.default_rng(4)
    cfg = config(hidden=16, intermediate=24, layers=2, heads=2, kv_heads=1, vocab=23, tied=False)
    model = LlamaForCausalLM(cfg).float()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_((parameter + torch.randn_like(parameter) * 0.1).to(torch.bfloat16).float())
    sequences, labels = make_sequences(cfg.vocab_size, rng), rng.integers(2, size=SEQUENCES).tolist()
    golden = GoldenFile(directory, "preference_training")
    write_config(golden, cfg)
    for key, value in {"steps": STEPS, "global_batch": GLOBAL_BATCH, "micro_batch": MICRO_BATCH, "length": LENGTH, "data_seed": DATA_SEED,
                       "lr": LR, "beta1": BETAS[0], "beta2": BETAS[1], "eps": EPS, "weight_decay": WEIGHT_DECAY, "clipping": CLIPPING,
                       **{f"{name}.{key}": value for name, options in OPTIONS.items() for key, value in options.items()}}.items():
        golden.number(key, value)
    tables = {"prompts": [len(prompt) for prompt, _ in sequences], "completions": [len(completion) for _, completion in sequences],
              "labels": labels, "tokens": [token for prompt, completion in sequences for token in prompt + completion]}
    for key, values in tables.items():
        golden.tensor(key, np.array(values, dtype=np.int32))
    for key, parameter in model.named_parameters():
        golden.bf16_tensor("param." + key, parameter)
    for name, run_leaf in (("dpo", dpo), ("kto", kto)):
        train(golden, name, run_leaf, model, sequences, labels)
    golden.write()


if __name__ == "__main__":
    main()
