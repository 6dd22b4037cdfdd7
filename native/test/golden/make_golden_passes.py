"""Writes the golden file of a session's losses: values of TRL, log-probabilities and gradients by torch's autograd in
float64.

    pip install torch transformers peft trl numpy
    python native/test/golden/make_golden_passes.py [directory]

`passes` has a small Qwen3, rows of tokens with weights, advantages and the log-probabilities of another model, and for
each loss its value, its metrics and the gradients. PPO, CISPO and DPO are those of TRL's GRPOTrainer and DPOTrainer,
whose means over tokens or pairs are turned into sums; `ppo_kl` has the penalty of `beta` > 0, with weights of 1. TRL's CISPO clips ratios from above only; `cispo_two_sided`,
importance sampling and cross entropy are written down from native/model/objective/pass_loss.h.
"""

import collections
import pathlib
import sys
import types

import numpy as np
import torch
from trl import DPOTrainer, GRPOTrainer

from make_golden_families import write_architecture
from make_golden_model import IGNORED, GoldenFile
from make_golden_objectives import full

LENGTHS, PROMPTS = (13, 9, 11, 13), (3, 3, 5, 5)  # tokens of each row, and of those the first without a target
LENGTH = max(LENGTHS)
CLIP_LOW, CLIP_HIGH, BETA = 0.2, 0.28, 0.3


def rows(vocab):
    tokens = torch.randint(vocab, (len(LENGTHS), LENGTH + 1))
    targets = tokens[:, 1:].clone()
    for row, (length, prompt) in enumerate(zip(LENGTHS, PROMPTS)):
        targets[row, : prompt - 1] = IGNORED
        targets[row, length:] = IGNORED
    return tokens, targets


def log_probs_of(model, tokens, targets):
    logits = model(input_ids=tokens[:, :-1], use_cache=False).logits.double()
    return logits.log_softmax(-1).gather(-1, targets.clamp(min=0)[..., None])[..., 0]


def one_process():
    return types.SimpleNamespace(num_processes=1, device="cpu", sync_gradients=True, gather=lambda x: x,
                                 gather_for_metrics=lambda x: x, reduce=lambda x, reduction=None: x)


def trainer(**settings):
    return types.SimpleNamespace(accelerator=one_process(), aux_loss_enabled=False,
                                 _metrics=collections.defaultdict(lambda: collections.defaultdict(list)), **settings)


def grpo(model, loss_type, tokens, mask, log_probs, drawn, advantages, low, high, base=None):
    """The sum over targets, and the metrics."""
    args = types.SimpleNamespace(delta=None, steps_per_generation=1, use_bias_correction_kl=True)
    beta = 0.0 if base is None else BETA
    stub = trainer(model=model, loss_type=loss_type, epsilon_low=low, epsilon_high=high, beta=beta, args=args,
                   top_entropy_quantile=1.0, off_policy_mask_threshold=None, importance_sampling_level="token",
                   use_vllm=False, current_gradient_accumulation_steps=1, max_completion_length=1 / len(tokens),
                   _entropy_bonus_enabled=False,
                   _get_per_token_logps_and_entropies=lambda *_, **__: (log_probs, torch.zeros_like(log_probs), None))
    inputs = {"prompt_ids": tokens[:, :0], "prompt_mask": mask[:, :0], "completion_ids": tokens[:, 1:],
              "completion_mask": mask, "advantages": advantages, "old_per_token_logps": drawn,
              "num_items_in_batch": torch.tensor(1.0), "ref_per_token_logps": base}
    loss = GRPOTrainer._compute_loss(stub, model, inputs)
    metrics = next(iter(stub._metrics.values()))
    return loss, {key: values[-1] for key, values in metrics.items()}


def dpo(model, tokens, mask, drawn):
    """The sum over pairs, and the metrics."""
    order = list(range(0, len(LENGTHS), 2)) + list(range(1, len(LENGTHS), 2))  # the chosen ones first
    chosen, rejected = (drawn * mask).sum(-1)[order].chunk(2)
    stub = trainer(model=model, ld_alpha=None, precompute_ref_logps=True, f_divergence_type="reverse_kl",
                   loss_types=["sigmoid"], loss_weights=[1.0], beta=BETA, label_smoothing=0.0, use_weighting=False,
                   _total_train_tokens=0, num_completion_tokens=0)
    inputs = {"input_ids": tokens[order], "completion_mask": torch.nn.functional.pad(mask, (1, 0))[order],
              "attention_mask": torch.ones_like(tokens), "ref_chosen_logps": chosen, "ref_rejected_logps": rejected}
    loss = DPOTrainer._compute_loss(stub, model, inputs, return_outputs=False)
    metrics = next(iter(stub._metrics.values()))
    return loss * (len(LENGTHS) // 2), {key: values[-1] for key, values in metrics.items()}


def write_loss(golden, model, name, loss, numbers):
    model.zero_grad()
    loss.backward()
    for key, value in {"loss": loss.item(), **numbers}.items():
        golden.number(f"{name}.{key}", value)
    for key, parameter in model.named_parameters():
        golden.tensor(f"grad.{name}.{key}", parameter.grad.float().numpy().copy())


def write_losses(golden, model, tokens, targets, weights, drawn, advantages, base):
    mask = (targets != IGNORED).long()

    def computed():
        log_probs = log_probs_of(model, tokens, targets)
        return log_probs, torch.exp(log_probs - drawn)

    def share(values):
        return (values * mask).sum().item() / mask.sum().item()

    log_probs, ratio = computed()
    golden.tensor("model_log_probs", log_probs.detach().float().numpy())
    write_loss(golden, model, "cross_entropy", -(weights * log_probs * mask).sum(), {})
    log_probs, ratio = computed()
    mean = share(ratio.detach())
    write_loss(golden, model, "importance_sampling", -(ratio * advantages * mask).sum(), {"ratio_mean": mean})
    log_probs, _ = computed()
    loss, metrics = grpo(model, "dr_grpo", tokens, mask, log_probs, drawn, advantages, CLIP_LOW, CLIP_HIGH)
    write_loss(golden, model, "ppo", loss, {"clip_low": CLIP_LOW, "clip_high": CLIP_HIGH, "ratio_mean": mean,
                                            "clipped_share": metrics["clip_ratio/region_mean"]})
    log_probs, _ = computed()
    loss, metrics = grpo(model, "dr_grpo", tokens, mask, log_probs, drawn, advantages, CLIP_LOW, CLIP_HIGH, base)
    write_loss(golden, model, "ppo_kl", loss, {"beta": BETA, "ratio_mean": mean, "kl": metrics["kl"],
                                               "clipped_share": metrics["clip_ratio/region_mean"]})
    log_probs, ratio = computed()
    loss, _ = grpo(model, "cispo", tokens, mask, log_probs, drawn, advantages, 0.0, 1 + CLIP_HIGH)
    write_loss(golden, model, "cispo", loss, {"clip_low": 1.0, "clip_high": CLIP_HIGH, "ratio_mean": mean,
                                              "clipped_share": share((ratio > 1 + CLIP_HIGH).double())})
    log_probs, ratio = computed()
    clipped = ratio.clamp(1 - CLIP_LOW, 1 + CLIP_HIGH).detach()
    write_loss(golden, model, "cispo_two_sided", -(clipped * advantages * log_probs * mask).sum(),
               {"clip_low": CLIP_LOW, "clip_high": CLIP_HIGH, "ratio_mean": mean,
                "clipped_share": share((clipped != ratio).double())})
    loss, metrics = dpo(model, tokens, mask, drawn)
    write_loss(golden, model, "dpo", loss, {"beta": BETA, "accuracy": metrics["rewards/accuracies"],
        "margin": metrics["rewards/margins"], "reward_chosen": metrics["rewards/chosen"],
        "reward_rejected": metrics["rewards/rejected"]})


def main():
    directory = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    torch.set_num_threads(1)
    model, _ = full(seed=8)
    tokens, targets = rows(model.config.vocab_size)
    golden = GoldenFile(directory, "passes")
    write_architecture(golden, model.config)
    for key, parameter in model.named_parameters():
        golden.bf16_tensor("param." + key, parameter)
    model.double()
    with torch.no_grad():
        log_probs = log_probs_of(model, tokens, targets)
    weights, advantages = torch.rand_like(log_probs).float().double(), torch.randn_like(log_probs).float().double()
    drawn = (log_probs + 0.4 * torch.randn_like(log_probs)).float().double()
    base = (log_probs + 0.4 * torch.randn_like(log_probs)).float().double()
    golden.number("batch", len(LENGTHS))
    golden.number("length", LENGTH)
    golden.tensor("lengths", np.array(LENGTHS, dtype=np.int32))
    for key, values in {"tokens": tokens[:, :-1], "targets": targets}.items():
        golden.tensor(key, values.numpy().astype(np.int32))
    for key, values in {"weights": weights, "advantages": advantages, "log_probs": drawn,
                        "base_log_probs": base}.items():
        golden.tensor(key, values.float().numpy())
    write_losses(golden, model, tokens, targets, weights, drawn, advantages, base)
    golden.write()


if __name__ == "__main__":
    main()
