/** A program for Tinker's API, with its official package; the URL and the key are those of a stack. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { projectRoot } from '../../platform/process/root.js';
import { pythonWith } from '../support/python.js';
import { cleanEnvironment, startStack } from '../support/stack.js';

const SCRIPT = join(projectRoot(), 'test', 'tinker', 'train.py');
/** The first example of the page. */
const [, EXAMPLE = ''] =
  /^```python\n(.*?)^```$/ms.exec(readFileSync(join(projectRoot(), 'docs', 'tinker.md'), 'utf8')) ?? [];
const found = pythonWith('tinker');
const skip = 'missing' in found ? found.missing : false;

t.test('training through the official package for Python', { skip, timeout: 600_000 }, async (t) => {
  if ('missing' in found) return;
  // Each session keeps its slot until it is idle.
  const stack = await startStack(t, { env: { ZEROFLEET_SLOTS: '8', ZEROFLEET_THREADS_PER_RANK: '1' } });
  const { baseUrl, apiKey } = stack.client.options;
  const env = {
    ...cleanEnvironment(),
    TINKER_BASE_URL: `${baseUrl}/tinker`,
    TINKER_API_KEY: `tml-${apiKey}`,
    TINKER_TELEMETRY: '0',
  };
  const { stdout } = await promisify(execFile)(found.python, ['-B', SCRIPT], { env });
  const report = JSON.parse(stdout);
  t.strictSame(report.info, ['llama-tiny', true, 8]);
  t.ok(report.losses.at(-1) < report.losses[0] - 0.5, 'the loss falls');
  for (const { difference } of report.policy) t.equal(difference, 0, 'forward has the bits of the sample');
  t.match(report, { continued: true, cold: false, forked: true, same_sample: true, other: true });
  t.equal(report.prompt_logprobs[0], null);
  t.ok(report.prompt_logprobs.slice(1).every((value: number) => value < 0));
  t.match(report.refused, {
    dro: /dro is not supported/,
    field: /does not read weights/,
    model: /there is no model unknown/,
  });

  const example = await promisify(execFile)(found.python, ['-B', '-c', EXAMPLE], { env });
  const losses = example.stdout.trim().split('\n').map(Number);
  t.equal(losses.length, 10, 'the example of docs/tinker.md');
  t.ok(Number(losses.at(-1)) < Number(losses[0]), example.stdout);
});
