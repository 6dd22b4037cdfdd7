import { pathToFileURL } from 'node:url';
import t from 'tap';
import { ChunkChecksums } from '../../../../formats/checkpoint/verify.js';
import { openObjectStore } from '../../../../platform/object-store/index.js';
import { rangeChecksums } from '../../../rank/load/chunks.js';
import { verifyBase } from './base-point.js';

const digits = (last: string) => last.padStart(32, '0');

t.test('the digest of a base is that of the checkpoint, over all ranks', async (t) => {
  const objects = await openObjectStore(pathToFileURL(t.testdir()).href);
  t.teardown(() => objects.close());
  const loaded = ['5', '6'].map((last) => ({ ranges: [], digest_part: digits(last) }));
  const verify = (digest: string | null) =>
    verifyBase(objects, { source: { kind: 'seed', seed: 1 }, files: [], digest }, loaded);
  await t.resolves(verify(digits('b')));
  await t.resolves(verify(null), 'the first checkpoint will have it');
  await t.rejects(verify(digits('c')), { code: 'base_damaged', message: /0b, .* over 0+c/ });
});

t.test('a damaged base is not taken for a damaged checkpoint of the job', async (t) => {
  const objects = await openObjectStore(pathToFileURL(t.testdir()).href);
  t.teardown(() => objects.close());
  const content = Buffer.alloc(1000, 7);
  const chunks = new ChunkChecksums();
  chunks.add(content);
  const files = [{ file: 'model.safetensors', bytes: content.length, crc32c: chunks.finish() }];
  const source = { kind: 'model', directory: 'models/mdl_test' } as const;
  await objects.put(`${source.directory}/model.safetensors`, content);
  const verify = (bytes: Buffer) => {
    const ranges = rangeChecksums({ file: 'model.safetensors', begin: 100, end: 900, pieces: [] }, bytes);
    return verifyBase(objects, { source, files, digest: null }, [{ ranges, digest_part: digits('1') }]);
  };
  const read = content.subarray(100, 900);
  await t.resolves(verify(read));
  const changed = Buffer.from(read);
  changed[3] = 8;
  await t.rejects(verify(changed), { code: 'base_damaged', message: /model.safetensors/ });
});
