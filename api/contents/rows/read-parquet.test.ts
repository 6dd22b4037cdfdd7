/** Rows of Parquet files that pyarrow has written (golden/make_golden_parquet.py). */
import { readFileSync } from 'node:fs';
import t from 'tap';
import { planParquet, readParquet } from './read-parquet.js';

const { files, wrong } = JSON.parse(readFileSync('api/contents/rows/golden/parquet.json', 'utf8')) as {
  files: Record<string, { file: string; lines: string[] }>;
  wrong: Record<string, string>;
};

async function linesOf(file: Buffer) {
  const read = async (begin: number, end: number) => file.subarray(begin, end);
  const parts: string[] = [];
  let documents = 0;
  const plan = await planParquet({ file_bytes: file.length }, read);
  for (const rows of plan) {
    const { bytes, num_documents } = await readParquet({ file_bytes: file.length, ...rows }, read);
    parts.push(Buffer.from(bytes).toString());
    documents += num_documents;
  }
  return { lines: parts.join('').trimEnd().split('\n'), documents, plan };
}

for (const [name, { file, lines }] of Object.entries(files))
  t.test(`a file ${name}`, async (t) => {
    const found = await linesOf(Buffer.from(file, 'base64'));
    t.same(
      found.lines.map((line) => JSON.parse(line)),
      lines.map((line) => JSON.parse(line)),
    );
    t.equal(found.documents, lines.length);
  });

t.test('integers keep all digits', async (t) => {
  const { file } = files['of chats as structs'] ?? { file: '' };
  t.match((await linesOf(Buffer.from(file, 'base64'))).lines[1], /"n": 9007199254740993}/);
});

t.test('small row groups are read together', async (t) => {
  const { file } = files['of several row groups'] ?? { file: '' };
  t.same((await linesOf(Buffer.from(file, 'base64'))).plan, [{ begin: 0, end: 40 }]);
});

const WRONG: Record<string, { code: string; message: RegExp }> = {
  bytes: { code: 'dataset_parquet_invalid', message: /not valid/ },
  'no column': {
    code: 'dataset_parquet_invalid',
    message: /columns "content", "other", and needs at least one of text/,
  },
  'a number that is none': { code: 'dataset_line_invalid', message: /^row 1: column "tools": it has NaN/ },
  'a bad label': {
    code: 'dataset_line_invalid',
    message: /^row 1: column "label": it must be true or false/,
  },
};
for (const [name, file] of Object.entries(wrong))
  t.test(`refused: ${name}`, async (t) => {
    const error = await linesOf(Buffer.from(file, 'base64')).catch((thrown: Error) => thrown);
    t.match(error, WRONG[name] ?? { code: 'of a case in WRONG' });
  });

t.test('a damaged file is refused, or has the same rows', async (t) => {
  const { file, lines } = files['of chats as structs'] ?? { file: '', lines: [] };
  const whole = Buffer.from(file, 'base64');
  const codes = new Set<string>();
  for (let at = 0; at < whole.length; at += 7) {
    for (const changed of [whole.subarray(0, at), flipped(whole, at)]) {
      const found = await linesOf(changed).catch((error: Error & { code?: string }) => error);
      if (found instanceof Error) codes.add(found.code ?? found.message);
      else t.ok(found.lines.length <= lines.length + 1);
    }
  }
  for (const code of codes) t.match(code, /^dataset_(parquet|line)_invalid$/);
});

function flipped(whole: Buffer, at: number): Buffer {
  const changed = Buffer.from(whole);
  changed[at] = (changed[at] as number) ^ 0xff;
  return changed;
}

t.test('large row groups are refused with the remedy', async (t) => {
  const { file } = files['packed by none'] ?? { file: '' };
  const whole = Buffer.from(file, 'base64');
  const error = await linesOf(withLargeGroup(whole)).catch((thrown: Error) => thrown);
  t.match(error, {
    code: 'dataset_parquet_invalid',
    message: /row groups may have at most 268435456; write smaller ones, such as with row_group_size=10000/,
  });
});

/** Replaces the size of the only column in the footer, a number of two bytes, by one of five. */
function withLargeGroup(whole: Buffer): Buffer {
  const footerBytes = whole.readUInt32LE(whole.length - 8);
  const footer = whole.subarray(whole.length - 8 - footerBytes, whole.length - 8);
  const varint = (value: number): number[] =>
    value < 128 ? [value] : [(value % 128) | 128, ...varint(Math.floor(value / 128))];
  const { length } = whole;
  for (let at = 0; at < footer.length - 2; at++) {
    // Fields 6 and 7 of a column's metadata are equal without compression, and field 6 follows field 5 (0x16).
    const [kind, low, high, next, low2, high2] = footer.subarray(at, at + 6);
    if (kind !== 0x16 || next !== 0x16 || low !== low2 || high !== high2 || (low as number) < 128) continue;
    const changed = Buffer.concat([
      footer.subarray(0, at + 1),
      Buffer.from(varint(2 * 300 * 1024 * 1024)),
      footer.subarray(at + 3),
    ]);
    const tail = Buffer.alloc(4);
    tail.writeUInt32LE(changed.length);
    return Buffer.concat([
      whole.subarray(0, length - 8 - footerBytes),
      changed,
      tail,
      whole.subarray(length - 4),
    ]);
  }
  throw new Error('the footer has no such sizes');
}
