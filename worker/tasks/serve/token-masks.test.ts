import t from 'tap';
import { isAllowed } from '../../../formats/json-grammar/vocabulary.js';
import { TokenMasks } from './token-masks.js';

const schema = '{"type":"object","properties":{"a":{"enum":[1,10]}},"required":["a"]}';
const CONSTRAINT = { choices: [{ head: [], schema }] };

function charactersOf(mask: Uint32Array | null): string | null {
  return mask && Buffer.from([...Array(256).keys()].filter((token) => isAllowed(mask, token))).toString();
}

t.test('masks follow from the tokens, in whatever order they are asked', async (t) => {
  const masks = new TokenMasks({ table: null, num_tokens: 256 });
  t.teardown(() => masks.close());
  const next = async (sequence: number, text: string) => {
    const tokens = Int32Array.from(Buffer.from(text));
    return charactersOf((await masks.next({ sequence, constraint: CONSTRAINT, tokens })).mask);
  };
  t.equal(await next(1, '{'), '\n "');
  t.same(await Promise.all([next(1, '{"a":1'), next(2, '{"a'), next(1, '{"a":10')]), ['\n 0}', '"', '\n }']);
  t.equal(await next(1, '{"a":10}'), null, 'it is complete');
  t.equal(await next(2, '{"a"'), ':');
  t.equal(await next(3, '{"a":1'), '\n 0}', 'an unknown sequence is read from its beginning');
  await masks.close();
  await t.rejects(next(4, '{'), { code: 'shutting_down' });
});

t.test('an answer that cannot go on fails alone', async (t) => {
  const table = { texts: new Map([[1, 'a']]), decoder: { type: 'Fuse' } };
  const masks = new TokenMasks({ table, num_tokens: 2 });
  t.teardown(() => masks.close());
  const failing = masks.next({ sequence: 1, constraint: CONSTRAINT, tokens: new Int32Array() });
  await t.rejects(failing, { code: 'tokenizer_invalid', message: /no token for/ });
});
