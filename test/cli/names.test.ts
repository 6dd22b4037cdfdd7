/** Names, id prefixes and document settings on the command line. */
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { ulid } from 'ulid';
import { smallSpec } from '../../api/testing/stack.js';
import { claimAndTrain } from '../../api/testing/training.js';
import type { Checkpoint, Job } from '../../contracts/index.js';
import { projectRoot } from '../../platform/process/root.js';
import { start } from './command-line.js';

/** Shortest prefix that no other id has. */
function beginningOf(id: string, others: readonly string[]): string {
  let length = 1;
  while (others.some((other) => other !== id && other.startsWith(id.slice(0, length)))) length += 1;
  return id.slice(0, length);
}

t.test('a job by its name or id prefix', async (t) => {
  const { stack, zerofleet } = await start(t);
  const jobs = [];
  for (const name of ['alpha', 'twin', 'twin', 'job_named']) jobs.push(await stack.createJob({ name }));
  const [alpha, twin, other, odd] = jobs as [Job, Job, Job, Job];
  const ids = jobs.map(({ id }) => id);
  t.match(await zerofleet(['get', 'alpha']), { code: 0, out: `job         ${alpha.id}  alpha` });
  const begin = beginningOf(alpha.id, ids);
  for (const text of [begin, begin.slice('job_'.length)])
    t.match((await zerofleet(['get', text, '--json'])).out, `"id":"${alpha.id}"`, text);
  t.match(
    await zerofleet(['get', 'job_named', '--json']),
    { out: `"id":"${odd.id}"` },
    'a name takes precedence',
  );
  const refused = await zerofleet(['cancel', 'twin']);
  t.match(refused, { code: 2, err: /^twin may be any of these; give an id:\n/ });
  for (const { id } of [twin, other]) t.ok(refused.err.includes(`\n  ${id}  twin  queued`));
  t.match(await zerofleet(['get', 'job_']), { code: 2, err: /may be any of these/ });
  t.match(await zerofleet(['watch', 'job_1']), {
    code: 1,
    err: 'no job is named job_1, and no id begins with it; zerofleet list shows them',
  });
  t.match(await zerofleet(['get', `ds_${'0'.repeat(26)}`]), {
    code: 1,
    err: /\/path\/job_id: is not an id \(job_.*zerofleet list shows them/,
  });
  const quiet = await zerofleet(['get', `job_${'0'.repeat(26)}`]);
  t.match(quiet, { code: 1, err: /job_not_found/ }, 'a complete id causes no look-up');
});

t.test('a look-up costs one or two requests, independent of the number of objects', async (t) => {
  const { stack, zerofleet } = await start(t);
  const wanted = await stack.createJob({ name: 'wanted' });
  // More than one page.
  const { spec } = wanted;
  for (let made = 0; made < 120; made += 1)
    await stack.store.createJob({ id: `job_${ulid()}`, spec: { ...spec, name: 'twin' } });
  const asked: (string | undefined)[] = [];
  stack.app.server.on('request', ({ url }) => asked.push(url));
  t.match(await zerofleet(['get', 'wanted']), { code: 0 });
  t.equal(asked.length, 2, 'the name, and the job');
  asked.length = 0;
  t.match(await zerofleet(['get', wanted.id.slice(0, -1)]), { code: 0 });
  t.equal(asked.length, 3);
  asked.length = 0;
  const { code, err } = await zerofleet(['get', 'twin']);
  t.strictSame([code, err.split('\n').length, asked.length], [2, 7, 1]);
  t.match(err, /\n {2}and more$/);
});

t.test('a checkpoint by its job, step or id prefix', async (t) => {
  const { stack, zerofleet } = await start(t);
  const job = await stack.createJob({ name: 'alpha' });
  await stack.createJob({ name: 'empty' });
  const other = await stack.createJob({ name: 'beta' });
  await claimAndTrain(stack.store, job.id, { steps: 2 });
  await claimAndTrain(stack.store, other.id, { steps: 2 });
  const [last] = (await stack.store.listCheckpoints(job.id)).data as [Checkpoint];
  const [foreign] = (await stack.store.listCheckpoints(other.id)).data as [Checkpoint];
  const begin = beginningOf(last.id, [foreign.id]);
  for (const text of ['alpha', `alpha@${last.step}`, `${job.id}@${last.step}`, begin])
    t.match(await zerofleet(['pin', text]), { code: 0, out: `${last.id}  pinned` }, text);
  t.match(await zerofleet(['pin', 'alpha@77']), { code: 1, err: /alpha has no checkpoint after step 77/ });
  t.match(await zerofleet(['pin', 'empty']), { code: 1, err: /empty has no checkpoint yet/ });
  t.match(await zerofleet(['pin', 'ckpt_']), { code: 2, err: /ckpt_\w+ {2}alpha {2}step 2/ });
  await stack.objects.put(`${last.prefix}/MANIFEST.json`, Buffer.from('{}'));
  t.match(await zerofleet(['fork', 'alpha', '-c', `alpha@${last.step}`, '--set', 'name=fork']), {
    code: 0,
    out: /queued/,
  });
  t.match(await zerofleet(['download', 'alpha']), { code: 1, err: /exported nothing/ });
  t.match(await zerofleet(['download', 'alpha@2', '--format', 'safetensors']), {
    code: 1,
    err: /export_not_found/,
  });
});

t.test('datasets, keys and webhooks by their names', async (t) => {
  const { stack, zerofleet, file, dir } = await start(t);
  await zerofleet(['datasets', 'upload', await file('hamlet.txt', 'to be or not')]);
  const copy = join(dir, 'copy of hamlet.txt');
  t.match(await zerofleet(['datasets', 'download', 'hamlet.txt', '-o', copy]), { code: 0, out: /SHA-256/ });
  t.equal(await readFile(copy, 'utf8'), 'to be or not');
  t.match(await zerofleet(['datasets', 'delete', 'hamlet.txt']), { code: 0 });
  t.match(await zerofleet(['datasets']), { out: 'no datasets' });
  await zerofleet(['keys', 'create', 'ci', '--scope', 'jobs:read']);
  t.match(await zerofleet(['keys', 'rotate', 'ci']), { code: 0, out: /^zf_/ });
  t.match(await zerofleet(['audit', '--key', 'unknown']), { code: 1, err: /no key is named unknown/ });
  await zerofleet(['webhooks', 'add', 'https://example.com/hook']);
  t.match(await zerofleet(['webhooks', 'delete', 'https://example.com/hook']), { code: 0 });
  t.strictSame((await stack.store.listWebhooks('default', {})).data, []);
});

t.test('settings override a document', async (t) => {
  const { stack, zerofleet } = await start(t);
  const dataset = (await stack.upload('to be or not to be. '.repeat(40))).id;
  const stdin = JSON.stringify({ ...smallSpec(dataset), labels: { team: 'a' } });
  const set = (...settings: string[]) => settings.flatMap((text) => ['--set', text]);
  const submit = (...settings: string[]) =>
    zerofleet(['submit', '-', '--json', ...set(...settings)], { stdin });
  const made = await submit(
    'train.steps=7',
    'train.optimizer={type: lion, lr: 1e-4}',
    'train.optimizer.lr=0.5',
    'labels.team=null',
    'labels.app\\.kubernetes=x=y',
    'name="12"',
  );
  t.match(made, { code: 0 });
  const job = JSON.parse(made.out) as Job;
  t.match(job.spec.train, { steps: 7, optimizer: { type: 'lion', lr: 0.5 } });
  t.strictSame([job.labels, job.name], [{ 'app.kubernetes': 'x=y' }, '12']);
  for (const bad of ['steps', '=1', 'a..b=1'])
    t.match(await submit(bad), { code: 2, err: /is not a setting: write path=value/ }, bad);
  t.match(await submit('train.steps=[1'), { code: 2, err: /is not YAML/ });
  t.match(await submit('train.stepz=1'), { code: 1, err: /\/train\/stepz: .*steps\?/ });

  await claimAndTrain(stack.store, job.id, { steps: 2 });
  const [{ prefix }] = (await stack.store.listCheckpoints(job.id)).data as [Checkpoint];
  await stack.objects.put(`${prefix}/MANIFEST.json`, Buffer.from('{}'));
  const fork = ['fork', '12', '--json', ...set('train.steps=9', 'labels.app\\.kubernetes=null')];
  const forked = JSON.parse((await zerofleet(fork)).out) as Job;
  t.match(forked.spec.train, { steps: 9, optimizer: { type: 'lion', lr: 0.5 } });
  t.strictSame(forked.labels, {});
});

t.test('the version, and help on a command of a group', async (t) => {
  const { zerofleet } = await start(t);
  const { version } = JSON.parse(readFileSync(join(projectRoot(), 'package.json'), 'utf8'));
  t.match(await zerofleet(['--version']), { code: 0, out: version });
  t.match(await zerofleet(['help', 'datasets', 'upload']), {
    code: 0,
    out: /^Usage: zerofleet datasets upload \[options\] <file>/,
  });
  t.match(await zerofleet(['help', 'submit']), { code: 0, out: /^Usage: zerofleet submit/ });
  t.match(await zerofleet(['help']), { code: 0, out: /^Usage: zerofleet \[options\]/ });
  t.match(await zerofleet(['help', 'datasets', 'uplaod']), {
    code: 2,
    err: 'there is no command uplaod in datasets\nDid you mean upload?',
  });
});
