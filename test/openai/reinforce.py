"""Reinforcement fine-tuning as it is written for OpenAI's API. OPENAI_BASE_URL and OPENAI_API_KEY name the server.

Usage: reinforce.py MODEL EXAMPLES, a model and the folder of the data. Prints what it got as JSON.
"""

import json
import os
import sys
import time

import openai

MODEL, EXAMPLES = sys.argv[1:]
GRADER = {
    "type": "text_similarity",
    "name": "place",
    "evaluation_metric": "fuzzy_match",
    "input": "{{sample.output_text}}",
    "reference": "{{item.place}}",
}
client = openai.OpenAI()
result = {}

with open(os.path.join(EXAMPLES, "places.jsonl"), "rb") as data:
    training_file = client.files.create(file=data, purpose="fine-tune")

# The grader before the job.
validated = client.fine_tuning.alpha.graders.validate(grader=GRADER)
result["validated"] = validated.grader.name
graded = client.fine_tuning.alpha.graders.run(
    grader=GRADER, item={"place": "In the hall."}, model_sample="In the hall."
)
result["graded"] = graded.reward

job = client.fine_tuning.jobs.create(
    model=MODEL,
    training_file=training_file.id,
    validation_file=training_file.id,
    suffix="places",
    seed=3,
    method={
        "type": "reinforcement",
        "reinforcement": {
            "grader": GRADER,
            "hyperparameters": {"n_epochs": 2, "batch_size": 4, "eval_interval": 2},
        },
    },
)
while job.status not in ("succeeded", "failed", "cancelled"):
    time.sleep(0.5)
    job = client.fine_tuning.jobs.retrieve(job.id)
hyperparameters = job.method.reinforcement.hyperparameters
result["job"] = {"id": job.id, "status": job.status, "model": job.fine_tuned_model, "error": str(job.error)}
result["evaluation"] = [hyperparameters.eval_interval, hyperparameters.eval_samples]
metrics = [
    event.data
    for event in reversed(list(client.fine_tuning.jobs.list_events(job.id, limit=50)))
    if event.type == "metrics"
]
# An evaluated step has two events: its own, and that with the evaluation.
result["rewards"] = {each["step"]: each["train_mean_reward"] for each in metrics}
result["evaluated"] = [each["step"] for each in metrics if "valid_reward_mean" in each["scores"]]
result["checkpoints"] = [each.step_number for each in client.fine_tuning.jobs.checkpoints.list(job.id)]
lines = client.files.content(job.result_files[0]).text.splitlines()
result["results"] = [lines[0], *(line.split(",")[2] for line in lines[1:])]
answer = client.chat.completions.create(
    model=job.fine_tuned_model, messages=[{"role": "user", "content": "Where is the map?"}], max_tokens=4
)
result["answer"] = answer.usage.completion_tokens
print(json.dumps(result))
