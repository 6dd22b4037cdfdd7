"""A program as it is written for OpenAI's fine-tuning API. OPENAI_BASE_URL and OPENAI_API_KEY name the server.

Usage: fine_tune.py MODEL FOLDER. Files for training are written into the folder. Prints what it got as JSON.
"""

import asyncio
import json
import os
import sys
import time

import openai

MODEL, FOLDER = sys.argv[1:]

# The strict client refuses answers that do not have the documented types.
client = openai.OpenAI(_strict_response_validation=True)
result = {}


def chat(n):
    answer = "Yes." if n % 2 == 0 else "No."
    return {
        "messages": [
            {"role": "system", "content": "You are a calculator."},
            {"role": "user", "content": f"Is {n} even?"},
            {"role": "assistant", "content": answer},
        ]
    }


def write(name, chats):
    path = os.path.join(FOLDER, name)
    with open(path, "w") as file:
        for each in chats:
            file.write(json.dumps(each) + "\n")
    return path


# Files: one as a whole, one in parts.
training_path = write("training.jsonl", [chat(n) for n in range(40)])
with open(training_path, "rb") as file:
    training_file = client.files.create(file=file, purpose="fine-tune")
validation_path = write("validation.jsonl", [chat(n) for n in range(40, 48)])
upload = client.uploads.upload_file_chunked(
    file=validation_path, mime_type="text/jsonl", purpose="fine-tune", part_size=300
)
validation_file = upload.file
result["upload"] = upload.status
for each, path in ((training_file, training_path), (validation_file, validation_path)):
    client.files.wait_for_processing(each.id)
    with open(path, "rb") as file:
        assert client.files.content(each.id).read() == file.read()
result["files"] = sorted(file.filename for file in client.files.list(limit=1))

# A job, with its events as they come.
job = client.fine_tuning.jobs.create(
    model=MODEL,
    training_file=training_file.id,
    validation_file=validation_file.id,
    suffix="even",
    seed=3,
    method={"type": "supervised", "supervised": {"hyperparameters": {"n_epochs": 2, "batch_size": 4}}},
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
    "messages": [{"role": "system", "content": "You are a calculator."}, {"role": "user", "content": "Is 7 even?"}],
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
for file in (training_file, validation_file):
    client.files.delete(file.id)
result["left"] = [file.id for file in client.files.list()]
print(json.dumps(result))
