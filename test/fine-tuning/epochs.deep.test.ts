/**
 * Jobs over chats with `train.epochs` on the whole stack: the number of steps becomes known on the way, and the bits
 * are those of that number.
 */
import t, { type Test } from 'tap';
import { collect } from '../../clients/typescript/index.js';
import type { Checkpoint, Job, JobSpec } from '../../contracts/index.js';
import { smallJob } from '../support/specs.js';
import { startStack } from '../support/stack.js';

const FINISHED = () => false;
const EVERY = 10;
const EPOCHS = 3;
/** More epochs than a test can wait for. */
const ENDLESS = 1_000_000;
const TEMPLATE =
  '{% for m in messages %}<{{ m.role }}>{{ m.content }}</{{ m.role }}>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}';

function chats(count: number): string {
  const chat = (_: unknown, i: number) => {
    const user = { role: 'user', content: `Is ${i} even?` };
    return JSON.stringify({ messages: [user, { role: 'assistant', content: i % 2 ? 'no' : 'yes' }] });
  };
  return Array.from({ length: count }, chat).join('\n');
}

t.test('epochs of chats', async (t) => {
  const { client } = await startStack(t);
  const { id: dataset } = await client.datasets.create('chats', chats(200), 'jsonl');
  const specOf = (train: JobSpec['train'], ranks: number): JobSpec => {
    const spec = smallJob({
      name: 'epochs',
      dataset,
      steps: 1,
      ranks,
      every_steps: EVERY,
      keep: { last: 1000 },
    });
    const { steps: _, ...rest } = spec.train ?? {};
    const data = { dataset, chat_template: TEMPLATE, validation_fraction: 0.1 };
    return { ...spec, data, train: { ...rest, ...train } };
  };
  const finished = async (t: Test, { id }: Job) => {
    const job = await client.jobs.until(id, FINISHED, { interval_ms: 50 });
    t.equal(job.state, 'succeeded', JSON.stringify(job.failure));
    return job;
  };
  const digestOf = (job: Job) => job.export?.state_digest;
  const digests = async (id: string) => {
    const checkpoints: Checkpoint[] = await collect(client.jobs.checkpoints(id));
    return new Map(checkpoints.map(({ step, state_digest }) => [step, state_digest]));
  };
  /** Pauses a running job after a step. */
  const pausedAfter = async (t: Test, id: string, step: number) => {
    await client.jobs.until(id, ({ progress }) => progress.step >= step, { interval_ms: 20 });
    await client.jobs.pause(id);
    const job = await client.jobs.until(id, ({ state }) => state === 'paused', { interval_ms: 20 });
    t.equal(job.state, 'paused');
    return job.progress.step;
  };

  const plan = await client.jobs.dryRun(specOf({ epochs: EPOCHS }, 2));
  t.match(plan, { spec: { train: { epochs: EPOCHS } }, work: { sequences: null, epochs: EPOCHS } });
  const created = await client.jobs.create(specOf({ epochs: EPOCHS }, 2));
  t.match(created, { spec: { train: { epochs: EPOCHS } }, progress: { total_steps: null, percent: null } });
  const job = await finished(t, created);
  const { steps = 0, global_batch_size } = job.spec.train;
  const events = await collect(client.jobs.events(job.id));
  const prepared = events.find(({ type }) => type === 'data.prepared');
  const samples = Number(prepared?.data.sequences);

  await t.test('become the number of steps of the prepared data', async (t) => {
    t.equal(steps, Math.ceil((EPOCHS * samples) / global_batch_size));
    t.match(job.progress, { step: steps, total_steps: steps, percent: 100 });
    t.notOk('epochs' in job.spec.train);
    const resolved = events.filter(({ type }) => type === 'steps.resolved');
    t.match(resolved, [{ data: { epochs: EPOCHS, samples, steps } }]);
    t.match(await client.jobs.dryRun(specOf({ epochs: 2 * EPOCHS }, 1)), {
      work: { sequences: Math.ceil((2 * EPOCHS * samples) / global_batch_size) * global_batch_size },
    });
  });

  await t.test('give the bits of a job with this number of steps', async (t) => {
    const given = await finished(t, await client.jobs.create(specOf({ steps }, 1)));
    t.equal(digestOf(job), digestOf(given));
    t.strictSame(job.spec.train, given.spec.train);
  });

  await t.test('are exact over pauses and resizes', async (t) => {
    const { id } = await client.jobs.create(specOf({ epochs: ENDLESS }, 2));
    const first = await pausedAfter(t, id, 3);
    await client.jobs.resume(id, { ranks: 3 });
    const last = await pausedAfter(t, id, first + 2 * EVERY);
    const { total_steps } = (await client.jobs.get(id)).progress;
    t.equal(total_steps, Math.ceil((ENDLESS * samples) / global_batch_size));
    const other = await client.jobs.create(specOf({ steps: total_steps ?? 1 }, 1));
    await pausedAfter(t, other.id, last);
    const [ours, theirs] = [await digests(id), await digests(other.id)];
    const step = Math.ceil((first + 1) / EVERY) * EVERY;
    t.ok(ours.get(step), `checkpoint of step ${step}`);
    t.equal(ours.get(step), theirs.get(step));
    for (const each of [id, other.id]) await client.jobs.cancel(each);
  });

  await t.test("of a fork are its source's, or others", async (t) => {
    const fromCheckpoint = (await client.jobs.get(job.id)).latest_checkpoint?.id;
    const longer = await client.jobs.fork(job.id, {
      from_checkpoint: fromCheckpoint,
      overrides: { train: { steps: null, epochs: EPOCHS + 1 } },
    });
    t.equal(longer.progress.total_steps, null);
    const total = Math.ceil(((EPOCHS + 1) * samples) / global_batch_size);
    t.match(await finished(t, longer), { progress: { step: total, total_steps: total } });
    const early = (await collect(client.jobs.checkpoints(job.id))).find(({ step }) => step === EVERY);
    const same = await client.jobs.fork(job.id, { from_checkpoint: early?.id });
    t.equal(same.progress.total_steps, steps, 'is known at once');
    t.equal(digestOf(await finished(t, same)), digestOf(job));
  });

  await t.test('that are too few fail the job with the field', async (t) => {
    const fromCheckpoint = job.latest_checkpoint?.id;
    const overrides = { train: { steps: null, epochs: 1 } };
    const fork = await client.jobs.fork(job.id, { from_checkpoint: fromCheckpoint, overrides });
    t.match(await client.jobs.until(fork.id, FINISHED), {
      state: 'failed',
      failure: { code: 'validation_failed', errors: [{ code: 'steps_not_beyond_checkpoint' }] },
    });
    const lrSchedule = { warmup_steps: 1000 };
    const { id } = await client.jobs.create(specOf({ epochs: 1, lr_schedule: lrSchedule }, 1));
    t.match(await client.jobs.until(id, FINISHED), {
      state: 'failed',
      failure: {
        errors: [{ pointer: '/train/lr_schedule/warmup_steps', code: 'warmup_longer_than_training' }],
      },
    });
  });
});
