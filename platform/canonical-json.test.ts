import { createHash } from 'node:crypto';
import t from 'tap';
import { canonicalJson, documentHash } from './canonical-json.js';

t.test('names are sorted at every depth, lists keep their order', async (t) => {
  const text = '{"a":[3,{"b":null,"c":"x"},1],"b":{"a":true,"c":1.5},"c":{}}';
  t.equal(canonicalJson({ c: {}, b: { c: 1.5, a: true }, a: [3, { c: 'x', b: null }, 1] }), text);
  t.equal(canonicalJson(JSON.parse(text)), text);
  t.equal(canonicalJson({ B: 1, a: 2, '-': 3, ä: 4 }), '{"-":3,"B":1,"a":2,"ä":4}', 'by code units');
  t.equal(canonicalJson('text'), '"text"');
  t.equal(canonicalJson(null), 'null');
});

t.test('absent values are undefined', async (t) => {
  t.equal(canonicalJson({ b: undefined, a: 1 }), canonicalJson({ a: 1 }));
});

t.test('the hash is the hash of the canonical text', async (t) => {
  const hash = createHash('sha256').update('{"a":1,"b":2}').digest('hex');
  t.equal(documentHash({ b: 2, a: 1 }), hash);
});
