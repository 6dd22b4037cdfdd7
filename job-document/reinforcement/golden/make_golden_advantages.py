"""Advantages and losses of TRL (1.13): run with torch, transformers and trl; writes advantages.json beside itself.

A GRPOTrainer takes one step on a tiny model with given rewards, for each `scale_rewards`, `loss_type` and `beta`. The
advantages are those of its buffer; the losses are those of its `_compute_loss` with given log-probabilities.
"""

import json
import pathlib
import tempfile

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer

GROUP = 4
MAX_TOKENS = 6
REWARDS = [0.0, 1.0, 0.5, 0.25, 1.0, 1.0, 1.0, 1.0, 0.1, 0.9, 0.2, 0.3]
LENGTHS = [6, 3, 1, 4, 2, 6, 5, 1, 3, 3, 6, 2]


def tokenizer():
    vocab = {name: id for id, name in enumerate(["<pad>", "<eos>", *"0123456789=+abcdef"])}
    made = Tokenizer(models.WordLevel(vocab, unk_token="<pad>"))
    made.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="<eos>")


def model():
    torch.manual_seed(1)
    return LlamaForCausalLM(LlamaConfig(hidden_size=16, intermediate_size=16, num_hidden_layers=1,
                                        num_attention_heads=2, num_key_value_heads=2, vocab_size=20))


class Recorder(GRPOTrainer):
    """Keeps the advantages and the loss of the first batch, with given log-probabilities and lengths."""

    def _generate_and_score_completions(self, inputs):
        output = super()._generate_and_score_completions(inputs)
        self.found = {"advantages": output["advantages"].tolist()}
        return output

    def _compute_loss(self, model, inputs):
        generator = torch.Generator().manual_seed(2)
        mask = torch.tensor([[int(i < length) for i in range(MAX_TOKENS)] for length in LENGTHS])
        now = -3 * torch.rand(mask.shape, generator=generator, dtype=torch.float64)
        drawn = now + 0.5 * torch.randn(mask.shape, generator=generator, dtype=torch.float64)
        base = now + 0.5 * torch.randn(mask.shape, generator=generator, dtype=torch.float64)
        # The buffer is shuffled; given samples stand in their order.
        given = {**inputs, "completion_ids": torch.ones_like(mask), "completion_mask": mask,
                 "advantages": torch.tensor(self.found["advantages"], dtype=torch.float64),
                 "old_per_token_logps": drawn, "ref_per_token_logps": base, "num_items_in_batch": mask.sum()}
        self._get_per_token_logps_and_entropies = lambda *_, **__: (now, torch.zeros_like(now), None)
        self.beta = self.beta_of_loss
        loss = super()._compute_loss(model, given)
        self.found |= {"log_probs": now.tolist(), "drawn": drawn.tolist(), "base": base.tolist(),
                       "loss": loss.item()}
        return sum(parameter.sum() for parameter in model.parameters()) * 0


def case(scale_rewards, loss_type, beta):
    with tempfile.TemporaryDirectory() as folder:
        settings = GRPOConfig(output_dir=folder, num_generations=GROUP, max_completion_length=MAX_TOKENS,
                              per_device_train_batch_size=len(REWARDS), max_steps=1, scale_rewards=scale_rewards,
                              loss_type=loss_type, beta=0.0, epsilon=0.2, report_to=[], use_cpu=True, bf16=False,
                              save_strategy="no", shuffle_dataset=False, disable_tqdm=True)
        data = Dataset.from_list([{"prompt": text} for text in ("1=", "2=", "3=")])
        trainer = Recorder(model=model(), args=settings, train_dataset=data, processing_class=tokenizer(),
                           reward_funcs=lambda prompts, completions, **_: REWARDS)
        trainer.beta_of_loss = beta  # a trainer with a penalty loads its reference from a model's repository
        trainer.train()
    return {"scale_rewards": scale_rewards, "loss_type": loss_type, "beta": beta, **trainer.found}


def main():
    settings = [(*pair, beta) for beta in (0.0, 0.04)
                for pair in (("group", "dapo"), ("batch", "grpo"), ("none", "dr_grpo"))]
    golden = {"group_size": GROUP, "max_tokens": MAX_TOKENS, "rewards": REWARDS, "lengths": LENGTHS,
              "clip": 0.2, "cases": [case(*each) for each in settings]}
    path = pathlib.Path(__file__).parent / "advantages.json"
    path.write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main()
