/** Downloads: interrupted, damaged, with names that leave the folder, and from an object store. */
import { createHash, randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { downloadFile, type FetchFile, type FileDownload, pathIn } from '../../clients/cli/download-file.js';
import { ApiError } from '../../clients/typescript/index.js';

const CONTENT = randomBytes(300_000);
const SHA256 = createHash('sha256').update(CONTENT).digest('hex');

async function directory(t: Test): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'zf-download-'));
  t.teardown(() => rm(dir, { recursive: true }));
  return dir;
}

/** A body that breaks after a number of bytes. */
function bodyOf(bytes: Uint8Array, breaksAfter = Number.POSITIVE_INFINITY): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= breaksAfter) return controller.error(new TypeError('terminated'));
      if (at >= bytes.length) return controller.close();
      const end = Math.min(at + 10_000, bytes.length, breaksAfter);
      controller.enqueue(bytes.subarray(at, end));
      at = end;
    },
  });
}

function fileOf(dir: string, fetchFile: FetchFile, changes: Partial<FileDownload> = {}): FileDownload {
  const { name = 'folder/model.safetensors' } = changes;
  return {
    path: pathIn(dir, name),
    name,
    bytes: CONTENT.length,
    sha256: SHA256,
    fetchFile,
    onBytes: () => undefined,
    signal: new AbortController().signal,
    ...changes,
  };
}

const whole: FetchFile = async (_name, from) => bodyOf(CONTENT.subarray(from));

t.test('a file gets its name when it is complete', async (t) => {
  const dir = await directory(t);
  let seen = 0;
  await downloadFile(fileOf(dir, whole, { onBytes: (count) => (seen += count) }));
  t.ok((await readFile(join(dir, 'folder/model.safetensors'))).equals(CONTENT));
  t.same(await readdir(join(dir, 'folder')), ['model.safetensors']);
  t.equal(seen, CONTENT.length);
  const never: FetchFile = async () => t.fail('it exists already') as never;
  await downloadFile(fileOf(dir, never));
  await downloadFile(
    fileOf(dir, never, { name: 'empty', bytes: 0, sha256: createHash('sha256').digest('hex') }),
  );
});

t.test('an interrupted download resumes, in the same call and in the next', async (t) => {
  const dir = await directory(t);
  const asked: [number, boolean][] = [];
  const cut: FetchFile = async (_name, from, again) => {
    asked.push([from, again]);
    return bodyOf(CONTENT.subarray(from), asked.length < 3 ? 100_000 : Number.POSITIVE_INFINITY);
  };
  await downloadFile(fileOf(dir, cut));
  t.same(asked, [
    [0, false],
    [100_000, false],
    [200_000, false],
  ]);

  const other = await directory(t);
  const interrupt = new AbortController();
  const interrupted: FetchFile = async () => {
    setTimeout(() => interrupt.abort(), 50);
    return bodyOf(CONTENT, 70_000);
  };
  await t.rejects(downloadFile(fileOf(other, interrupted, { signal: interrupt.signal })));
  t.equal((await readFile(join(other, 'folder/model.safetensors.part'))).length, 70_000);
  const rest: number[] = [];
  await downloadFile(
    fileOf(other, (name, from, again) => {
      rest.push(from);
      return whole(name, from, again);
    }),
  );
  t.same(rest, [70_000]);
  t.ok((await readFile(join(other, 'folder/model.safetensors'))).equals(CONTENT));
});

t.test('wrong content gets no name', async (t) => {
  const dir = await directory(t);
  const damaged = Buffer.from(CONTENT);
  damaged[5] = 255 - (damaged[5] ?? 0);
  await t.rejects(downloadFile(fileOf(dir, async (_name, from) => bodyOf(damaged.subarray(from)))), {
    message: /its SHA-256 does not match/,
  });
  t.same(await readdir(join(dir, 'folder')), []);
  const longer: FetchFile = async () => bodyOf(Buffer.concat([CONTENT, CONTENT]));
  await t.rejects(downloadFile(fileOf(dir, longer)), { message: /its SHA-256/ });

  // The part of another file, or of another version of it.
  await writeFile(join(dir, 'folder/model.safetensors.part'), damaged.subarray(0, 50_000));
  await downloadFile(fileOf(dir, whole));
  t.ok((await readFile(join(dir, 'folder/model.safetensors'))).equals(CONTENT));
  await writeFile(join(dir, 'folder/model.safetensors'), 'an older model');
  await downloadFile(fileOf(dir, whole));
  t.ok((await readFile(join(dir, 'folder/model.safetensors'))).equals(CONTENT));
});

t.test('an expired URL is requested again; a refusal of the API is final', async (t) => {
  const dir = await directory(t);
  const agains: boolean[] = [];
  const expired: FetchFile = async (name, from, again) => {
    agains.push(again);
    if (!again) throw new ApiError(403, null, name);
    return whole(name, from, again);
  };
  await downloadFile(fileOf(dir, expired));
  t.same(agains, [false, true]);
  const problem = { status: 404, code: 'export_not_found', title: 'gone' } as ApiError['problem'];
  let tries = 0;
  const refused: FetchFile = async (name) => {
    tries += 1;
    throw new ApiError(404, problem, name);
  };
  await t.rejects(downloadFile(fileOf(await directory(t), refused)), { message: /404 export_not_found/ });
  t.equal(tries, 1);
});

t.test('no name leaves the folder', async (t) => {
  const dir = await directory(t);
  for (const name of [
    '../x',
    '/etc/x',
    'a/../../x',
    'a//x',
    '.hidden',
    'a\\..\\x',
    'C:x',
    '',
    'a/',
    'x\u0000',
    '\u001b[2J',
  ])
    t.throws(() => pathIn(dir, name), { message: /can't be written here/ }, JSON.stringify(name));
  t.equal(pathIn(dir, 'zero/a.b/exp_avg.pt'), join(dir, 'zero/a.b/exp_avg.pt'));

  await mkdir(join(dir, 'folder'));
  await writeFile(join(dir, 'precious'), 'precious');
  await symlink(join(dir, 'precious'), join(dir, 'folder/model.safetensors.part'));
  await t.rejects(downloadFile(fileOf(dir, whole)), { message: /ELOOP/ }, 'nor does an existing link');
  t.equal(await readFile(join(dir, 'precious'), 'utf8'), 'precious');
});
