import fc from 'fast-check';
import t from 'tap';
import { type TextPiece, textPieces, withLineFeeds } from './text-pieces.js';

const SIZE = { wanted: 8, limit: 24 };

async function piecesOf(text: Buffer, cuts: readonly number[] = []): Promise<TextPiece[]> {
  const borders = [0, ...cuts.map((cut) => cut % (text.length + 1)).sort((a, b) => a - b), text.length];
  const chunks = borders.slice(1).map((end, index) => text.subarray(borders[index], end));
  const pieces: TextPiece[] = [];
  for await (const piece of textPieces(chunks, SIZE))
    pieces.push({ ...piece, bytes: Buffer.from(piece.bytes) });
  return pieces;
}

const shown = (pieces: readonly TextPiece[]) => pieces.map(({ bytes }) => String(bytes));

t.test('a text is split after a line end, between words', async (t) => {
  for (const [text, expected] of [
    ['short', ['short']],
    ['', ['']],
    ['0123456\nx\ny', ['0123456\n', 'x\ny']],
    ['012345678\nx\n', ['012345678\n', 'x\n']],
    ['01234567\n\nx\ny', ['01234567\n\nx\n', 'y']],
    ['01234567 \nx\ny', ['01234567 \nx\n', 'y']],
    ['01234567\n\u00a0x\ny', ['01234567\n\u00a0x\n', 'y']],
    ['012345世\n世\ny', ['012345世\n', '世\ny']],
    ['x'.repeat(50), ['x'.repeat(24), 'x'.repeat(24), 'xx']],
    ['x世世世世世世世世世世', ['x世世世世世世世', '世世世']],
  ] as const)
    t.same(shown(await piecesOf(Buffer.from(text))), expected, JSON.stringify(text));
});

t.test('the pieces form the text, contain whole characters and do not depend on the chunks', async (t) => {
  const text = fc.string({
    unit: fc.constantFrom('a', 'b', '\n', '\n', ' ', 'é', '世', '🌍'),
    maxLength: 80,
  });
  await fc.assert(
    fc.asyncProperty(text, fc.array(fc.nat(), { maxLength: 6 }), async (text, cuts) => {
      const whole = await piecesOf(Buffer.from(text));
      t.equal(shown(whole).join(''), text);
      t.same(await piecesOf(Buffer.from(text), cuts), whole);
      t.ok(whole.every(({ bytes }) => bytes.length <= SIZE.limit));
      t.same(
        whole.map(({ first, last }) => [first, last]),
        whole.map((_, index) => [index === 0, index === whole.length - 1]),
      );
      const lines = shown(whole).map((piece) => piece.endsWith('\n'));
      t.same(
        whole.map(({ after_line }) => after_line),
        [false, ...lines.slice(0, -1)],
      );
    }),
  );
});

t.test('CR LF is read as LF across chunk borders; a lone CR stays', async (t) => {
  const text = fc.string({ unit: fc.constantFrom('a', '\r', '\n', '\r\n', '世'), maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(text, fc.array(fc.nat(), { maxLength: 6 }), async (text, cuts) => {
      const bytes = Buffer.from(text);
      const borders = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
      const chunks = borders.slice(1).map((end, index) => bytes.subarray(borders[index], end));
      const read: Uint8Array[] = [];
      for await (const piece of withLineFeeds(chunks)) read.push(piece);
      t.equal(String(Buffer.concat(read)), text.replaceAll('\r\n', '\n'));
    }),
  );
});
