/** One-liners: training without a document, the first document, the status, and names in documents. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { ulid } from 'ulid';
import { ADMIN_KEY } from '../../api/testing/stack.js';
import { checkpointOf, claimAndTrain } from '../../api/testing/training.js';
import { connectionOf } from '../../clients/cli/context.js';
import type { Job, JobSpec } from '../../contracts/index.js';
import { testModel } from '../../formats/testing/models.js';
import { start } from './command-line.js';

const CHATS = `${JSON.stringify({
  messages: [
    { role: 'user', content: 'Why?' },
    { role: 'assistant', content: 'Because.' },
  ],
})}\n`.repeat(40);

t.test('a job without a document', async (t) => {
  const { stack, zerofleet, file } = await start(t);
  const chats = await file('chats.jsonl', CHATS);
  const specOf = async (...args: string[]) => {
    const { code, out, err } = await zerofleet(['train', ...args, '--json']);
    t.equal(code, 0, err);
    return JSON.parse(out) as Job;
  };
  const first = await zerofleet(['train', chats, '--lora']);
  t.match(first, {
    code: 0,
    out: /^job_\w{26}$/,
    err: /^dataset chats.jsonl: jsonl, .* documents: 40 \(40 chats\)\n/,
  });
  t.match(first.err, /warning: \/data\/chat_template: .*ChatML/);
  const { spec, name } = (await stack.store.getJob(first.out)) as Job;
  t.equal(name, 'chats');
  t.match(spec, { model: { preset: 'llama-tiny' }, train: { epochs: 3, adapter: { type: 'lora' } } });

  const again = await specOf(
    'chats.jsonl',
    '--steps',
    '7',
    '--ranks',
    '2',
    '--name',
    'mine',
    '--set',
    'train.seed=5',
  );
  t.match(again, { name: 'mine', requested_ranks: 2, spec: { train: { steps: 7, seed: 5 } } });
  t.equal(again.spec.data.dataset, spec.data.dataset, 'a name is that of the uploaded dataset');

  const pair = { prompt: 'Why?', chosen: ' Because.', rejected: ' No.' };
  const preferences = await file('pairs.jsonl', `${JSON.stringify(pair)}\n`.repeat(40));
  t.equal((await specOf(preferences)).spec.train.objective?.type, 'dpo');

  const execution = await claimAndTrain(stack.store, again.id, { steps: 3 });
  const checkpoint = checkpointOf(again.id, 4);
  await stack.store.commitCheckpoint(again.id, execution, checkpoint);
  await stack.objects.put(`${checkpoint.prefix}/MANIFEST.json`, Buffer.from('{}'));
  for (const base of ['mine', 'mine@4', again.id, checkpoint.id])
    t.match(
      (await specOf(chats, '--model', base)).spec.model.init_from,
      { checkpoint: checkpoint.id, restore: 'weights' },
      base,
    );
  t.match(await zerofleet(['update', 'mine', '--name', 'ours']), { code: 0, out: /^job_\w+ +ours/ });
  t.match(await zerofleet(['train', chats, '--model', 'nothing']), {
    code: 1,
    err: /no model is named nothing/,
  });
  t.match(await zerofleet(['train', 'nothing.jsonl']), {
    code: 1,
    err: /there is no file nothing.jsonl, and no dataset is named nothing.jsonl/,
  });
  t.match(await zerofleet(['train', chats, '--model', 'constructor']), {
    code: 1,
    err: /no model is named constructor/,
  });
  for (const both of [
    ['--epochs', '1', '--steps', '7'],
    ['--lora', '--dora'],
  ])
    t.match(await zerofleet(['train', chats, ...both]), { code: 2, err: /cannot be used with/ });
  t.equal((await specOf(String(spec.data.dataset))).name, 'chats', 'a job has the name of its dataset');
  const plan = await zerofleet(['train', chats, '--dry-run']);
  t.match(plan, { code: 0, out: /sequences .*\n(.*\n)*RANKS/ });
});

t.test('names in documents are those of the command line', async (t) => {
  const { stack, zerofleet, file } = await start(t);
  const chats = await file('ds_chats.jsonl', CHATS);
  const submitted = async (document: object) => {
    const { code, out, err } = await zerofleet(['submit', '-', '--json'], {
      stdin: JSON.stringify(document),
    });
    t.equal(code, 0, err);
    return JSON.parse(out) as Job;
  };
  const document = { data: { dataset: chats }, train: { steps: 7 } };
  const first = await submitted({ ...document, name: '01', model: { init_from: 'llama-tiny' } });
  t.match(first.spec.model, { preset: 'llama-tiny', init_from: null });
  const execution = await claimAndTrain(stack.store, first.id, { steps: 3 });
  const checkpoint = checkpointOf(first.id, 4);
  await stack.store.commitCheckpoint(first.id, execution, checkpoint);
  await stack.objects.put(`${checkpoint.prefix}/MANIFEST.json`, Buffer.from('{}'));

  // The name of a file or dataset may look like an id, and that of a job like the prefix of a model's id.
  const model = testModel(`mdl_${ulid()}`);
  t.match(model.id, /^mdl_01/);
  await stack.store.putModel(model);
  for (const from of ['01', '01@4', first.id]) {
    const named = { ...document, data: { dataset: 'ds_chats.jsonl' }, model: { init_from: from } };
    const { spec } = await submitted(named);
    t.equal(spec.data.dataset, first.spec.data.dataset);
    t.match(spec.model.init_from, { checkpoint: checkpoint.id, restore: 'weights' }, from);
  }
});

t.test('the first document can be submitted as it is', async (t) => {
  const { zerofleet, dir, file } = await start(t);
  const path = join(dir, 'job.yaml');
  t.match(await zerofleet(['init', path]), { code: 0, out: path, err: /zerofleet submit .*--dry-run/ });
  t.match(await zerofleet(['init', path]), { code: 2, err: /exists already/ });
  t.match(await zerofleet(['submit', path]), { code: 1, err: /no dataset is named chats.jsonl/ });
  const chats = await file('chats.jsonl', CHATS);
  const document = await readFile(path, 'utf8');
  await writeFile(path, document.replace('dataset: chats.jsonl', `dataset: ${chats}`));
  const { code, out, err } = await zerofleet(['submit', path]);
  t.equal(code, 0, err);
  // Every line that is commented out is a field of a document as well.
  const uncommented = document
    .replaceAll(
      /^(\s*)# (?=(optimizer|adapter|evaluation|early_stopping|sequence_length|global_batch_size|validation_fraction|resources|export|labels):)/gm,
      '$1',
    )
    .replace('#   ranks:', '  ranks:')
    .replace('dataset: chats.jsonl', `dataset: ${chats}`);
  t.not(uncommented, document);
  const all = await zerofleet(['submit', '-', '--dry-run', '--json'], { stdin: uncommented });
  t.equal(all.code, 0, all.err);
  const { spec } = JSON.parse(all.out) as { spec: JobSpec };
  t.match(spec, {
    train: { adapter: { rank: 16 }, early_stopping: { patience: 3 } },
    labels: { team: 'docs' },
  });

  const given = await zerofleet(['get', out, '--document']);
  t.match(given, { code: 0, out: /^name: my-first-run\nmodel:\n/ });
  const resubmitted = await zerofleet(['submit', '-'], { stdin: given.out });
  t.match(resubmitted, { code: 0, out: /^job_/ });
  const status = await zerofleet(['status']);
  t.match(status, {
    code: 0,
    out: /^http:.*, project default\n\n(.*\n)+\nNAME +STATE +DONE +LOSS +CREATED\nmy-first-run +queued/,
  });
  t.ok(
    status.out.split('\n').every((line) => line.length <= 60),
    status.out,
  );
});

t.test('a server whose port was chosen is found beside its key', async (t) => {
  const dir = t.testdir({ 'api-key': `${ADMIN_KEY}\n`, address: 'http://127.0.0.1:4711\n' });
  const env = { ZEROFLEET_DATA_DIR: dir };
  t.same(connectionOf(env, {}), { baseUrl: 'http://127.0.0.1:4711', apiKey: ADMIN_KEY });
  t.equal(connectionOf({ ...env, ZEROFLEET_URL: 'http://a' }, {}).baseUrl, 'http://a');
  t.equal(connectionOf(env, { url: 'http://b' }).baseUrl, 'http://b');
  const usual = { baseUrl: 'http://127.0.0.1:8080', apiKey: 'k' };
  t.same(connectionOf({ ...env, ZEROFLEET_API_KEY: 'k' }, {}), usual, 'another key is not sent to it');
  t.same(connectionOf(env, { apiKey: 'k' }), usual);
});

t.test('the help is grouped by task and has examples', async (t) => {
  const { zerofleet } = await start(t);
  const { out } = await zerofleet(['--help']);
  const headings = [...out.matchAll(/^(\S[^:\n]*):$/gm)].map(([, heading]) => heading);
  t.strictSame(headings, [
    'Options',
    'Begin',
    'Data and models',
    'Jobs',
    'Sweeps',
    'Change jobs',
    'Results',
    'Machines and memory',
    'Console and access',
    'Help',
    'Examples',
  ]);
});
