import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import t from 'tap';
import { extract } from 'tar-stream';
import type { Job } from '../../../contracts/types.js';
import { includesText } from '../parts/search.js';
import { previewOf } from './preview.js';
import { useOf } from './records.js';
import { tarOf } from './tar.js';

const bytes = (text: string) => new TextEncoder().encode(text);

t.test('the first lines of a text', async (t) => {
  t.strictSame(previewOf(bytes('a\nb'), 'text', true), ['a', 'b']);
  t.strictSame(previewOf(bytes('aé').slice(0, 2), 'text', false), ['a'], 'half a character is left out');
  t.equal(previewOf(bytes('x\n'.repeat(100)), 'text', true).length, 50);
});

t.test('the first documents of a JSONL file', async (t) => {
  const lines = '{"text":"a"}\n{"text":"b"}\n{"te';
  t.strictSame(previewOf(bytes(lines), 'jsonl', false), ['{\n  "text": "a"\n}', '{\n  "text": "b"\n}']);
  t.strictSame(previewOf(bytes('{"text":"a"}\n'), 'jsonl', true), ['{\n  "text": "a"\n}']);
  t.strictSame(previewOf(bytes('{"text":"a"}'), 'jsonl', true), ['{\n  "text": "a"\n}']);
});

t.test('an archive is read by tar-stream', async (t) => {
  const files = [
    { name: 'config.json', content: new Blob(['{}']) },
    { name: 'é.bin', content: new Blob([new Uint8Array(512).fill(7)]) },
    { name: 'empty', content: new Blob([]) },
  ];
  const archive = Buffer.from(await tarOf(files).arrayBuffer());
  const found: [string, Buffer][] = [];
  for await (const entry of Readable.from([archive]).pipe(extract()))
    found.push([entry.header.name, await buffer(entry)]);
  t.strictSame(found, [
    ['config.json', Buffer.from('{}')],
    ['é.bin', Buffer.alloc(512, 7)],
    ['empty', Buffer.alloc(0)],
  ]);
  t.throws(() => tarOf([{ name: 'x'.repeat(101), content: new Blob([]) }]), RangeError);
});

t.test('what a run uses', async (t) => {
  const job = (changes: object) =>
    ({
      spec: {
        data: { dataset: 'ds_1', tokenizer: 'mdl_2' },
        model: { init_from: { model: 'mdl_1' } },
        train: {},
        ...changes,
      },
    }) as unknown as Job;
  t.equal(useOf(job({}), 'ds_1'), 'trains on it');
  t.equal(
    useOf(job({ train: { evaluation: { datasets: [{ dataset: 'ds_2' }] } } }), 'ds_2'),
    'evaluates on it',
  );
  t.equal(useOf(job({}), 'mdl_1'), 'begins with it');
  t.equal(useOf(job({ model: { init_from: null } }), 'mdl_1'), null);
  t.equal(useOf(job({}), 'mdl_2'), 'uses its tokenizer');
});

t.test('search', async (t) => {
  const record = ['ds_1', 'Book', 'of tests'];
  for (const text of ['', 'book', 'DS_1', ' tests ']) t.ok(includesText(record, text), text);
  t.notOk(includesText(record, 'other'));
});
