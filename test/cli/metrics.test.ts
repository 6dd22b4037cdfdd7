/** Metrics of a job on standard output and in files. */

import { once } from 'node:events';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import t from 'tap';
import { claimAndTrain } from '../../api/testing/training.js';
import { commandLine, start } from './command-line.js';

t.test('metrics on standard output', async (t) => {
  const { stack, zerofleet } = await start(t);
  const { id } = await stack.createJob({ name: 'mine', train: { steps: 40 } });
  await claimAndTrain(stack.store, id, { steps: 40 });
  const body = async (query: string) =>
    (await stack.request({ url: `/v1/jobs/${id}/metrics?${query}` })).body.trimEnd();
  t.match(await zerofleet(['metrics', 'mine']), { code: 0, out: await body('format=csv'), err: '' });
  t.equal((await zerofleet(['metrics', id, '--json'])).out, await body('format=jsonl'));
  t.equal((await zerofleet(['metrics', id, '--format', 'jsonl'])).out, await body('format=jsonl'));
  const options = [
    '--from-step',
    '3',
    '--to-step',
    '38',
    '--max-points',
    '16',
    '--names',
    'loss',
    '--names',
    'lr',
  ];
  t.equal(
    (await zerofleet(['metrics', id, ...options])).out,
    await body('format=csv&from_step=3&to_step=38&max_points=16&names=loss&names=lr'),
  );
  t.match(await zerofleet(['metrics', id, '--names', 'los']), { code: 1, err: /\/names/ });
  t.match(await zerofleet(['metrics', id, '--format', 'xml']), { code: 2, err: /csv, jsonl, tensorboard/ });
});

t.test('metrics in a file, which replaces the previous one', async (t) => {
  const { stack, zerofleet, dir } = await start(t);
  const job = await stack.createJob();
  await claimAndTrain(stack.store, job.id, { steps: 3 });
  const content = async (format: string) =>
    (await stack.request({ url: `/v1/jobs/${job.id}/metrics?format=${format}` })).rawPayload;
  const tensorboard = ['metrics', job.id, '--format', 'tensorboard'];
  t.match(await zerofleet(tensorboard), { code: 2, err: /needs --output/ });

  const run = join(dir, 'runs', 'one');
  const { code, out } = await zerofleet([...tensorboard, '--output', `${run}/`]);
  t.equal(code, 0);
  const [name = '', ...others] = await readdir(run);
  t.match(name, new RegExp(`^events\\.out\\.tfevents\\.\\d+\\.${job.id}$`));
  t.strictSame([out, others], [join(run, name), []]);
  t.ok((await readFile(join(run, name))).equals(await content('tensorboard')));
  const said = await zerofleet([...tensorboard, '--json', '-o', run]);
  t.strictSame(JSON.parse(said.out), { file: join(run, name) }, 'an existing folder');

  const file = join(dir, 'metrics.csv');
  await writeFile(file, 'an older one');
  t.match(await zerofleet(['metrics', job.id, '-o', file]), { code: 0, out: file });
  t.ok((await readFile(file)).equals(await content('csv')));
});

t.test('a file that breaks off leaves the previous one', async (t) => {
  const server = createServer((_request, response) => {
    response.writeHead(200, {
      'content-type': 'text/csv',
      'content-disposition': 'attachment; filename="a"',
    });
    response.write('seq,position\r\n', () => response.destroy());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  const zerofleet = commandLine({ ZEROFLEET_URL: `http://127.0.0.1:${port}`, ZEROFLEET_API_KEY: 'k' });
  const dir = t.testdir({ 'metrics.csv': 'an older one' });
  const id = `job_${'0'.repeat(26)}`;
  const outcome = await zerofleet(['metrics', id, '-o', join(dir, 'metrics.csv')]);
  t.match(outcome, { code: 3, out: '', err: new RegExp(`^metrics of ${id}: no answer`) });
  t.strictSame(await readdir(dir), ['metrics.csv']);
  t.equal(await readFile(join(dir, 'metrics.csv'), 'utf8'), 'an older one');
});
