import fc from 'fast-check';
import t from 'tap';
import { MAX_LINE_BYTES } from '../../contracts/jsonl/line.js';
import { lineBatches } from './line-batches.js';

async function gather(chunks: readonly Uint8Array[], wanted: number) {
  const batches = [];
  for await (const { bytes, first_line } of lineBatches(chunks, wanted))
    batches.push({ text: Buffer.from(bytes).toString(), first_line });
  return batches;
}

t.test('every line is in one batch, whole and with its number', async (t) => {
  const lines = fc.array(fc.string({ unit: fc.constantFrom('a', 'é', '🌍'), maxLength: 9 }), {
    minLength: 1,
  });
  await fc.assert(
    fc.asyncProperty(
      lines,
      fc.array(fc.nat(), { maxLength: 9 }),
      fc.integer({ min: 1, max: 40 }),
      async (lines, cuts, wanted) => {
        const body = Buffer.from(lines.join('\n'));
        const borders = [0, ...cuts.map((cut) => cut % (body.length + 1)).sort((a, b) => a - b), body.length];
        const chunks = borders.slice(1).map((end, index) => body.subarray(borders[index], end));
        const batches = await gather(chunks, wanted);
        t.equal(batches.map(({ text }) => text).join(''), String(body));
        for (const [index, { text, first_line }] of batches.entries()) {
          if (index < batches.length - 1) t.ok(text.endsWith('\n'));
          const count = text.replace(/\n$/, '').split('\n').length;
          t.same(text.replace(/\n$/, '').split('\n'), lines.slice(first_line - 1, first_line - 1 + count));
        }
      },
    ),
  );
});

t.test('a line that is too long is refused before it fills the memory', async (t) => {
  let read = 0;
  const endless = function* () {
    yield Buffer.from('1\n2\n');
    for (;;) {
      read += 1 << 20;
      yield Buffer.alloc(1 << 20, 'x');
    }
  };
  const all = async () => {
    for await (const _ of lineBatches(endless(), 1000));
  };
  await t.rejects(all(), { code: 'dataset_line_invalid', message: /^line 3: it has more than/ });
  t.ok(read <= MAX_LINE_BYTES + (2 << 20));
});
