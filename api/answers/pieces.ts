/** Large answers in pieces. The event loop writes one piece in a turn, whatever the number of answers. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { FastifyReply } from 'fastify';
import { sendTexts } from '../http/sse.js';

/** Characters of a piece. */
const PIECE = 32 * 1024;
/** Depth to which lists and objects are written item by item. Values below are small. */
const DEPTH = 5;
/** Log-probabilities of a document that is written at once. */
const FEW = 500;

/** Sends a document. One with many log-probabilities is written in pieces. */
export function sendJson(reply: FastifyReply, document: object, numLogprobs: number): FastifyReply {
  if (numLogprobs < FEW) return reply.send(document);
  return sendTexts(reply.type('application/json; charset=utf-8'), paced(jsonPieces(document)));
}

let turns: Promise<unknown> = Promise.resolve();

/** Resolves in a later turn of the event loop, in which it resolves for no other caller. */
function exclusiveTurn(): Promise<unknown> {
  turns = turns.then(() => nextTurn());
  return turns;
}

/** Yields texts. The one that completes a piece is followed by a turn of the event loop. */
export async function* paced(texts: Iterable<string> | AsyncIterable<string>): AsyncGenerator<string> {
  let length = 0;
  for await (const text of texts) {
    yield text;
    length += text.length;
    if (length < PIECE) continue;
    length = 0;
    await exclusiveTurn();
  }
}

class LateList<T> {
  constructor(readonly items: () => Iterable<T>) {}

  [Symbol.iterator](): Iterator<T> {
    return this.items()[Symbol.iterator]();
  }

  toJSON(): T[] {
    return [...this];
  }
}

/** Stands for a list of JSON whose items are made one by one while it is written or iterated. */
export function lateList<T>(items: () => Iterable<T>): T[] {
  return new LateList(items) as unknown as T[];
}

/**
 * Yields the JSON text of a value in pieces.
 * @param value of JSON's types only, or a `lateList`; undefined fields are left out
 */
export function* jsonPieces(value: unknown): Generator<string> {
  let piece = '';
  for (const part of partsOf(value, DEPTH)) {
    piece += part;
    if (piece.length < PIECE) continue;
    yield piece;
    piece = '';
  }
  if (piece !== '') yield piece;
}

function* partsOf(value: unknown, depth: number): Generator<string> {
  if (depth === 0 || typeof value !== 'object' || value === null) yield JSON.stringify(value);
  else if (Array.isArray(value)) yield* itemsOf(value, depth);
  else if (value instanceof LateList) yield* itemsOf(value.items(), depth);
  else yield* fieldsOf(value, depth);
}

function* itemsOf(items: Iterable<unknown>, depth: number): Generator<string> {
  let before = '[';
  for (const item of items) {
    yield before;
    yield* partsOf(item, depth - 1);
    before = ',';
  }
  yield before === '[' ? '[]' : ']';
}

function* fieldsOf(value: object, depth: number): Generator<string> {
  let before = '{';
  for (const [name, field] of Object.entries(value)) {
    if (field === undefined) continue;
    yield `${before}${JSON.stringify(name)}:`;
    yield* partsOf(field, depth - 1);
    before = ',';
  }
  yield before === '{' ? '{}' : '}';
}
