/** Every action of the console. A new one is a row. */
import type { Test } from 'tap';
import { claimAndTrain } from '../../api/testing/training.js';
import { attemptsUntil, setUp } from '../../api/webhooks/testing/sending.js';
import type { NewApiKey, Scope } from '../../contracts/index.js';
import { putTestCheckpoint } from '../../formats/testing/checkpoints.js';
import { testModel } from '../../formats/testing/models.js';

export interface Action {
  /** Its button. */
  button: string;
  /** Part of the page that has the button: the page by default, or the dialog. */
  within?: string;
  /** Scope that it needs. */
  scope: Scope;
  /** Method and end of the address of its request. */
  sends: readonly [method: string, path: RegExp];
  /** It asks before it is done. */
  asks?: true;
  /** Button that opens its dialog. */
  opens?: string;
  /** Selector of an element of the dialog that is there as soon as its data are read. */
  opened?: string;
  /** Scope that the dialog needs; by default that of the action. */
  opensFor?: Scope;
  /** Selector of an element that the page has after the action, where no other test does it. */
  done?: string;
  /** Fields that are filled in first, by selector. */
  fills?: Readonly<Record<string, string>>;
}

interface View {
  address: string;
  /** Selector of an element that the view has as soon as its data are read. */
  loaded: string;
  /** Scopes of a key that sees the view, but may not do all of its actions. */
  reader: readonly Scope[];
  actions: readonly Action[];
}

/** An API with a record of each kind, in the states that the actions need. */
export async function setUpRecords(t: Test) {
  const stack = await setUp(t);
  const { store, request } = stack;
  const ranks = { resources: { ranks: { min: 1, max: 3, preferred: 2 } } };
  const job = async (name: string) => (await stack.createJob({ name, ...ranks })).id;
  const [running, paused, failed] = [await job('running'), await job('paused'), await job('failed')];
  const training = await claimAndTrain(store, running, { steps: 4 });
  const line = { rank: 0, at: new Date().toISOString(), stream: 'stdout', message: 'a line' } as const;
  await store.appendLogs(running, training, [{ ...line, truncated: false, dropped: 0 }]);
  for (const { prefix, id } of (await store.listCheckpoints(running)).data)
    await putTestCheckpoint(stack.objects, prefix, { numels: [10, 6], ranks: 2 }, id);
  await request({ method: 'POST', url: `/v1/jobs/${running}/shares`, payload: {} });
  const execution = await claimAndTrain(store, paused, { steps: 4 });
  await store.requestPause(paused);
  await store.releaseAttempt(paused, execution, { to: 'paused' });
  const ended = await claimAndTrain(store, failed, { steps: 4 });
  await store.finishJob(failed, ended, 'failed', { reason: 'internal_error' });
  const { id: dataset } = await stack.upload('a text '.repeat(500));
  const model = `mdl_${'0'.repeat(26)}`;
  await store.putModel(testModel(model));
  const payload = { name: 'of a team', scopes: ['jobs:read'] };
  const { id: key } = (await request({ method: 'POST', url: '/v1/api-keys', payload })).json<NewApiKey>();
  const ada = { issuer: 'https://login.example.com', subject: 'ada', name: 'Ada', email: null };
  await store.putUser({ ...ada, project: 'default', scopes: ['models'] }, 8 * 3_600_000);
  const { id: webhook } = await stack.createWebhook();
  const { reached, onAttempt } = attemptsUntil('succeeded');
  await stack.startSending({ onAttempt });
  await request({ method: 'POST', url: `/v1/webhooks/${webhook}/ping` });
  await reached;
  return { ...stack, ids: { running, paused, failed, dataset, model, key, webhook } };
}

type Ids = Awaited<ReturnType<typeof setUpRecords>>['ids'];

const RUN: Pick<View, 'loaded' | 'reader'> = { loaded: '[role=tablist]', reader: ['jobs:read'] };
const write = (button: string, method: string, path: RegExp, more: Partial<Action> = {}): Action => ({
  button,
  scope: 'jobs:write',
  sends: [method, path],
  ...more,
});
const admin = (button: string, method: string, path: RegExp, more: Partial<Action> = {}): Action =>
  write(button, method, path, { scope: 'admin', ...more });

export const viewsOf = (ids: Ids): readonly View[] => [
  {
    ...RUN,
    address: `#/runs/${ids.running}`,
    actions: [
      write('Checkpoint', 'POST', /\/checkpoint$/, { done: 'button:text-is("Checkpoint"):enabled' }),
      write('Pause', 'POST', /\/pause$/),
      write('Cancel', 'POST', /\/cancel$/, { asks: true }),
      write('Resize', 'POST', /\/resize$/, {
        fills: { '[aria-label=Ranks]': '3' },
        done: '.title:not(:has-text("Resize"))',
      }),
      ...[
        write('Create a link', 'POST', /\/shares$/),
        write('Revoke', 'DELETE', /\/shares\/shr_\w+$/, { asks: true }),
      ].map((action) => ({ ...action, opens: 'Share', opened: 'dialog tbody tr' })),
    ],
  },
  {
    address: `#/runs/${ids.running}?tab=checkpoints`,
    loaded: '[aria-label=Checkpoints] tbody tr',
    reader: ['jobs:read'],
    actions: [
      write('Pin', 'PATCH', /\/checkpoints\/\w+$/),
      write('Verify', 'POST', /\/verify$/, { scope: 'jobs:read', done: '.badge:text-is("verified")' }),
      write('Export', 'POST', /\/export$/, {
        opens: 'Files and exports',
        opened: 'dialog a',
        opensFor: 'jobs:read',
      }),
    ],
  },
  {
    address: `#/runs/${ids.paused}?tab=checkpoints`,
    loaded: '[aria-label=Checkpoints] tbody tr',
    reader: ['jobs:read'],
    actions: [
      write('Resume', 'POST', /\/resume$/),
      write('Resume from here', 'POST', /\/resume$/, { within: '[aria-label=Checkpoints]' }),
    ],
  },
  {
    ...RUN,
    address: `#/runs/${ids.failed}`,
    actions: [
      write('Save', 'PATCH', /\/jobs\/\w+$/, {
        opens: 'Edit',
        fills: {
          'dialog [name=name]': 'renamed',
          'dialog [name=labels]': 'team=docs',
          'dialog [name=notes]': 'first\nsecond',
        },
        done: '.head:has(h1:text-is("renamed")):has-text("team=docs"):has-text("second")',
      }),
      write('Retry', 'POST', /\/retry$/, { done: '.badge:text-is("queued")' }),
      write('Delete', 'DELETE', /\/jobs\/\w+\?artifacts=true$/, { asks: true }),
    ],
  },
  {
    address: `#/datasets/${ids.dataset}`,
    loaded: '[aria-label=Properties]',
    reader: ['datasets'],
    actions: [write('Delete', 'DELETE', /\/datasets\/\w+$/, { scope: 'datasets', asks: true })],
  },
  {
    address: `#/models/${ids.model}`,
    loaded: '[aria-label=Properties]',
    reader: ['models'],
    actions: [write('Delete', 'DELETE', /\/models\/\w+$/, { scope: 'models', asks: true })],
  },
  {
    address: `#/new?dataset=${ids.dataset}`,
    loaded: 'button:has-text("Start the run"):not(:disabled)',
    reader: ['jobs:read', 'datasets'],
    actions: [write('Start the run', 'POST', /\/jobs$/)],
  },
  {
    address: '#/admin',
    loaded: '.api-keys tbody tr',
    reader: ['admin'],
    actions: [
      admin('Create', 'POST', /\/api-keys$/, { opens: 'New key', fills: { 'dialog [name=name]': 'ci' } }),
      ...[
        admin('Save', 'PATCH', /\/api-keys\/\w+$/, {
          opens: 'Change',
          fills: { 'dialog [name=name]': 'other' },
        }),
        admin('Rotate', 'POST', /\/rotate$/, { opens: 'Rotate' }),
        admin('Revoke', 'DELETE', /\/api-keys\/\w+$/, { asks: true }),
        admin('Sign out', 'DELETE', /\/principals\/\w+\/sessions$/, { asks: true }),
      ].map((action) => ({ within: 'tr:has-text("of a team")', ...action })),
    ],
  },
  {
    address: '#/admin?tab=users',
    loaded: '[aria-label=Users] tbody tr',
    reader: ['admin'],
    actions: [admin('Sign out', 'DELETE', /\/principals\/\w+\/sessions$/, { asks: true })],
  },
  {
    address: '#/admin?tab=usage',
    loaded: 'text=default now',
    reader: ['admin'],
    actions: [
      admin('Save', 'PUT', /\/projects\/\w+$/, {
        scope: 'operator',
        opens: 'Change quota',
        fills: { 'dialog [name=max_jobs]': '7' },
      }),
    ],
  },
  {
    address: '#/admin?tab=webhooks',
    loaded: '[aria-label=Webhooks]',
    reader: ['admin'],
    actions: [
      admin('Create', 'POST', /\/webhooks$/, {
        opens: 'New webhook',
        fills: { 'dialog [name=url]': 'https://1.1.1.1/hook' },
      }),
    ],
  },
  {
    address: `#/admin?tab=webhooks&webhook=${ids.webhook}`,
    loaded: '[aria-label=Messages] tbody tr',
    reader: ['admin'],
    actions: [
      admin('Save', 'PATCH', /\/webhooks\/\w+$/, {
        opens: 'Edit',
        fills: { 'dialog [name=description]': 'other' },
      }),
      admin('Disable', 'PATCH', /\/webhooks\/\w+$/),
      admin('Rotate', 'POST', /\/rotate-secret$/, { opens: 'Rotate secret' }),
      admin('Delete', 'DELETE', /\/webhooks\/\w+$/, { asks: true }),
      admin('Send a ping', 'POST', /\/ping$/),
      admin('Redeliver', 'POST', /\/redeliver$/),
    ],
  },
];
