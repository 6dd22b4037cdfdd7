import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import type { Checkpoint } from '../../../contracts/index.js';
import { openObjectStore } from '../../../platform/object-store/index.js';
import { applyRetention, type RetentionContext, superseded } from './retention.js';

function checkpoint(step: number, fields: Partial<Checkpoint> = {}): Checkpoint {
  const committedAt = new Date(step * 1000).toISOString();
  const digest = { state_digest: '0'.repeat(32), bytes: 1, world_size: 1 };
  return {
    id: `c${step}`,
    job_id: 'job',
    step,
    ...digest,
    committed_at: committedAt,
    pinned: false,
    damaged: false,
    prefix: `p${step}`,
    ...fields,
  };
}

const ids = (checkpoints: Checkpoint[]) => checkpoints.map(({ id }) => id);

t.test('all but the newest k are superseded, in any order', async (t) => {
  const all = [10, 40, 20, 30].map((step) => checkpoint(step));
  t.strictSame(ids(superseded(all, { keep: { last: 2, best: 0 } })), ['c20', 'c10']);
  t.strictSame(ids(superseded(all, { keep: { last: 4, best: 0 } })), []);
  t.strictSame(ids(superseded(all, { keep: { last: 9, best: 0 } })), []);
});

t.test('a pinned checkpoint stays and does not count towards keep.last', async (t) => {
  const all = [checkpoint(10, { pinned: true }), checkpoint(20), checkpoint(30)];
  t.strictSame(ids(superseded(all, { keep: { last: 1, best: 0 } })), ['c20']);
});

t.test('of rewards the highest are the best', async (t) => {
  const all = [0.5, 0.75, 0.25].map((reward, i) => checkpoint(10 * i, { eval_losses: { held_out: reward } }));
  const keep = { last: 1, best: 1, best_metric: 'eval_reward/held_out' };
  t.strictSame(ids(superseded(all, { keep })), ['c0']);
  t.strictSame(ids(superseded(all, { keep: { ...keep, best_metric: 'eval_loss/held_out' } })), ['c10', 'c0']);
});

t.test('of two checkpoints at one step the later one is newer', async (t) => {
  const first = checkpoint(10, { id: 'first', committed_at: '2026-01-01T00:00:00Z' });
  const second = checkpoint(10, { id: 'second', committed_at: '2026-01-02T00:00:00Z' });
  t.strictSame(ids(superseded([first, second], { keep: { last: 1, best: 0 } })), ['first']);
});

t.test(
  'a damaged checkpoint does not count towards keep.last, and goes when there is an undamaged one',
  async (t) => {
    const damaged = [checkpoint(90, { damaged: true }), checkpoint(80, { damaged: true, pinned: true })];
    const all = [...damaged, checkpoint(20), checkpoint(10)];
    t.strictSame(
      ids(superseded(all, { keep: { last: 1, best: 0 } })),
      ['c10', 'c90'],
      'the checkpoint that was just committed stays',
    );
    t.strictSame(ids(superseded(damaged, { keep: { last: 1, best: 0 }, keep_every: 10 })), []);
  },
);

t.test('the checkpoints with the lowest losses stay in addition to the newest', async (t) => {
  const losses: [step: number, validation?: number][] = [
    [10, 4],
    [20, 1.5],
    [25],
    [30, 2],
    [40, 1.5],
    [50, 3],
    [55],
  ];
  const all = losses.map(([step, validation]) =>
    checkpoint(step, validation === undefined ? {} : { eval_losses: { validation, code: 100 - step } }),
  );
  const bestMetric = 'eval_loss';
  t.strictSame(ids(superseded(all, { keep: { last: 1, best: 1, best_metric: bestMetric } })), [
    'c50',
    'c40',
    'c30',
    'c25',
    'c10',
  ]);
  t.strictSame(ids(superseded(all, { keep: { last: 1, best: 3, best_metric: bestMetric } })), [
    'c50',
    'c25',
    'c10',
  ]);
  t.strictSame(
    ids(superseded(all, { keep: { last: 2, best: 9, best_metric: bestMetric } })),
    ['c25'],
    'one without a loss does not compete',
  );
  const damaged = all.map((one) => (one.step === 20 ? { ...one, damaged: true } : one));
  t.strictSame(ids(superseded(damaged, { keep: { last: 1, best: 1, best_metric: bestMetric } })), [
    'c50',
    'c30',
    'c25',
    'c10',
    'c20',
  ]);
  const keep = { last: 1, best: 2, best_metric: 'eval_loss/code' };
  t.strictSame(ids(superseded(all, { keep })), ['c30', 'c25', 'c20', 'c10'], 'by another metric');
});

t.test('the best checkpoint of early stopping stays as long as the newest one refers to it', async (t) => {
  const rule = { keep: { last: 1, best: 0 } };
  const [old, best] = [checkpoint(10, { best_step: 10 }), checkpoint(20, { best_step: 20 })];
  t.strictSame(ids(superseded([old, best, checkpoint(30, { best_step: 20 })], rule)), ['c10']);
  t.strictSame(ids(superseded([old, best, checkpoint(30, { best_step: 30 })], rule)), ['c20', 'c10']);
});

t.test('every n-th step stays in addition to the newest', async (t) => {
  const all = [10, 15, 20, 25, 30].map((step) => checkpoint(step));
  t.strictSame(ids(superseded(all, { keep: { last: 1, best: 0 }, keep_every: 10 })), ['c25', 'c15']);
  t.strictSame(ids(superseded(all, { keep: { last: 2, best: 0 }, keep_every: 15 })), ['c20', 'c10']);
});

t.test(
  'a worker that was stopped after it read the records leaves saves of a later epoch alone',
  async (t) => {
    const dir = await mkdtemp(join(tmpdir(), 'zf-retention-'));
    const objects = await openObjectStore(pathToFileURL(dir).href);
    t.teardown(async () => {
      await objects.close();
      await rm(dir, { recursive: true });
    });
    const at = (name: string) => `jobs/job_1/checkpoints/${name}`;
    const write = async (name: string, ...files: string[]) => {
      for (const file of files) await objects.put(`${at(name)}/${file}`, Buffer.from('x'));
    };
    await write('000000005-1-a-aaaaaaaa', 'shard-0.safetensors', 'MANIFEST.json');
    await write('000000010-1-a-aaaaaaaa', 'shard-0.safetensors', 'MANIFEST.json');
    await write('000000012-1-a-bbbbbbbb', 'shard-0.safetensors');
    const records = [
      checkpoint(10, { prefix: at('000000010-1-a-aaaaaaaa') }),
      checkpoint(5, { prefix: at('000000005-1-a-aaaaaaaa') }),
    ];
    const removed: string[] = [];
    const context: RetentionContext = {
      deps: {
        objects,
        store: {
          listCheckpoints: async () => {
            // The worker is stopped here, and its successor claims the job.
            await write('000000015-2-a-cccccccc', 'shard-0.safetensors', 'MANIFEST.json');
            await write('000000020-2-a-cccccccc', 'shard-0.safetensors');
            return { data: records, next_cursor: null };
          },
          removeCheckpoint: async (_job, _execution, id) => removed.push(id) > 0,
        },
      },
      job: { id: 'job_1', spec: { checkpoint: { keep: { last: 1, best: 0 } } } },
      lease: { execution: '1-a', call: (work) => work('job_1', '1-a') },
    };
    await applyRetention(context, '000000010-1-a-aaaaaaaa');
    t.strictSame(removed, ['c5']);
    const left = new Set<string>();
    for await (const { key } of objects.list(at(''))) left.add(key.slice(at('').length).split('/')[0] ?? '');
    t.strictSame([...left].sort(), [
      '000000010-1-a-aaaaaaaa',
      '000000015-2-a-cccccccc',
      '000000020-2-a-cccccccc',
    ]);
  },
);

/** Builds the retention of `job`, with `pages` of records in the job store and the named saves in the object store. */
function setupOf(pages: Checkpoint[][], saves: string[], refuse?: (id: string) => Error | null) {
  const events: string[] = [];
  const requests: unknown[] = [];
  const objects = {
    list: async function* () {
      for (const key of saves.map((name) => `${PREFIX}${name}`)) yield { key };
    },
    delete: async ([key = '']: string[]) =>
      void events.push(`objects ${key.slice(PREFIX.length).split('/')[0]}`),
  } as unknown as RetentionContext['deps']['objects'];
  const context: RetentionContext = {
    deps: {
      objects,
      store: {
        listCheckpoints: async (job, page) => {
          requests.push([job, page]);
          const at = Number(page?.after ?? 0);
          return { data: pages[at] ?? [], next_cursor: at + 1 < pages.length ? String(at + 1) : null };
        },
        removeCheckpoint: async (job, execution, id) => {
          const error = refuse?.(id);
          if (error) throw error;
          return events.push(`record ${job} ${execution} ${id}`) > 0;
        },
      },
    },
    job: { id: 'job', spec: { checkpoint: { keep: { last: 1, best: 0 } } } },
    lease: { execution: '2-a', call: (work) => work('job', '2-a') },
  };
  return { context, events, requests };
}

const PREFIX = 'jobs/job/checkpoints/';
const ONE = '000000010-1-a-aaaaaaaa';
const TWO = '000000020-2-a-bbbbbbbb';
const saved = (step: number, name: string, fields: Partial<Checkpoint> = {}) =>
  checkpoint(step, { prefix: `${PREFIX}${name}`, ...fields });
const filesOf = (...names: string[]) => names.flatMap((name) => [`${name}/shard-0`, `${name}/MANIFEST.json`]);

t.test('the record of a checkpoint is removed before its objects, on every page', async (t) => {
  const zero = '000000005-1-a-cccccccc';
  const pages = [[saved(20, TWO)], [saved(10, ONE), saved(5, zero)]];
  const { context, events, requests } = setupOf(pages, filesOf(zero, ONE, TWO));
  await applyRetention(context, TWO);
  t.strictSame(events, ['record job 2-a c10', 'record job 2-a c5', `objects ${zero}`, `objects ${ONE}`]);
  t.strictSame(requests, [
    ['job', { limit: 100 }],
    ['job', { limit: 100, after: '1' }],
  ]);
});

t.test(
  'a checkpoint that is pinned or held meanwhile stays complete, and the others are removed',
  async (t) => {
    const zero = '000000005-1-a-cccccccc';
    for (const code of ['checkpoint_pinned', 'checkpoint_held']) {
      const refuse = (id: string) => (id === 'c10' ? Object.assign(new Error(), { code }) : null);
      const { context, events } = setupOf(
        [[saved(20, TWO), saved(10, ONE), saved(5, zero)]],
        filesOf(zero, ONE, TWO),
        refuse,
      );
      await applyRetention(context, TWO);
      t.strictSame(events, ['record job 2-a c5', `objects ${zero}`]);
    }
  },
);

t.test('the objects of a damaged checkpoint are removed before its record', async (t) => {
  const later = '000000030-2-a-bbbbbbbb';
  const pages = [[saved(30, later, { damaged: true }), saved(20, TWO)]];
  const { context, events } = setupOf(pages, filesOf(TWO, later));
  await applyRetention(context, TWO);
  t.strictSame(events.slice(0, 2), [`objects ${later}`, 'record job 2-a c30']);
});

t.test('a worker that lost the lease removes nothing', async (t) => {
  for (const error of [Object.assign(new Error(), { code: 'stale_epoch' }), new Error('a bug')]) {
    const { context, events } = setupOf([[saved(20, TWO), saved(10, ONE)]], filesOf(ONE, TWO), () => error);
    await t.rejects(applyRetention(context, TWO), error);
    t.strictSame(events, []);
  }
});

t.test(
  "only this generation's saves without a manifest may be in progress; others are removed",
  async (t) => {
    const own = '000000025-2-a-bbbbbbbb';
    const others = ['000000021-2-a-dddddddd', '000000022-1-a-bbbbbbbb', 'something'];
    const late = '000000030-3-a-bbbbbbbb';
    const unfinished = [own, ...others, late].map((name) => `${name}/shard-0`);
    const { context, events } = setupOf([[saved(20, TWO)]], [...filesOf(TWO), ...unfinished]);
    await applyRetention(context, TWO);
    t.strictSame(
      events,
      ['000000021-2-a-dddddddd', '000000022-1-a-bbbbbbbb', 'something'].map((name) => `objects ${name}`),
    );
  },
);

t.test('saves of another holder of the same epoch are removed only if they were recorded', async (t) => {
  const [known, unknown, unfinished] = [5, 21, 22].map(
    (step) => `0000000${String(step).padStart(2, '0')}-2-b-cccccccc`,
  );
  const records = [saved(20, TWO), saved(5, `${known}`)];
  const { context, events } = setupOf(
    [records],
    [...filesOf(`${known}`, TWO, `${unknown}`), `${unfinished}/shard-0`],
  );
  await applyRetention(context, TWO);
  t.strictSame(events, ['record job 2-a c5', `objects ${known}`]);
});
