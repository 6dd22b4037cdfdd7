/** The command line against the real API, in this process: jobs and error messages. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { ADMIN_KEY, smallSpec } from '../../api/testing/stack.js';
import { claimAndTrain } from '../../api/testing/training.js';
import type { Job } from '../../contracts/index.js';
import { projectRoot } from '../../platform/process/root.js';
import { until } from '../../platform/testing/waiting.js';
import { commandLine, start } from './command-line.js';

const TEXT = 'to be or not to be, that is the question. '.repeat(40);

t.test('from a text file to a watched job', async (t) => {
  const { stack, zerofleet, file } = await start(t);
  const { store } = stack;
  const uploaded = await zerofleet([
    'datasets',
    'upload',
    await file('hamlet.txt', TEXT),
    '--name',
    'hamlet',
  ]);
  t.match(uploaded, { code: 0, out: /^ds_\w{26}$/, err: /^text, 1.7 kB, sha256:/ });
  t.match(await zerofleet(['datasets']), { out: /^DATASET +NAME.*\nds_\w+ +hamlet +text +1\.7 kB/ });

  const yaml = [
    'model: {preset: llama-tiny}',
    `data: {dataset: ${uploaded.out}}`,
    'train: {steps: 10}',
    'resources: {ranks: {min: 1, max: 4, preferred: 2}}',
  ].join('\n');
  const submitted = await zerofleet(['submit', await file('job.yaml', yaml)]);
  t.match(submitted, { code: 0, out: /^job_\w{26}$/, err: /zerofleet watch job_/ });
  const id = submitted.out;
  const far = `${yaml}\n`.replace(
    '}\ndata: {',
    ', init_from: s3://far/model}\ndata: {tokenizer: s3://far/tokenizer.json, ',
  );
  t.match(await zerofleet(['submit', await file('far.yaml', far)]), {
    err: /^s3:..far.tokenizer.json is copied first.*\ns3:..far.model is copied first.*\n(.*\n)*.*ZEROFLEET_DATASET_BUCKETS/,
  });
  const json = JSON.stringify(smallSpec(uploaded.out));
  const again = ['submit', '-', '--idempotency-key', 'k1', '--json'];
  const [one, two] = [await zerofleet(again, { stdin: json }), await zerofleet(again, { stdin: json })];
  t.equal((JSON.parse(one.out) as Job).id, (JSON.parse(two.out) as Job).id);
  t.equal(one.err, '', 'no remarks');
  const { train, ...rest } = smallSpec(uploaded.out);
  const deepspeedConfig = {
    train_micro_batch_size_per_gpu: 2,
    gradient_accumulation_steps: 2,
    comms_config: { verbose: true },
  };
  const stdin = JSON.stringify({ ...rest, train, deepspeed_config: deepspeedConfig });
  const warning = /^warning: \/deepspeed_config\/comms_config: comms_config has no effect/;
  const warned = await zerofleet(['submit', '-'], { stdin });
  t.match(warned, { code: 0, out: /^job_\w+$/, err: warning });
  await zerofleet(['cancel', warned.out]);
  t.match(await zerofleet(['submit', '-', '--dry-run', '--json'], { stdin }), {
    code: 0,
    out: /^\{/,
    err: warning,
  });

  t.match(await zerofleet(['list']), { out: /^JOB +NAME +STATE/ });
  t.match(await zerofleet(['list'], { columns: 60 }), { out: /^JOB +job_\w{26}\nNAME.*\nSTATE +[a-z]+\n/ });
  t.equal((JSON.parse((await zerofleet(['list', '--json', '-n', '1'])).out) as Job[]).length, 1);
  t.equal((await zerofleet(['list', '--state', 'paused'])).out, 'no jobs');
  t.match(await zerofleet(['estimate', '-', '-r', '1', '2'], { stdin: json }), {
    out: /^RANKS +PER RANK.*\n1 +\S+ MB.*\n2 +\S+ MB/,
  });

  const execution = await claimAndTrain(store, id, { steps: 3 });
  t.match(await zerofleet(['resize', id, '--ranks', '3']), { code: 0, out: new RegExp(`^${id}  running`) });
  t.match(await zerofleet(['checkpoint', id]), { code: 0 });
  const watched = zerofleet(['watch', id]);
  const followed = zerofleet(['events', id, '--follow']);
  await store.finishJob(id, execution, 'succeeded', { reason: 'completed' });
  t.match(await watched, { code: 0, out: /succeeded[\s\S]*state +succeeded \(completed\)/ });
  t.match(await followed, { code: 0, out: /job\.created[\s\S]*checkpoint\.committed/ });
  t.match(await zerofleet(['get', id]), { out: /progress +step 3 of 10, 30 %/ });
  t.match(await zerofleet(['events', id]), {
    out: /job\.state +queued → provisioning\n[\s\S]*checkpoint\.committed +step \d+ · \d ranks? · /,
  });

  const other = (JSON.parse(one.out) as Job).id;
  t.match(await zerofleet(['pause', other]), { out: /paused/ });
  t.match(await zerofleet(['watch', other]), { code: 0, out: /state +paused/ }, 'watching a paused job ends');
  t.match(await zerofleet(['resume', other, '--ranks', '1']), { out: /queued +1 rank$/ });
  t.match(await zerofleet(['cancel', other]), { out: /cancelled/ });
  t.match(await zerofleet(['watch', other]), { code: 1, err: /has been cancelled/ });
  t.match(await zerofleet(['workers']), { code: 0, out: 'no workers' });
  t.match(await zerofleet(['pools']), { code: 0, out: 'no pools' });
  t.match(await zerofleet(['models']), { out: 'no models' });
});

t.test('watching ends when the job pauses, and nothing stays open', async (t) => {
  const { stack, zerofleet } = await start(t);
  const { store } = stack;
  const { id } = await stack.createJob();
  const execution = await claimAndTrain(store, id, { steps: 1 });
  const open = async () => {
    const { text } = await stack.app.services.metrics.scrape([]);
    return Number(/zerofleet_api_open_streams (\d+)/.exec(text)?.[1]);
  };
  const watched = zerofleet(['watch', id]);
  while ((await open()) === 0) await sleep(10);
  const warnings = [{ pointer: '/data/chat_template', code: 'no_stop_token', message: 'in 2 of 2 texts' }];
  await store.appendEvent(id, execution, { type: 'data.prepared', data: { warnings } });
  t.match(await zerofleet(['pause', id]), { out: /pausing/ });
  await store.releaseAttempt(id, execution, { to: 'paused' });
  const err = /^warning: \/data\/chat_template: in 2 of 2 texts$/m;
  t.match(await watched, { code: 0, out: /state +paused/, err });
  while ((await open()) > 0) await sleep(10);
});

t.test('the log of a job', async (t) => {
  const { stack, zerofleet } = await start(t);
  const { store } = stack;
  const { id } = await stack.createJob({ name: '\u001b[31mred\u009b\nforged row' });
  t.match(await zerofleet(['list']), { out: /^JOB[^\n]*\n[^\n]*red\ufffd\ufffdforged row[^\n]*$/ });
  t.match(await zerofleet(['list', '--json']), { out: /\\u001b\[31mred\\u009b\\nforged row/ });
  const execution = await claimAndTrain(store, id, { steps: 1 });
  const at = '2026-03-01T12:00:00.123Z';
  const line = (rank: number | null, message: string) =>
    ({
      rank,
      at,
      stream: rank === null ? 'worker' : 'stdout',
      message,
      truncated: false,
      dropped: 0,
    }) as const;
  await store.appendLogs(id, execution, [line(null, 'begins'), line(0, 'zero'), line(1, 'one')]);
  t.match(await zerofleet(['logs', id]), {
    code: 0,
    out: '12:00:00.123  job worker     begins\n12:00:00.123  rank 0         zero\n12:00:00.123  rank 1         one',
  });
  t.match((await zerofleet(['logs', id, '-r', '0'])).out, /^12:00:00.123 {2}rank 0 +zero$/);
  t.match((await zerofleet(['logs', id, '-n', '1'])).out, /^\S+ {2}rank 1 +one$/);
  t.match(JSON.parse((await zerofleet(['logs', id, '-n', '1', '--json'])).out), {
    rank: 1,
    message: 'one',
    epoch: 1,
  });
  const followed = zerofleet(['logs', id, '--follow', '--rank', '1']);
  await store.appendLogs(id, execution, [line(0, 'more'), line(1, 'more')]);
  await store.finishJob(id, execution, 'succeeded', { reason: 'completed' });
  t.match((await followed).out, /^\S+ {2}rank 1 +one\n\S+ {2}rank 1 +more$/);

  const other = await stack.createJob();
  const interrupt = new AbortController();
  const interrupted = zerofleet(['logs', other.id, '-f'], { signal: interrupt.signal });
  setImmediate(() => interrupt.abort());
  t.match(await interrupted, { code: 130, err: `show its log again with: zerofleet logs ${other.id} -f` });
  t.match(await zerofleet(['logs', id, '-r', 'first']), { code: 2, err: /whole number/ });
  t.match(await zerofleet(['logs', `job_${'0'.repeat(26)}`]), { code: 1, err: /job_not_found/ });
});

t.test('a reader that closes early ends the command silently', async (t) => {
  const { stack, url } = await start(t);
  const { store } = stack;
  const { id } = await stack.createJob();
  const execution = await claimAndTrain(store, id, { steps: 1 });
  const at = '2026-03-01T12:00:00.123Z';
  const line = { rank: 0, at, stream: 'stdout', message: 'a line', truncated: false, dropped: 0 } as const;
  for (const options of [['-f'], ['-f', '--json']]) {
    const program = join(projectRoot(), 'tools', 'zerofleet.mjs');
    const child = spawn(process.execPath, [program, 'logs', id, ...options], {
      env: { ...process.env, ZEROFLEET_URL: url, ZEROFLEET_API_KEY: ADMIN_KEY },
    });
    const ended = once(child, 'exit');
    const said = text(child.stderr);
    await store.appendLogs(id, execution, [line]);
    await once(child.stdout, 'data');
    child.stdout.destroy();
    await until(async () => {
      await store.appendLogs(id, execution, [line]);
      return child.exitCode !== null || child.signalCode !== null;
    });
    t.same(await ended, [0, null]);
    t.equal(await said, '');
  }
});

t.test('Ctrl-C leaves the job running and prints how to resume watching', async (t) => {
  const { stack, zerofleet } = await start(t);
  const { id } = await stack.createJob();
  const interrupt = new AbortController();
  const watched = zerofleet(['watch', id], { signal: interrupt.signal });
  setImmediate(() => interrupt.abort());
  t.match(await watched, {
    code: 130,
    err: `the job keeps running; watch it again with: zerofleet watch ${id}`,
  });
  t.equal((await stack.store.getJob(id))?.state, 'queued');
});

t.test('errors include advice', async (t) => {
  const { zerofleet, file, dir, url } = await start(t);
  t.match(await zerofleet(['submitt']), { code: 2, err: /Did you mean submit\?/ });
  t.match(await zerofleet(['list', '--state', 'nope']), { code: 2, err: /Allowed choices are queued, / });
  t.match(await zerofleet(['resize', 'job_1', '-r', 'many']), { code: 2, err: /whole number/ });
  t.match(await zerofleet(['get', `job_${'0'.repeat(26)}`]), { code: 1, err: /404 job_not_found/ });
  t.match(await zerofleet(['submit', join(dir, 'none.yaml')]), {
    code: 2,
    err: /there is no file .*none.yaml/,
  });
  t.match(await zerofleet(['submit', await file('bad.yaml', 'a: [1')]), { code: 2, err: /line 1/ });
  t.match(await zerofleet(['submit', '-'], { stdin: '- a' }), {
    code: 2,
    err: /standard input holds no job document/,
  });
  t.match(await zerofleet(['datasets', 'register', 's3://far/a.txt']), {
    code: 1,
    err: /ask an operator to add far, or a folder of it/,
  });
  t.match(await zerofleet(['datasets', 'upload', dir]), { code: 2, err: /is not a file/ });
  const dataset = `ds_${'0'.repeat(26)}`;
  const misspelt = `model: {preset: llama-tiny}\ndata: {dataset: ${dataset}}\ntrian: {}\n`;
  t.match(await zerofleet(['submit', '-'], { stdin: misspelt }), { code: 1, err: /\/trian: .*train/ });
  const noKey = commandLine({ ZEROFLEET_URL: url, ZEROFLEET_DATA_DIR: dir });
  t.match(await noKey(['list']), { code: 2, err: /no API key: set ZEROFLEET_API_KEY/ });
  await file('api-key', `${ADMIN_KEY}\n`);
  t.match(await noKey(['list']), { code: 0, out: 'no jobs' });
  t.match(await zerofleet(['--url', 'nonsense', 'list']), { code: 2, err: /'nonsense' is not a URL/ });
  t.match(await zerofleet(['--help']), { code: 0, out: /Usage: zerofleet/ });
});

t.test('the documentation lists exactly the existing commands', async (t) => {
  const { zerofleet } = await start(t);
  const help = (await zerofleet(['--help'])).out;
  const groups = help.slice(help.indexOf('\nBegin:'), help.indexOf('\nExamples:'));
  const commands = [...groups.matchAll(/^ {2}([a-z-]+)/gm)].map(([, name]) => name);
  const docs = await readFile(join(projectRoot(), 'docs/cli.md'), 'utf8');
  const table = docs.slice(docs.indexOf('| commands |'), docs.indexOf('Where the API is'));
  const rows = table.split('\n').map((row) => (row.split('|')[1] ?? '').replace(/\(.*\)/, ''));
  const listed = rows.flatMap((row) => [...row.matchAll(/`([a-z-]+)`/g)].map(([, name]) => name));
  t.strictSame(listed.sort(), commands.sort());
});

t.test('the program: exit codes, an unreachable API', async (t) => {
  const program = join(projectRoot(), 'tools/zerofleet.mjs');
  const run = (...args: string[]) =>
    spawnSync(process.execPath, [program, '--url', 'http://127.0.0.1:1', '--api-key', 'k', ...args], {
      encoding: 'utf8',
      env: { PATH: process.env.PATH, HOME: process.env.HOME },
    });
  t.match(run('--help'), { status: 0, stdout: /Usage: zerofleet/ });
  t.match(run('lisst'), { status: 2, stderr: /Did you mean list\?/ });
  t.match(run('get', 'job_1'), { status: 3, stderr: /no answer.*\n.*zerofleet up/ });
});
