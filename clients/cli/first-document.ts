/** A document to begin with: what most people set, and what else there is, in comments. */
export const FIRST_DOCUMENT = `# A job of zerofleet. Check it: zerofleet submit FILE --dry-run. All fields: docs/job-spec.md
name: my-first-run

model:
  # Random weights of a small architecture, to try things.
  preset: llama-tiny
  # A base: an uploaded model, a folder on the Hugging Face Hub or in a bucket, or another run.
  # init_from: hf://Qwen/Qwen3-0.6B     # then without preset
  # quantization: nf4                   # 4 bits an element, below adapters

data:
  # Path of a file here, name or id of an uploaded dataset: chats, instructions or preferences as .jsonl, .json, .csv
  # or .parquet; or a text.
  dataset: chats.jsonl
  # uri: hf://datasets/owner/name/train.jsonl   # in place of dataset
  # validation_fraction: 0.05                   # held back, for evaluations

train:
  epochs: 3                 # or steps: 400
  # sequence_length: 1024   # tokens; longer chats are cut
  # global_batch_size: 16
  # optimizer: {lr: 2e-4}
  # adapter: {rank: 16}     # LoRA: the base stays as it is
  # evaluation: {every_steps: 50}
  # early_stopping: {patience: 3}

# resources:
#   ranks: {min: 1, max: 4, preferred: 2}   # the result has the same bits on any number
# export: {format: safetensors}             # or peft, gguf
# labels: {team: docs}
`;
