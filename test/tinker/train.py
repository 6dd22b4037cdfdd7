"""A program as it is written for Tinker's API. Its URL and its key are those of a stack. Prints what it has read."""

import json

import tinker
from tinker import types

TEXT = list(b"to be or not to be, that is the question. " * 2)


def datum(tokens, **inputs):
    return types.Datum(model_input=types.ModelInput.from_ints(tokens), loss_fn_inputs=inputs)


def supervised(start):
    tokens = TEXT[start : start + 33]
    return datum(tokens[:-1], target_tokens=tokens[1:], weights=[1.0 / 32] * 32)


def step(client, data, lr=4e-3):
    passed = client.forward_backward(data, "cross_entropy")
    stepped = client.optim_step(types.AdamParams(learning_rate=lr))
    return passed.result(), stepped.result()


def losses_of(client, steps):
    return [step(client, [supervised(i) for i in range(4)])[0].metrics["loss:sum"] for _ in range(steps)]


def policy_step(client, loss, config=None):
    """Rewards the letter e."""
    sampler = client.save_weights_and_get_sampling_client()
    prompt = TEXT[:8]
    params = types.SamplingParams(max_tokens=12, temperature=1.0)
    group = sampler.sample(types.ModelInput.from_ints(prompt), 4, params).result().sequences
    rewards = [sequence.tokens.count(ord("e")) for sequence in group]
    mean = sum(rewards) / len(rewards)
    data = []
    for sequence, reward in zip(group, rewards):
        tokens = prompt + list(sequence.tokens)
        before = len(prompt) - 1
        data.append(
            datum(
                tokens[:-1],
                target_tokens=tokens[1:],
                logprobs=[0.0] * before + list(sequence.logprobs),
                advantages=[0.0] * before + [reward - mean] * len(sequence.tokens),
            )
        )
    passed = client.forward_backward(data, loss, config)
    client.optim_step(types.AdamParams(learning_rate=1e-3)).result()
    logprobs = [
        float(abs(a - b))
        for output, sequence in zip(passed.result().loss_fn_outputs, group)
        for a, b in zip(output["logprobs"].tolist()[before:], sequence.logprobs)
    ]
    return {"difference": max(logprobs), "sizes": [len(sequence.tokens) for sequence in group]}


def refusal(call):
    try:
        result = call()
        return str(result.result() if hasattr(result, "result") else result)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def main():
    service = tinker.ServiceClient()
    client = service.create_lora_training_client("llama-tiny", rank=8, seed=1)
    info = client.get_info()
    report = {"info": [info.model_name, info.is_lora, info.lora_rank]}
    report["losses"] = losses_of(client, 12)
    report["policy"] = [
        policy_step(client, "importance_sampling"),
        policy_step(client, "ppo", {"clip_low_threshold": 0.8, "clip_high_threshold": 1.2}),
        policy_step(client, "cispo", {"clip_low_threshold": 0.8, "clip_high_threshold": 1.2}),
    ]

    saved = client.save_state("middle").result().path
    uninterrupted = losses_of(client, 3)
    client.load_state_with_optimizer(saved).result()
    report["continued"] = losses_of(client, 3) == uninterrupted
    client.load_state(saved).result()
    report["cold"] = losses_of(client, 3) == uninterrupted

    fork = service.create_training_client_from_state_with_optimizer(saved)
    report["forked"] = losses_of(fork, 3) == uninterrupted

    named = client.save_weights_for_sampler("sampler").result().path
    sampler = service.create_sampling_client(model_path=named)
    prompt = types.ModelInput.from_ints(TEXT[:8])
    params = types.SamplingParams(max_tokens=6, temperature=0.0, seed=3)
    now = sampler.sample(prompt, 1, params).result().sequences[0]
    report["prompt_logprobs"] = sampler.compute_logprobs(prompt).result()
    losses_of(client, 2)
    later = sampler.sample(prompt, 1, params).result().sequences[0]
    report["same_sample"] = list(now.tokens) == list(later.tokens) and list(now.logprobs) == list(later.logprobs)

    other = tinker.ServiceClient().create_lora_training_client("llama-tiny", rank=8, seed=1)
    report["other"] = losses_of(other, 12) == report["losses"]

    report["refused"] = {
        "dro": refusal(lambda: client.forward_backward([supervised(0)], "dro")),
        "field": refusal(lambda: client.forward_backward([supervised(0)], "ppo")),
        "model": refusal(lambda: service.create_lora_training_client("unknown")),
    }
    print(json.dumps(report))


main()
