import t from 'tap';
import { jsonPieces, lateList, paced } from './pieces.js';

async function piecesOf(value: unknown): Promise<string[]> {
  const pieces: string[] = [];
  for await (const piece of paced(jsonPieces(value))) pieces.push(piece);
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
  const late = { a: lateList(() => [{ b: 1 }, 2]), c: [[[[[lateList(() => [3])]]]]], d: lateList(() => []) };
  t.equal((await piecesOf(late)).join(''), '{"a":[{"b":1},2],"c":[[[[[[3]]]]]],"d":[]}');
  t.equal(JSON.stringify(late), (await piecesOf(late)).join(''));
  t.equal((await piecesOf({ a: undefined, b: 1 })).join(''), '{"b":1}');
});

const token = { token: 'word', logprob: -0.5, top: [{ token: 'word', logprob: -0.5 }] };
const large = { choices: [{ index: 0, logprobs: Array.from({ length: 20_000 }, () => token) }] };

t.test('the event loop writes one piece in a turn, of however many documents', async (t) => {
  const sizes: number[] = [0];
  let isDone = false;
  const count = () => {
    sizes.push(0);
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  const write = async () => {
    const pieces: string[] = [];
    for await (const piece of paced(jsonPieces(large))) {
      pieces.push(piece);
      sizes[sizes.length - 1] = (sizes.at(-1) ?? 0) + piece.length;
    }
    return pieces;
  };
  const written = await Promise.all([write(), write(), write()]);
  isDone = true;
  const whole = JSON.stringify(large);
  for (const pieces of written) t.equal(pieces.join(''), whole);
  // All begin in the first turn.
  t.ok(
    sizes.slice(1).every((size) => size < 40_000),
    `${sizes.slice(0, 20)}`,
  );
});
