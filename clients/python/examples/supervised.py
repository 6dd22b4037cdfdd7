"""Supervised training of a session: rows with their targets.

    python supervised.py --steps 200
"""

from __future__ import annotations

import random
from typing import List

from copying import DIGITS, ROWS, begin, mean_reward, prompt_of, random_digits, row_of

from zerofleet import Call, Session


def learn(session: Session, rng: random.Random, steps: int, *, copies: bool) -> List[Call]:
    """Appends steps with right answers, or with random digits, which teach the form of an answer alone. Returns the
    passes."""
    passes = []
    for _ in range(steps):
        rows = []
        for _ in range(ROWS):
            digits = random_digits(rng)
            answer = digits if copies else random_digits(rng)
            # Losses are sums: the weights make them the mean over the targets.
            rows.append(row_of(prompt_of(digits), answer, weights=[1 / (ROWS * DIGITS)] * DIGITS))
        passes.append(session.forward_backward(rows))
        session.optim_step(lr=3e-3)
    return passes


def main() -> None:
    session, options = begin("supervised", steps=200)
    for step, each in enumerate(learn(session, random.Random(1), options.steps, copies=True), 1):
        print(f"step {step}: loss {each.result()['loss']:.3f}")
    print(f"reward {mean_reward(session, seed=2):.3f}")
    session.finish().result()


if __name__ == "__main__":
    main()
