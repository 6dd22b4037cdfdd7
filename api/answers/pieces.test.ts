import t from 'tap';
import { jsonPieces, whenWritten } from './json-pieces.js';

async function piecesOf(value: unknown): Promise<string[]> {
  const pieces: string[] = [];
  for await (const piece of jsonPieces(value)) pieces.push(piece);
  return pieces;
}

t.test('the pieces are the text that JSON.stringify writes', async (t) => {
  const values = [
    null,
    'é"\n',
    1.5,
    true,
    [],
    {},
    [[], {}, [1, 'two']],
    { a: { b: { c: { d: [{ e: 1 }] } } } },
  ];
  for (const value of values) t.equal((await piecesOf(value)).join(''), JSON.stringify(value));
  const late = { a: whenWritten(() => ({ b: [1] })), c: [[[[[whenWritten(() => 2)]]]]] };
  t.equal((await piecesOf(late)).join(''), '{"a":{"b":[1]},"c":[[[[[2]]]]]}');
  t.equal((await piecesOf({ a: undefined, b: 1 })).join(''), '{"b":1}');
});

t.test('other work goes on between the pieces of a large value', async (t) => {
  const token = { token: 'word', logprob: -0.5, top: [{ token: 'word', logprob: -0.5 }] };
  const logprobs = Array.from({ length: 50_000 }, () => token);
  const value = { choices: [{ index: 0, logprobs }] };
  let turns = 0;
  let is_done = false;
  const count = () => {
    turns += 1;
    if (!is_done) setImmediate(count);
  };
  setImmediate(count);
  const pieces = await piecesOf(value);
  is_done = true;
  t.equal(pieces.join(''), JSON.stringify(value));
  t.ok(pieces.length > 50 && pieces.every(({ length }) => length < 70_000));
  t.ok(turns >= pieces.length - 1, `${turns} turns of the event loop, ${pieces.length} pieces`);
});
