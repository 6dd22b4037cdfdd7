/**
 * Project checks of every record method: calls for the own project are passed on, records of other projects are not
 * found.
 */
import t from 'tap';
import { ProjectRecords } from './project-records.js';

type Store = ConstructorParameters<typeof ProjectRecords>[0];
type Method = Exclude<keyof ProjectRecords, 'project' | 'requireJob'>;
type Id = (kind: string) => string;

/** Calls that the store received, without ownership look-ups. */
type StoreCall = [method: string, ...parameters: unknown[]][];

/** Ids encode their project: `job:own`, `job:foreign`, `job:unknown`. */
function projectOf(id: string): string | null {
  if (id.endsWith('unknown')) return null;
  return id.endsWith('own') ? 'own' : 'foreign';
}

const LOOK_UPS: Record<string, (...parameters: string[]) => unknown> = {
  projectOfJob: (id = '') => projectOf(id),
  getJob: (id = '') => (projectOf(id) ? { id, spec: { project: projectOf(id) } } : null),
  findCheckpoint: (id = '') => (projectOf(id) ? { job_id: `job:${projectOf(id)}` } : null),
  getDataset: (id = '') => (projectOf(id) ? { id, project: projectOf(id) } : null),
  getModel: (id = '') => (projectOf(id) ? { id, project: projectOf(id) } : null),
};

function recordsOf(project = 'own') {
  const asked: StoreCall = [];
  const store = new Proxy({} as Store, {
    get:
      (_, method: string) =>
      async (...parameters: string[]) => {
        const look = LOOK_UPS[method];
        if (look) return look(...parameters);
        asked.push([method, ...parameters]);
        return `answer of ${method}`;
      },
  });
  return { asked, records: new ProjectRecords(store, project) };
}

const condition = { if_version: 3 } as never;
const page = { limit: 7 };
const options = { timeout_ms: 1 } as never;

/** A method and its result for an id outside the project. */
interface Row {
  call(records: ProjectRecords, id: Id): Promise<unknown>;
  /** The expected store call for the own record, after the ownership look-up. */
  asks: (id: Id) => StoreCall;
  refusal: 'job_not_found' | null | false;
}

const onJob = (method: Method, ...more: unknown[]): Row => ({
  call: (records, id) =>
    (records[method] as (...parameters: unknown[]) => Promise<unknown>)(id('job'), ...more),
  asks: (id) => [[method, id('job'), ...more]],
  refusal: 'job_not_found',
});
const onCheckpoint = (method: Method, refusal: null | false, ...more: unknown[]): Row => ({
  call: (records, id) =>
    (records[method] as (...parameters: unknown[]) => Promise<unknown>)(id('ckpt'), ...more),
  asks: (id) => [[method, id('ckpt'), ...more]],
  refusal,
});

const unchanged = <T>(record: T): T => record;

const BY_ID = {
  getJob: { call: (records, id) => records.getJob(id('job')), asks: () => [], refusal: null },
  requestPause: onJob('requestPause', condition),
  requestCancel: onJob('requestCancel', condition),
  resumeJob: onJob('resumeJob', { ranks: 2 }),
  requestCheckpoint: onJob('requestCheckpoint', condition),
  requestResize: onJob('requestResize', 3, condition),
  retryJob: onJob('retryJob', condition),
  deleteJob: onJob('deleteJob', { artifacts: true }),
  listAttempts: onJob('listAttempts', page),
  waitVersion: onJob('waitVersion', 4, options),
  listCheckpoints: onJob('listCheckpoints', page),
  getCalls: onJob('getCalls'),
  countCalls: onJob('countCalls', { answered: 1, bytes: 2 }),
  waitCalls: onJob('waitCalls', () => true, options),
  updateJob: {
    call: (records, id) => records.updateJob({ before: { id: id('job') } } as never),
    asks: (id) => [['updateJob', { before: { id: id('job') } }]],
    refusal: 'job_not_found',
  },
  findCheckpoint: {
    call: (records, id) => records.findCheckpoint(id('ckpt')),
    asks: () => [],
    refusal: null,
  },
  pinCheckpoint: onCheckpoint('pinCheckpoint', null, true),
  deleteCheckpoint: onCheckpoint('deleteCheckpoint', null),
  holdCheckpoint: onCheckpoint('holdCheckpoint', false, 'holder', 5),
  getDataset: { call: (records, id) => records.getDataset(id('ds')), asks: () => [], refusal: null },
  updateDataset: {
    call: (records, id) => records.updateDataset(id('ds'), unchanged),
    asks: (id) => [['updateDataset', id('ds'), unchanged]],
    refusal: null,
  },
  updateModel: {
    call: (records, id) => records.updateModel(id('mdl'), unchanged),
    asks: (id) => [['updateModel', id('mdl'), unchanged]],
    refusal: null,
  },
  deleteDataset: {
    call: (records, id) => records.deleteDataset(id('ds')),
    asks: (id) => [['deleteDataset', id('ds')]],
    refusal: false,
  },
  getModel: { call: (records, id) => records.getModel(id('mdl')), asks: () => [], refusal: null },
  deleteModel: {
    call: (records, id) => records.deleteModel(id('mdl')),
    asks: (id) => [['deleteModel', id('mdl')]],
    refusal: false,
  },
} satisfies Partial<Record<Method, Row>>;

/** Methods without an id. A new method does not compile until one of the tables lists it. */
const OTHERS: Record<Exclude<Method, keyof typeof BY_ID>, true> = {
  createJob: true,
  findCreated: true,
  listJobs: true,
  listProjectCheckpoints: true,
  listDatasets: true,
  listModels: true,
  findDatasetCopy: true,
  findModelCopy: true,
  findTokenizerCopy: true,
};

t.test('calls for records of the own project are passed on unchanged', async (t) => {
  for (const [name, { call, asks }] of Object.entries(BY_ID) as [string, Row][]) {
    const { asked, records } = recordsOf();
    const id: Id = (kind) => `${kind}:own`;
    const answer = await call(records, id);
    t.strictSame(asked, asks(id), name);
    const expected = asked.length > 0 ? `answer of ${name}` : LOOK_UPS[name]?.(`${KINDS[name]}:own`);
    t.strictSame(answer, expected, name);
  }
});

/** Methods that only read. */
const KINDS: Record<string, string> = {
  getJob: 'job',
  findCheckpoint: 'ckpt',
  getDataset: 'ds',
  getModel: 'mdl',
};

t.test('records of another project are reported as unknown and stay unchanged', async (t) => {
  for (const [name, { call, refusal }] of Object.entries(BY_ID) as [string, Row][]) {
    for (const whose of ['foreign', 'unknown']) {
      const { asked, records } = recordsOf();
      const answer = call(records, (kind) => `${kind}:${whose}`);
      if (refusal === 'job_not_found')
        await t.rejects(answer, { code: refusal, message: `there is no job job:${whose}` }, name);
      else t.equal(await answer, refusal, `${name} of one that is ${whose}`);
      t.strictSame(asked, [], name);
    }
  }
});

t.test('lists contain the own project only, whatever the filter', async (t) => {
  const { asked, records } = recordsOf();
  const ofAll = { ...page, project: 'foreign' };
  await records.listJobs(ofAll);
  await records.listJobs();
  await records.listDatasets(ofAll as typeof page);
  await records.listDatasets();
  await records.listModels(ofAll as typeof page);
  await records.listModels();
  const own = { project: 'own' };
  t.strictSame(
    asked,
    ['listJobs', 'listDatasets', 'listModels'].flatMap((list) => [
      [list, { ...page, ...own }],
      [list, own],
    ]),
  );
});

t.test('copies are found in the own project only', async (t) => {
  const key = { key: 'object' } as never;
  for (const project of ['own', 'foreign']) {
    const asked: StoreCall = [];
    const found = { id: 'x', project };
    const store = new Proxy({} as Store, {
      get:
        (_, method: string) =>
        async (...parameters: unknown[]) => {
          asked.push([method, ...parameters]);
          return found;
        },
    });
    const records = new ProjectRecords(store, 'own');
    const answers = [
      await records.findDatasetCopy(key),
      await records.findModelCopy(key),
      await records.findTokenizerCopy('digest'),
    ];
    t.strictSame(
      answers,
      answers.map(() => (project === 'own' ? found : null)),
    );
    t.strictSame(asked, [
      ['findDatasetCopy', 'own', key],
      ['findModelCopy', 'own', key],
      ['findTokenizerCopy', 'own', 'digest'],
    ]);
  }
});

t.test('a job is created in the own project only', async (t) => {
  const { asked, records } = recordsOf();
  const input = (project: string) => ({ id: 'job', spec: { project } }) as never;
  await records.createJob(input('own'));
  t.strictSame(asked, [['createJob', input('own')]]);
  t.throws(() => records.createJob(input('foreign')), { code: 'internal_error' });
  t.equal(asked.length, 1);
  await records.findCreated({ scope: 's', key: 'k', body_hash: 'h' });
  t.equal(asked.length, 2);
  t.ok(OTHERS.findCreated);
});
