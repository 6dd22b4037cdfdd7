/**
 * A program as it is written for OpenAI's fine-tuning API, with their package for Python; its URL and its key are those
 * of a stack.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { projectRoot } from '../../platform/process/root.js';
import { pythonWith } from '../support/python.js';
import { cleanEnvironment, startStack } from '../support/stack.js';
import { EXAMPLES, uploadBase } from './base-model.js';

const SCRIPT = join(projectRoot(), 'test', 'openai', 'fine_tune.py');
const found = pythonWith('openai');
const skip = 'missing' in found ? found.missing : false;

t.test('fine-tuning through the official package for Python', { skip, timeout: 600_000 }, async (t) => {
  if ('missing' in found) return;
  const stack = await startStack(t);
  await uploadBase(stack, 'my-base');
  const { baseUrl, apiKey } = stack.client.options;
  const env = { ...cleanEnvironment(), OPENAI_BASE_URL: `${baseUrl}/openai/v1`, OPENAI_API_KEY: apiKey };
  const { stdout } = await promisify(execFile)(found.python, ['-B', SCRIPT, 'my-base', EXAMPLES], { env });
  const { job, events, results, answer, usage, ...rest } = JSON.parse(stdout);
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
