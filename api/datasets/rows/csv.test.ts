import fc from 'fast-check';
import t from 'tap';
import { csvBatches, csvHeader, unknownColumns } from './csv.js';

t.test('a header has a field of documents', async (t) => {
  t.same(csvHeader(Buffer.from('\uFEFFid,"text"\r\n')), {
    columns: ['id', 'text'],
    newline: '\r\n',
    header_bytes: 14,
  });
  t.same(csvHeader(Buffer.from('prompt,chosen,rejected')), {
    columns: ['prompt', 'chosen', 'rejected'],
    newline: '\n',
    header_bytes: 22,
  });
  for (const line of ['a text with text\n', '{"text": "a"}\n', '\n', 'Text\n', 'text;id\n', '"text\n'])
    t.equal(csvHeader(Buffer.from(line)), null, line);
  t.throws(() => csvHeader(Buffer.from('text,text\n')), {
    message: 'line 1: the column "text" appears twice',
  });
});

t.test('a header without a field of documents is named', async (t) => {
  for (const line of ['title,body\n', 'title;body\r\n', 'title\tbody'])
    t.match(unknownColumns(Buffer.from(line)), {
      code: 'dataset_line_invalid',
      message: /^line 1: none of the columns "title", "body" is known; .* rename them, for example to prompt/,
    });
  for (const line of ['a text\n', '{"text": "a"}\n', '\uFEFF{"text": "a"}', 'null', '1,2\n', '\n'])
    t.equal(unknownColumns(Buffer.from(line)), null, line);
});

async function batches(body: Buffer, cuts: readonly number[] = []) {
  const borders = [0, ...cuts.map((cut) => cut % (body.length + 1)).sort((a, b) => a - b), body.length];
  const pieces = async function* () {
    for (let at = 1; at < borders.length; at++) {
      const piece = Uint8Array.from(body.subarray(borders[at - 1], borders[at]));
      yield piece;
      piece.fill(0);
    }
  };
  const found: { text: string; first_line: number }[] = [];
  for await (const { bytes, first_line } of csvBatches(pieces()))
    found.push({ text: Buffer.from(bytes).toString(), first_line });
  return found;
}

t.test('batches are whole rows with their lines, wherever the pieces end', async (t) => {
  // Quotes: of a cell with line ends, doubled before a line end, and in a cell without quotes.
  const row = `"a\nb ""\n"",c",x"\n${'z'.repeat(60_000)},"\r\n"\r\n`;
  const body = Buffer.from(row.repeat(12));
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(), { maxLength: 30 }), async (cuts) => {
      const found = await batches(body, cuts);
      t.equal(found.map(({ text }) => text).join(''), body.toString());
      let line = 2;
      for (const { text, first_line } of found) {
        t.equal(first_line, line);
        t.ok(text.startsWith('"a\nb') || text.startsWith('zz'));
        t.ok(text.endsWith('x"\n') || text.endsWith('"\r\n"\r\n'));
        line += text.split('\n').length - 1;
      }
    }),
    { numRuns: 30 },
  );
  t.ok((await batches(body, [300_000])).length > 1);
});

t.test('a row that is too long is named', async (t) => {
  const body = Buffer.from(`a\n"b\n${'c'.repeat(5 * 1024 * 1024)}`);
  await t.rejects(batches(body, [100]), {
    code: 'dataset_line_invalid',
    message: /^line 3: a row has more than 4194304 bytes.*closing quote/,
  });
});
