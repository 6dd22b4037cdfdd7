"""DPO: direct preference optimization from pairs of a chosen and a rejected answer.

    python dpo.py --steps 300
"""

from __future__ import annotations

import random
from typing import Any, Dict, List

from copying import DIGITS, ROWS, begin, mean_reward, prompt_of, random_digits, row_of
from supervised import learn

BATCHES = 50


def pairs_of(rng: random.Random) -> List[Dict[str, Any]]:
    """Rows of a batch: after each chosen row its rejected one."""
    rows = []
    for _ in range(ROWS // 2):
        digits, other = random_digits(rng), random_digits(rng)
        rows += [row_of(prompt_of(digits), digits), row_of(prompt_of(digits), other)]
    return rows


def main() -> None:
    session, options = begin("dpo", steps=300)
    rng = random.Random(1)
    learn(session, rng, options.form_steps, copies=False)
    batches = [pairs_of(rng) for _ in range(BATCHES)]
    # The reference is the model as it is now.
    for batch, reference in zip(batches, [session.forward(batch) for batch in batches]):
        for row, log_probs in zip(batch, reference.result()["log_probs"]):
            row["log_probs"] = [0.0 if value is None else value for value in log_probs]
    for step in range(1, options.steps + 1):
        passed = session.forward_backward(batches[step % BATCHES], "dpo", beta=0.1)
        session.optim_step(lr=2e-3)
        result = passed.result()
        print(f"step {step}: loss {2 * result['loss'] / ROWS:.3f}, accuracy {result['metrics']['accuracy']:.3f}")
    print(f"reward {mean_reward(session, seed=2):.3f}")
    session.finish().result()


if __name__ == "__main__":
    main()
