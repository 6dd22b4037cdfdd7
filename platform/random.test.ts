import t from 'tap';
import { newUlid, randomPiece } from './random.js';

t.test('ids are unique ULIDs of the current time', async (t) => {
  const before = Date.now();
  const ids = Array.from({ length: 5000 }, newUlid);
  t.equal(new Set(ids).size, ids.length);
  t.ok(ids.every((id) => /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/.test(id)));
  const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
  const times = ids.map((id) =>
    [...id.slice(0, 10)].reduce((sum, letter) => sum * 32 + ALPHABET.indexOf(letter), 0),
  );
  t.ok(times.every((time) => time >= before && time <= Date.now()));
  for (const at of [10, 17, 25])
    t.equal(new Set(ids.map((id) => id[at])).size, 32, `all letters occur at position ${at}`);
});

t.test('no two pieces have equal bytes, also across a refill of the buffer', async (t) => {
  const pieces = Array.from({ length: 1000 }, () => randomPiece(48).toString('hex'));
  t.equal(new Set(pieces).size, pieces.length);
  t.ok(pieces.every((piece) => piece.length === 96));
});
