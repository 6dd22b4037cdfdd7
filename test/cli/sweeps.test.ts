import t from 'tap';
import { runSweeps } from '../../api/sweeps/runner.js';
import type { Sweep } from '../../contracts/index.js';
import { createLogger } from '../../platform/logging/logging.js';
import { start } from './command-line.js';

const TEXT = 'to be or not to be, that is the question. '.repeat(400);

t.test('a sweep is planned, created, shown, paused and cancelled', async (t) => {
  const { stack, zerofleet, file } = await start(t);
  const runner = runSweeps({ ...stack, log: createLogger({ level: 'silent', name: 'sweeps' }) }, 5);
  t.teardown(() => runner.close());
  const { id: dataset } = await stack.upload(TEXT);
  const document = await file(
    'job.yaml',
    `name: rates\nmodel: {preset: llama-tiny}\ndata: {dataset: ${dataset}, validation_fraction: 0.2}\ntrain: {steps: 90, evaluation: {every_steps: 10}}\n`,
  );
  const over = ['--over', 'train.optimizer.lr=1e-3,2e-3', '--over', 'train.seed=1,2'];
  const planned = await zerofleet(['sweep', document, ...over, '--halving', '--dry-run']);
  t.match(planned, {
    code: 0,
    out: /^rates lr=0.001 seed=1\n.*\n4 runs compared by eval_loss: 4 until step 10, 1 to the end$/s,
  });
  const refused = await zerofleet(['sweep', document, '--over', 'train.sed=1,2']);
  t.match(refused, { code: 1, err: /\/space\/train.sed/ });
  t.match(await zerofleet(['sweep', document]), { code: 2, err: /--over/ });
  t.match(await zerofleet(['sweep', document, '--over', 'x']), { code: 2, err: /names no values/ });

  const made = await zerofleet(['sweep', document, ...over, '-c', '1']);
  t.match(made, { code: 0, out: /^swp_\w{26}$/, err: /^4 runs/ });
  const id = made.out;
  t.match(await zerofleet(['sweeps']), { code: 0, out: /SWEEP .*\nswp_\w+ +rates +running +0 of 4 / });
  const shown = await zerofleet(['sweeps', 'get', 'rates']);
  t.match(
    shown.out,
    /^swp_\w+ {2}rates {2}running\n\nJOB +NAME +STATE +STEP +EVAL_LOSS\njob_\w+ +rates lr=0.001 seed=1 /,
  );
  const asJson = await zerofleet(['sweeps', 'get', id, '--json']);
  t.equal((JSON.parse(asJson.out) as Sweep).runs.length, 4);
  t.match(await zerofleet(['sweeps', 'pause', id]), { out: /paused$/ });
  t.match(await zerofleet(['sweeps', 'resume', id]), { out: /running$/ });
  t.match(await zerofleet(['sweeps', 'delete', id]), { code: 1, err: /cancel it first/ });
  t.match(await zerofleet(['sweeps', 'cancel', 'rates']), { out: /cancelled$/ });
  t.match(await zerofleet(['sweeps', 'watch', id]), { code: 1, err: /the sweep is cancelled/ });
});
