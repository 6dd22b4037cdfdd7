import { randomBytes } from 'node:crypto';
import { crc32c } from '@node-rs/crc32';
import fc from 'fast-check';
import t from 'tap';
import { combineCrc32c } from './crc-combine.js';

t.test('the combined checksum is that of the concatenation', async (t) => {
  const bytes = () => fc.uint8Array({ maxLength: 300 });
  fc.assert(
    fc.property(bytes(), bytes(), (a, b) => {
      const whole = Buffer.concat([a, b]);
      return combineCrc32c(crc32c(Buffer.from(a)), crc32c(Buffer.from(b)), b.length) === crc32c(whole);
    }),
  );
  t.pass('property holds');
});

t.test('many parts of a chunk combine to its checksum', async (t) => {
  const chunk = randomBytes(4 * 1024 * 1024);
  let crc = 0;
  for (let at = 0; at < chunk.length; ) {
    const end = Math.min(chunk.length, at + 1 + (at % 700_001));
    crc = combineCrc32c(crc, crc32c(chunk.subarray(at, end)), end - at);
    at = end;
  }
  t.equal(crc, crc32c(chunk));
});

t.test('swapped parts give another checksum', async (t) => {
  const [a, b] = [randomBytes(64), randomBytes(64)];
  t.not(combineCrc32c(crc32c(b), crc32c(a), 64), crc32c(Buffer.concat([a, b])));
});
