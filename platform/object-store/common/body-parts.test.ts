import t from 'tap';
import { type BodyPart, bodyParts } from './body-parts.js';

const PART_BYTES = 4;
const CONTENT = Buffer.from('abcdefghijklmnopqrstuvw');

/** Yields pieces of `length` bytes, all in the same reused buffer. */
async function* reused(length: number): AsyncGenerator<Uint8Array> {
  const buffer = Buffer.alloc(length);
  for (let at = 0; at < CONTENT.length; at += length) {
    const piece = buffer.subarray(0, CONTENT.copy(buffer, 0, at, at + length));
    yield piece;
    buffer.fill(0);
  }
}

async function textsOf(parts: AsyncIterable<BodyPart>): Promise<string[]> {
  const texts: string[] = [];
  for await (const { bytes, release } of parts) {
    texts.push(Buffer.from(bytes).toString());
    release();
  }
  return texts;
}

const WANTED = ['abcd', 'efgh', 'ijkl', 'mnop', 'qrst', 'uvw'];

t.test('equal parts from whole bytes and from pieces of any length', async (t) => {
  t.same(await textsOf(bodyParts(CONTENT, PART_BYTES)), WANTED);
  for (let length = 1; length <= CONTENT.length; length++) {
    t.same(await textsOf(bodyParts(reused(length), PART_BYTES)), WANTED, `pieces of ${length}`);
  }
});

t.test('a body that ends with a part, and an empty one', async (t) => {
  t.same(await textsOf(bodyParts(CONTENT.subarray(0, 8), PART_BYTES)), ['abcd', 'efgh']);
  t.same(await textsOf(bodyParts(new Uint8Array(), PART_BYTES)), []);
  t.same(await textsOf(bodyParts((async function* () {})(), PART_BYTES)), []);
});

t.test('held parts keep their bytes; memory is reused only after a release', async (t) => {
  const held: BodyPart[] = [];
  for await (const part of bodyParts(reused(5), PART_BYTES)) held.push(part);
  t.equal(held.map(({ bytes }) => Buffer.from(bytes).toString()).join(''), CONTENT.toString());
  t.equal(new Set(held.map(({ bytes }) => bytes.buffer)).size, held.length);

  const memories = new Set<ArrayBufferLike>();
  for await (const { bytes, release } of bodyParts(reused(5), PART_BYTES)) {
    memories.add(bytes.buffer);
    release();
  }
  t.equal(memories.size, 1);
});

t.test('stable pieces', async (t) => {
  const odd = (length: number) => {
    const pieces: Buffer[] = [];
    for (let at = 0; at < CONTENT.length; at += length)
      pieces.push(Buffer.from(CONTENT.subarray(at, at + length)));
    return pieces;
  };
  for (let length = 1; length <= CONTENT.length; length++) {
    t.same(await textsOf(bodyParts(odd(length), PART_BYTES)), WANTED, `pieces of ${length}`);
  }
  const neighbours = [
    CONTENT.subarray(0, 3),
    CONTENT.subarray(3, 3),
    CONTENT.subarray(3, 22),
    Buffer.from('w'),
  ];
  const parts: BodyPart[] = [];
  for await (const part of bodyParts(neighbours, PART_BYTES)) parts.push(part);
  t.same(
    parts.map(({ bytes }) => bytes.buffer === CONTENT.buffer),
    [true, true, true, true, true, false],
    'only the last part, which spans two pieces, is a copy',
  );
  t.equal(Buffer.concat(parts.map(({ bytes }) => bytes)).toString(), CONTENT.toString());
});

t.test('whole bytes are not copied', async (t) => {
  for await (const { bytes } of bodyParts(CONTENT, PART_BYTES)) t.equal(bytes.buffer, CONTENT.buffer);
});
