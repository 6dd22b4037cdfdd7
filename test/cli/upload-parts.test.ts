/** Uploads in parts: interrupted and resumed. */
import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { ADMIN_KEY, startTestStack } from '../../api/testing/stack.js';
import { runCli } from '../../clients/cli/program.js';
import { projectRoot } from '../../platform/process/root.js';

const PART_BYTES = 1_000;
const TEXT = 'to be or not to be, that is the question.\n'.repeat(2_000);

async function start(t: Test) {
  const stack = await startTestStack({ limits: { part_bytes: PART_BYTES } });
  const dir = await mkdtemp(join(tmpdir(), 'zf-cli-'));
  t.teardown(async () => {
    await stack.close();
    await rm(dir, { recursive: true });
  });
  const file = join(dir, 'text.txt');
  await writeFile(file, TEXT);
  const env = { ZEROFLEET_URL: await stack.listen(), ZEROFLEET_API_KEY: ADMIN_KEY };
  const upload = async (more: string[], signal = new AbortController().signal) => {
    const texts = { out: '', err: '' };
    const collect = (name: 'out' | 'err') =>
      new Writable({
        write(piece: Buffer, _encoding, done) {
          texts[name] += piece.toString();
          done();
        },
      });
    const world = {
      env,
      stdin: Readable.from([]),
      stdout: collect('out'),
      stderr: collect('err'),
      signal,
      root: projectRoot(),
    };
    const code = (await runCli(['datasets', 'upload', file, ...more], world)) ?? 0;
    return { code, ...texts };
  };
  const parts = async () => {
    let found = 0;
    for await (const { key } of stack.objects.list('uploads/')) if (key.includes('/parts/')) found += 1;
    return found;
  };
  return { ...stack, upload, parts, file };
}

t.test('an upload interrupted by Ctrl-C resumes', async (t) => {
  const { upload, parts, request } = await start(t);
  const interrupt = new AbortController();
  const first = upload(['--in-parts'], interrupt.signal);
  while ((await parts()) < 3) await sleep(2);
  interrupt.abort();
  const ended = await first;
  t.equal(ended.code, 130);
  const [, id = ''] = /--resume (upl_\w{26})\n$/.exec(ended.err) ?? [];
  t.ok(id, ended.err);
  const there = await parts();
  t.ok(there < Math.ceil(TEXT.length / PART_BYTES), 'it was interrupted');

  const second = await upload(['--resume', id]);
  t.equal(second.code, 0, second.err);
  t.match(second.out, /^ds_\w{26}\n$/);
  // The part in transit may have arrived after all.
  const [, known] = /^(\d+) of 84 parts have arrived\n/.exec(second.err) ?? [];
  t.ok(Number(known) >= there && Number(known) < 84, second.err);
  const again = await upload(['--resume', id]);
  t.equal(again.out, second.out, 'a repetition returns the same dataset');
  const dataset = await request({ url: `/v1/datasets/${second.out.trim()}` });
  t.match(dataset.json(), { bytes: TEXT.length, name: 'text.txt' });
});

t.test('another file does not resume the upload', async (t) => {
  const { upload, parts, file } = await start(t);
  const interrupt = new AbortController();
  const first = upload(['--in-parts'], interrupt.signal);
  while ((await parts()) < 1) await sleep(2);
  interrupt.abort();
  const [, id = ''] = /--resume (upl_\w{26})\n$/.exec((await first).err) ?? [];
  await appendFile(file, 'more');
  t.match(await upload(['--resume', id]), { code: 2, err: /is not the file of upload upl_\w+/ });
  t.match(await upload(['--resume', `upl_${'0'.repeat(26)}`]), { code: 1, err: /upload_not_found/ });
});
