import fc from 'fast-check';
import t from 'tap';
import { encodeFrame, FrameReader } from './frames.js';

function all(reader: FrameReader): unknown[] {
  const found: unknown[] = [];
  for (let message = reader.next(); message !== undefined; message = reader.next()) found.push(message);
  return found;
}

t.test('messages are restored from any split of the stream', (t) => {
  const messages = fc.array(
    fc.jsonValue({ depthSize: 'small' }).map((value) => ({ value })),
    { maxLength: 5 },
  );
  fc.assert(
    fc.property(messages, fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1 }), (sent, cuts) => {
      const stream = Buffer.concat(sent.map(encodeFrame));
      const reader = new FrameReader(1 << 20);
      const received: unknown[] = [];
      for (let begin = 0, i = 0; begin < stream.length; i++) {
        const end = begin + (cuts[i % cuts.length] ?? 1);
        reader.push(stream.subarray(begin, end));
        received.push(...all(reader));
        begin = end;
      }
      t.strictSame(received, JSON.parse(JSON.stringify(sent)));
    }),
    { numRuns: 50 },
  );
  t.end();
});

t.test('a message that is too large is refused by its length alone', (t) => {
  const reader = new FrameReader(100);
  reader.push(Buffer.from([0, 0, 0, 101]));
  t.throws(() => reader.next(), { code: 'link_protocol' });
  t.end();
});

t.test('a message that is not JSON is refused', (t) => {
  for (const body of ['', '{', 'undefined', '\xff']) {
    const reader = new FrameReader(100);
    reader.push(
      Buffer.concat([Buffer.from([0, 0, 0, Buffer.byteLength(body, 'latin1')]), Buffer.from(body, 'latin1')]),
    );
    t.throws(() => reader.next(), { code: 'link_protocol' }, JSON.stringify(body));
  }
  t.end();
});
