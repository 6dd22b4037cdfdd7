import t from 'tap';
import { formatOfName, isCompressedName, stemOfName } from './dataset-names.js';

t.test('the format of a file by its name', async (t) => {
  t.equal(formatOfName('a.b.JSONL'), 'jsonl');
  for (const name of ['a.ndjson', 'a.jsonl.gz', 'a.csv', 'a.csv.zst', 'a.parquet', 'a.JSON'])
    t.equal(formatOfName(name), 'jsonl', name);
  for (const name of ['a.tokens', 's3://b/a.bin.gz']) t.equal(formatOfName(name), 'tokens', name);
  for (const name of ['notes.txt', 'notes', 'notes.txt.gz', 'csv.gz.txt', '.gz'])
    t.equal(formatOfName(name), 'text', name);
});

t.test('a compressed file by its name', async (t) => {
  t.ok(isCompressedName('a.jsonl.gz'));
  t.ok(isCompressedName('s3://b/a.ZST'));
  t.notOk(isCompressedName('a.gz.txt'));
});

t.test('what is made of a file has its name without extensions', async (t) => {
  t.same(['chats.jsonl', 'chats.jsonl.gz', 'my chats', '.gz'].map(stemOfName), [
    'chats',
    'chats',
    'my chats',
    '.gz',
  ]);
});
