import { setImmediate as otherWork } from 'node:timers/promises';

/** Characters of a piece. */
const PIECE = 64 * 1024;
/** Depth to which lists and objects are written item by item: below, a value is small. */
const DEPTH = 4;

/**
 * Yields the JSON text of a value in pieces. Other requests are answered between two pieces.
 * @param value of JSON's types only; undefined fields are left out
 */
export async function* jsonPieces(value: unknown): AsyncGenerator<string> {
  let piece = '';
  for (const part of partsOf(value, DEPTH)) {
    piece += part;
    if (piece.length < PIECE) continue;
    yield piece;
    piece = '';
    await otherWork();
  }
  if (piece !== '') yield piece;
}

function* partsOf(value: unknown, depth: number): Generator<string> {
  if (depth === 0 || typeof value !== 'object' || value === null) {
    yield JSON.stringify(value);
    return;
  }
  const is_list = Array.isArray(value);
  let before = is_list ? '[' : '{';
  for (const [name, item] of Object.entries(value)) {
    if (item === undefined) continue;
    yield is_list ? before : `${before}${JSON.stringify(name)}:`;
    yield* partsOf(item, depth - 1);
    before = ',';
  }
  if (before !== ',') yield before;
  yield is_list ? ']' : '}';
}
