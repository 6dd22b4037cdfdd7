/** Prompts of a task that a tiny model learns: to copy a digit, such as 4 after 4=. */
import type { Zerofleet } from '../../clients/typescript/index.js';
import type { Grader, JobSpec } from '../../contracts/index.js';
import { smallJob } from './specs.js';

const DIGITS = [...'0123456789'];

/** An answer that is part of a text: an untrained model gives some. */
const IS_DIGIT: Grader = {
  type: 'string_check',
  name: 'digit',
  operation: 'like',
  input: '0123456789 abcdefghijklmnopqrstuvwxyz',
  reference: '{{sample.output_text}}',
};

/** Uploads the prompts as lines. Returns the id of the dataset. */
export async function uploadDigits(client: Zerofleet): Promise<string> {
  const lines = DIGITS.map((digit) => JSON.stringify({ prompt: `${digit}=`, digit }));
  return (await client.datasets.create('digits', lines.join('\n'), 'jsonl')).id;
}

interface DigitsJob {
  name: string;
  dataset: string;
  steps: number;
  ranks: number;
  objective?: Partial<NonNullable<NonNullable<JobSpec['train']>['objective']>>;
}

/** Reinforcement learning of the small job's model. */
export function digitsJob({ name, dataset, steps, ranks, objective = {} }: DigitsJob): JobSpec {
  const job = smallJob({ name, dataset, steps, ranks, every_steps: 2 });
  return {
    ...job,
    train: {
      ...job.train,
      sequence_length: 16,
      global_batch_size: 24,
      micro_batch_size: 4,
      lr_schedule: { type: 'constant' },
      objective: {
        type: 'grpo',
        grader: IS_DIGIT,
        prompts_per_step: 6,
        group_size: 6,
        max_tokens: 1,
        ...objective,
      },
    },
  };
}
