"""The task of the examples: copy digits, such as 47 after 47=. A token is a byte."""

from __future__ import annotations

import argparse
import random
from statistics import mean
from typing import Any, Dict, List, Sequence, Tuple

from zerofleet import Session, Zerofleet

MODEL = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 176,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "vocab_size": 256,
}
DIGITS = 2
ROWS = 128
"""Rows of a pass."""


def begin(method: str, steps: int) -> Tuple[Session, argparse.Namespace]:
    """Reads the command line and creates the session."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=steps)
    parser.add_argument("--form-steps", type=int, default=100, help="supervised steps before")
    parser.add_argument("--ranks", type=int, default=1)
    options = parser.parse_args()
    session = Zerofleet().session(
        name=f"{method} on {options.ranks} ranks",
        sequence_length=8,
        global_batch_size=ROWS,
        micro_batch_size=16,
        fields={
            "model": {"config": MODEL},
            "resources": {"ranks": {"preferred": options.ranks, "max": 4}},
        },
    )
    print(session.job_id, flush=True)
    return session, options


def random_digits(rng: random.Random) -> List[int]:
    return [rng.choice(b"0123456789") for _ in range(DIGITS)]


def prompt_of(digits: List[int]) -> List[int]:
    return digits + list(b"=")


def reward_of(prompt: Sequence[int], answer: Sequence[int]) -> float:
    """Share of the digits that are in their places."""
    return mean(float(given == wanted) for given, wanted in zip(answer, prompt[:-1]))


def row_of(prompt: List[int], answer: List[int], **values: Sequence[float]) -> Dict[str, Any]:
    """A row whose targets are the answer. `values` are lists with a number for each token of the answer."""
    before = len(prompt) - 1
    row: Dict[str, Any] = {"tokens": (prompt + answer)[:-1], "targets": [-100] * before + answer}
    return {**row, **{name: [0.0] * before + list(numbers) for name, numbers in values.items()}}


def mean_reward(session: Session, seed: int) -> float:
    """Reward of the most likely answers to random prompts."""
    rng = random.Random(seed)
    prompts = [prompt_of(random_digits(rng)) for _ in range(ROWS)]
    samples = session.sample(prompts, max_tokens=DIGITS, temperature=0).result()["samples"]
    return mean(reward_of(prompt, sample["tokens"]) for prompt, sample in zip(prompts, samples))
