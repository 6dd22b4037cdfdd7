import t from 'tap';
import { resultKey, specKey } from '../../../formats/checkpoint/layout.js';
import { parseResult, parseSpec } from '../../../state/index.js';
import { fakeStateDigest } from '../../testing/fake-state.js';
import { Fleet } from '../../testing/fleet.js';

const LINES = 50;
const EPOCHS = 50;
const LINE = '{"text": "to be or not to be"}\n';
const data = { packing: 'whole' } as const;

/** Adds a dataset of which the number of sequences is known only when it is prepared. */
const addLines = (f: Fleet) =>
  f.addDataset(Buffer.from(LINE.repeat(LINES)), { format: 'jsonl', num_documents: LINES, num_tokens: null });

t.test('epochs become steps when the data is prepared', async (t) => {
  const f = await Fleet.start({ ranks: { slow: { from: 2, ms: 100 } } });
  t.teardown(() => f.close());
  const dataset = await addLines(f);
  const train = { epochs: EPOCHS, lr_schedule: { type: 'wsd' } } as const;
  const id = await f.submit({ dataset, data, train, ranks: 2, max_errors: 0 });
  const waiting = await f.store.getJob(id);
  t.match(waiting, {
    spec: { train: { epochs: EPOCHS } },
    progress: { step: 0, total_steps: null, percent: null },
  });
  t.notOk('steps' in (waiting?.spec.train ?? {}));

  await f.agent(2);
  const running = await f.until(id, ({ progress }) => progress.step >= 3);
  const prepared = (await f.events(id)).find(({ type }) => type === 'data.prepared');
  const samples = Number(prepared?.data.sequences);
  const steps = Math.ceil((EPOCHS * samples) / running.spec.train.global_batch_size);
  t.ok(steps > EPOCHS, String(steps));
  t.match(running, {
    spec: { train: { steps, lr_schedule: { decay_steps: Math.ceil(steps / 10) } } },
    progress: { total_steps: steps, percent: (100 * running.progress.step) / steps },
  });
  t.notOk('epochs' in running.spec.train);
  t.strictSame(parseSpec(await f.objects.get(specKey(id))).spec, running.spec, 'recover finds the steps');

  await f.store.requestPause(id);
  const paused = await f.untilState(id, 'paused');
  // The record as it is rebuilt when its worker died before it had stored the new document.
  const { requested_ranks } = paused;
  await f.store.updateJob({
    before: paused,
    spec: waiting?.spec ?? paused.spec,
    requested_ranks,
    changed: [],
  });
  await f.speedUp();
  await f.store.resumeJob(id);
  const done = await f.untilState(id, 'succeeded');
  t.equal(done.export?.state_digest, fakeStateDigest(1, steps));
  t.strictSame(done.spec, running.spec);
  const events = await f.events(id);
  t.equal(events.filter(({ type }) => type === 'data.prepared').length, 2, 'two attempts prepared the data');
  t.match(
    events.filter(({ type }) => type === 'steps.resolved').map((event) => event.data),
    [
      { epochs: EPOCHS, samples, steps },
      { epochs: EPOCHS, samples, steps },
    ],
  );
  t.match(parseResult(await f.objects.get(resultKey(id))), { total_steps: steps });
});

t.test('a job that breaks a rule with the counted samples fails with the fields', async (t) => {
  const f = await Fleet.start();
  t.teardown(() => f.close());
  await f.agent(2);
  const dataset = await addLines(f);
  const train = { epochs: 1, lr_schedule: { warmup_steps: 500 } };
  const id = await f.submit({ dataset, data, train });
  const { failure, progress, spec } = await f.untilState(id, 'failed');
  t.match(failure, {
    code: 'validation_failed',
    category: 'user',
    retryable: false,
    message: /^with the \d+ samples of the data, \/train\/lr_schedule\/warmup_steps: /,
    errors: [{ pointer: '/train/lr_schedule/warmup_steps', code: 'warmup_longer_than_training' }],
  });
  t.match(progress, { step: 0, total_steps: null });
  t.equal(spec.train.epochs, 1);
  t.match(parseResult(await f.objects.get(resultKey(id))), { state: 'failed', total_steps: null });
});
