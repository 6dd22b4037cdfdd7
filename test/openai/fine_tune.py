"""A program as it is written for OpenAI's fine-tuning API. OPENAI_BASE_URL and OPENAI_API_KEY name the server.

Usage: fine_tune.py MODEL EXAMPLES, a model and the folder of the data. Prints what it got as JSON.
"""

import asyncio
import json
import os
import sys
import time

import openai

MODEL, EXAMPLES = sys.argv[1:]

# Enough to answer the questions of the data, which have few rows.
MANY = {"n_epochs": 100, "batch_size": 1, "learning_rate_multiplier": 30}

# The strict client refuses answers that do not have the documented types.
client = openai.OpenAI(_strict_response_validation=True)
result = {}


def path_of(name):
    return os.path.join(EXAMPLES, name + ".jsonl")


def send(name):
    with open(path_of(name), "rb") as file:
        return client.files.create(file=file, purpose="fine-tune")


def wait(job):
    while job.status not in ("succeeded", "failed", "cancelled"):
        time.sleep(0.5)
        job = client.fine_tuning.jobs.retrieve(job.id)
    return job


# Files: one as a whole, one in parts.
training_file = send("chats")
upload = client.uploads.upload_file_chunked(
    file=path_of("validation"), mime_type="text/jsonl", purpose="fine-tune", part_size=300
)
validation_file = upload.file
result["upload"] = upload.status
for each, name in ((training_file, "chats"), (validation_file, "validation")):
    client.files.wait_for_processing(each.id)
    with open(path_of(name), "rb") as file:
        assert client.files.content(each.id).read() == file.read()
result["files"] = sorted(file.filename for file in client.files.list(limit=1))

# A job, with its events as they come.
job = client.fine_tuning.jobs.create(
    model=MODEL,
    training_file=training_file.id,
    validation_file=validation_file.id,
    suffix="desk",
    seed=3,
    method={"type": "supervised", "supervised": {"hyperparameters": {"n_epochs": 6, "batch_size": 1}}},
)
seen = {}
while True:
    job = client.fine_tuning.jobs.retrieve(job.id)
    is_final = job.status in ("succeeded", "failed", "cancelled")
    for event in reversed(list(client.fine_tuning.jobs.list_events(job.id, limit=50))):
        if event.id not in seen:
            seen[event.id] = event.message
            print(event.message, file=sys.stderr)
    if is_final:
        break
    time.sleep(0.5)
result["job"] = {"id": job.id, "status": job.status, "model": job.fine_tuned_model, "error": str(job.error)}
result["events"] = list(seen.values())
result["checkpoints"] = [
    checkpoint.step_number for checkpoint in client.fine_tuning.jobs.checkpoints.list(job.id)
]
result["jobs"] = [each.id for each in client.fine_tuning.jobs.list(limit=10)]
result["results"] = client.files.content(job.result_files[0]).text.splitlines()
result["models"] = [model.id for model in client.models.list()]

# Answers of the result.
question = {
    "model": job.fine_tuned_model,
    "messages": [
        {"role": "system", "content": "You are the desk of a small library."},
        {"role": "user", "content": "Where is the map?"},
    ],
    "temperature": 0,
    "max_tokens": 8,
}
completion = client.chat.completions.create(**question)
result["answer"] = completion.choices[0].message.content
result["usage"] = completion.usage.to_dict()
stream = client.chat.completions.create(**question, stream=True)
result["streamed"] = "".join(chunk.choices[0].delta.content or "" for chunk in stream)


async def ask_at_once():
    async with openai.AsyncOpenAI(_strict_response_validation=True) as asking:
        completions = await asyncio.gather(*(asking.chat.completions.create(**question) for _ in range(3)))
        return [each.choices[0].message.content for each in completions]


result["at_once"] = asyncio.run(ask_at_once())

# The other documented forms of data.
jobs = {
    "turns": {"hyperparameters": {"n_epochs": 1}},
    "functions": {"hyperparameters": {"n_epochs": 1}},
    "preferences": {"method": {"type": "dpo", "dpo": {"hyperparameters": {"n_epochs": 1, "beta": 0.2}}}},
    "completions": {"hyperparameters": MANY},
    "tools": {"hyperparameters": MANY},
}
files = {name: send(name) for name in jobs}
started = {
    name: client.fine_tuning.jobs.create(model=MODEL, training_file=files[name].id, **options)
    for name, options in jobs.items()
}
ended = {name: wait(each) for name, each in started.items()}
result["others"] = {name: [each.status, each.trained_tokens > 0] for name, each in ended.items()}

completion = client.completions.create(
    model=ended["completions"].fine_tuned_model,
    prompt="Title: novel\n\n###\n\n",
    temperature=0,
    max_tokens=20,
    stop=[" END"],
)
result["completion"] = [completion.choices[0].text, completion.choices[0].finish_reason]

# A model that calls a function, and the round with the result of the call.
with open(path_of("tools")) as file:
    tools = json.loads(file.readline())["tools"]
messages = [{"role": "user", "content": "Find Kim."}]
request = {
    "model": ended["tools"].fine_tuned_model,
    "tools": tools,
    "parallel_tool_calls": False,
    "temperature": 0,
    "seed": 7,
    "max_tokens": 200,
    "logprobs": True,
    "top_logprobs": 2,
}
choice = client.chat.completions.create(messages=messages, **request).choices[0]
(call,) = choice.message.tool_calls
result["call"] = [choice.finish_reason, choice.message.content, call.function.name, call.function.arguments]
result["call_text"] = bytes(byte for token in choice.logprobs.content for byte in token.bytes).decode()
result["is_best"] = all(token.token == token.top_logprobs[0].token for token in choice.logprobs.content)
parts = {}
for chunk in client.chat.completions.create(messages=messages, stream=True, **request):
    for part in chunk.choices[0].delta.tool_calls or []:
        known = parts.setdefault(part.index, {"id": part.id, "name": part.function.name, "arguments": ""})
        known["arguments"] += part.function.arguments or ""
result["streamed_call"] = list(parts.values()) == [
    {"id": call.id, "name": call.function.name, "arguments": call.function.arguments}
]
messages += [choice.message, {"role": "tool", "tool_call_id": call.id, "content": json.dumps({"shelf": 1})}]
result["after_call"] = client.chat.completions.create(messages=messages, **request).choices[0].message.content

# Mistakes, as the exceptions that a program catches.
mistakes = {
    "model": lambda: client.fine_tuning.jobs.create(model="gpt-4o-mini", training_file=training_file.id),
    "file": lambda: client.files.retrieve("ds_" + "0" * 26),
    "purpose": lambda: client.files.create(file=b"{}", purpose="batch"),
    "key": lambda: client.with_options(api_key="another").models.list(),
    "upload": lambda: client.uploads.cancel(upload.id),
}
result["mistakes"] = {}
for name, mistake in mistakes.items():
    try:
        mistake()
    except openai.APIStatusError as error:
        result["mistakes"][name] = [type(error).__name__, error.code, error.param]

client.models.delete(job.fine_tuned_model)
for file in (training_file, validation_file, *files.values()):
    client.files.delete(file.id)
result["left"] = [file.id for file in client.files.list()]
print(json.dumps(result))
