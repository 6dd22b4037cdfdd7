/**
 * A program as it is written for OpenAI's fine-tuning API, with their package for Python; its URL and its key are those
 * of a stack.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t, { type Test } from 'tap';
import { projectRoot } from '../../platform/process/root.js';
import { pythonWith } from '../support/python.js';
import { cleanEnvironment, startStack } from '../support/stack.js';
import { EXAMPLES, uploadBase } from './base-model.js';

const scriptOf = (name: string) => join(projectRoot(), 'test', 'openai', name);
const found = pythonWith('openai');
const skip = 'missing' in found ? found.missing : false;

/** Runs a program on a small model. Returns what it prints. */
async function resultOf(t: Test, script: string) {
  if ('missing' in found) throw new Error(found.missing);
  const stack = await startStack(t);
  await uploadBase(stack, 'my-base');
  const { baseUrl, apiKey } = stack.client.options;
  const env = { ...cleanEnvironment(), OPENAI_BASE_URL: `${baseUrl}/openai/v1`, OPENAI_API_KEY: apiKey };
  const args = ['-B', scriptOf(script), 'my-base', EXAMPLES];
  const { stdout } = await promisify(execFile)(found.python, args, { env });
  return JSON.parse(stdout);
}

t.test('fine-tuning through the official package for Python', { skip, timeout: 600_000 }, async (t) => {
  const { job, events, results, answer, usage, ...rest } = await resultOf(t, 'fine_tune.py');
  t.match(job, { status: 'succeeded', model: `ft:my-base:default:desk:${job.id}` }, job.error);
  t.equal(events[0], `Created fine-tuning job: ${job.id}`);
  t.equal(results[0], 'step,train_loss,valid_loss');
  const steps = results.length - 1;
  t.ok(steps > 1);
  t.equal(events.filter((message: string) => message.startsWith('Step ')).length, steps);
  t.equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens);
  t.strictSame(rest, {
    upload: 'completed',
    files: ['chats.jsonl', 'validation.jsonl'],
    checkpoints: [steps],
    jobs: [job.id],
    models: [rest.models[0], job.model],
    streamed: answer,
    at_once: [answer, answer, answer],
    others: Object.fromEntries(
      ['turns', 'functions', 'preferences', 'completions', 'tools'].map((name) => [
        name,
        ['succeeded', true],
      ]),
    ),
    completion: [' attic', 'stop'],
    call: ['tool_calls', null, 'find_book', '{"title": "Kim"}'],
    call_text: '<tool_call>{"name": "find_book", "arguments": {"title": "Kim"}}</tool_call>',
    is_best: true,
    streamed_call: true,
    after_call: 'Shelf 1.',
    mistakes: {
      model: ['NotFoundError', 'model_not_found', 'model'],
      file: ['NotFoundError', 'dataset_not_found', 'file_id'],
      purpose: ['BadRequestError', 'unsupported_parameter', 'purpose'],
      key: ['AuthenticationError', 'unauthenticated', null],
      upload: ['BadRequestError', 'upload_not_pending', 'upload_id'],
    },
    left: [],
  });
});

t.test('reinforcement through the same package', { skip, timeout: 600_000 }, async (t) => {
  const { job, rewards, ...rest } = await resultOf(t, 'reinforce.py');
  t.match(job, { status: 'succeeded', model: `ft:my-base:default:places:${job.id}` }, job.error);
  t.strictSame(Object.keys(rewards), ['1', '2']);
  t.ok(Object.values<number>(rewards).every((reward) => reward > 0 && reward < 1));
  t.strictSame(rest, {
    validated: 'place',
    graded: 1,
    evaluation: [2, 1],
    evaluated: [2],
    checkpoints: [2],
    results: ['step,train_loss,valid_loss', '', ''],
    answer: 4,
  });
});
