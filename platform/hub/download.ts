/** Downloads of files of the Hub: resumed after a broken connection, and checked against the hash in the listing. */
import { createHash, type Hash } from 'node:crypto';
import { ZerofleetError } from '../../contracts/index.js';
import type { HubAnswer, HubClient, HubRequest } from './client.js';
import { corrupt, unavailable } from './errors.js';
import { piecesOf } from './pieces.js';

/** A file at a commit. */
interface HubFile {
  request: Pick<HubRequest, 'path' | 'name' | 'token' | 'commit'>;
  bytes: number;
  /** `sha256` of the content; or `git`, the SHA-1 of the content as a Git object, for small files. */
  hash: { kind: 'sha256' | 'git'; hex: string };
}

/** Attempts to resume a body without receiving a byte in between. */
const FRUITLESS_TRIES = 3;

/**
 * Yields the content. The last piece comes after the check of the hash, so that a consumer that waits for the end never
 * takes wrong bytes for the file.
 * @throws ZerofleetError `dataset_source_corrupt`, and errors of `HubClient.get`
 */
export async function* download(
  client: HubClient,
  { request, bytes, hash }: HubFile,
  signal?: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const { name } = request;
  const content = hashOf(hash.kind, bytes);
  let position = 0;
  for (let fruitless = 0; position < bytes; fruitless += 1) {
    if (fruitless > FRUITLESS_TRIES) throw unavailable(name, `its body ends at byte ${position} of ${bytes}`);
    const answer = await client.get({ ...request, from: position, signal });
    try {
      for await (const piece of bodyFrom(client, answer, { name, position, bytes })) {
        content.update(piece);
        position += piece.length;
        fruitless = 0;
        if (position === bytes) requireHash(content, hash.hex, name);
        yield piece;
      }
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof ZerofleetError) throw error;
    }
  }
  if (bytes === 0) requireHash(content, hash.hex, name);
}

interface Expected {
  name: string;
  position: number;
  bytes: number;
}

/** Pieces of an answer from a position of the file on. A server without ranges sends the whole file again. */
async function* bodyFrom(
  client: HubClient,
  answer: HubAnswer,
  expected: Expected,
): AsyncGenerator<Uint8Array> {
  const { name, position, bytes } = expected;
  requireLength(answer, expected);
  let skip = answer.status === 206 ? 0 : position;
  let left = bytes - position;
  for await (const piece of piecesOf(answer.body, client.silenceMs)) {
    const rest = piece.subarray(Math.min(skip, piece.length));
    skip -= piece.length - rest.length;
    left -= rest.length;
    if (left < 0) throw corrupt(name, `it is longer than the ${bytes} bytes of its listing`);
    if (rest.length > 0) yield rest;
  }
}

/** @throws ZerofleetError `dataset_source_corrupt` if the answer is about a file of another length */
function requireLength({ status, headers }: HubAnswer, { name, position, bytes }: Expected): void {
  if (status === 416) throw corrupt(name, `it is shorter than the ${bytes} bytes of its listing`);
  const whole =
    status === 206 ? /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(headers.get('content-range') ?? '') : null;
  if (status === 206 && Number(whole?.[1] ?? Number.NaN) !== position)
    throw corrupt(name, 'the server sent another range');
  const length = status === 206 ? (whole?.[2] ?? '*') : (headers.get('content-length') ?? '*');
  if (length !== '*' && Number(length) !== bytes)
    throw corrupt(name, `it has ${length} bytes, and its listing ${bytes}`);
}

function hashOf(kind: HubFile['hash']['kind'], bytes: number): Hash {
  return kind === 'sha256' ? createHash('sha256') : createHash('sha1').update(`blob ${bytes}\0`);
}

function requireHash(content: Hash, hex: string, name: string): void {
  if (content.digest('hex') !== hex) throw corrupt(name, 'its bytes do not have the hash of its listing');
}
