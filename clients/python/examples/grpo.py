"""GRPO: reinforcement learning with a reward that a program computes.

Supervised steps teach the form of an answer. Then each step samples a group of answers to every prompt. The advantage
of an answer is its reward minus the mean reward of its group, divided by the standard deviation of the group's rewards.
The loss is `importance_sampling`: each step has one update, so there is no ratio to clip.

    python grpo.py --steps 500
"""

from __future__ import annotations

import random
from statistics import mean, pstdev
from typing import Any, Dict, Tuple

from copying import DIGITS, ROWS, begin, mean_reward, prompt_of, random_digits, reward_of, row_of
from supervised import learn

from zerofleet import Session

GROUP = 8


def improve(session: Session, rng: random.Random, step: int) -> Tuple[float, float, Dict[str, Any]]:
    """One step. Returns the mean reward, the entropy and the result of the update."""
    prompts = [prompt_of(random_digits(rng)) for _ in range(ROWS // GROUP)]
    samples = session.sample(prompts, max_tokens=DIGITS, n=GROUP, seed=step).result()["samples"]
    rewards, rows = [], []
    for i, prompt in enumerate(prompts):
        group = samples[i * GROUP : (i + 1) * GROUP]
        earned = [reward_of(prompt, sample["tokens"]) for sample in group]
        rewards += earned
        for sample, reward in zip(group, earned):
            advantage = (reward - mean(earned)) / (pstdev(earned) + 1e-4)
            # Losses are sums: the divisor makes them the mean over the rows.
            advantages = [advantage / ROWS] * len(sample["tokens"])
            rows.append(row_of(prompt, sample["tokens"], log_probs=sample["log_probs"], advantages=advantages))
    session.forward_backward(rows, "importance_sampling")
    update = session.optim_step(lr=1e-3, gradient_clipping=0.3).result()
    entropy = -mean(log_prob for sample in samples for log_prob in sample["log_probs"])
    return mean(rewards), entropy, update


def main() -> None:
    session, options = begin("grpo", steps=500)
    rng = random.Random(1)
    learn(session, rng, options.form_steps, copies=False)
    for step in range(1, options.steps + 1):
        reward, entropy, update = improve(session, rng, step)
        print(f"step {step}: reward {reward:.3f}, entropy {entropy:.3f}, {update['state_digest']}", flush=True)
    print(f"reward {mean_reward(session, seed=2):.3f}")
    session.finish().result()


if __name__ == "__main__":
    main()
