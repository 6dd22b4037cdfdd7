/** OpenAI's client, and a file for training that is sent to its uploads in parts. */
import { createHash } from 'node:crypto';
import OpenAI, { type APIError, toFile } from 'openai';
import type { Test } from 'tap';
import { storedBytes } from '../../state/index.js';
import { ADMIN_KEY, CHATS, startTestStack } from './stack.js';

export const CONTENT = Buffer.from(CHATS);
export const MD5 = createHash('md5').update(CONTENT).digest('hex');
/** Sizes that cut lines, and the rest. */
const CUTS = [7, 1000, 1001, 2500];
export const PARTS = [0, ...CUTS].map((begin, index) => CONTENT.subarray(begin, CUTS[index]));

export async function setup(t: Test, options: Parameters<typeof startTestStack>[0] = {}) {
  const stack = await startTestStack(options);
  t.teardown(() => stack.close());
  const root = await stack.listen();
  const clientOf = (apiKey: string) =>
    new OpenAI({ baseURL: `${root}/openai/v1`, apiKey, maxRetries: 0 }).uploads;
  const uploads = clientOf(ADMIN_KEY);
  const begin = (bytes = CONTENT.length, target = uploads) =>
    target.create({ bytes, filename: 'chats.jsonl', mime_type: 'text/jsonl', purpose: 'fine-tune' });
  const send = async (id: string, bytes: Buffer, target = uploads) =>
    (await target.parts.create(id, { data: await toFile(bytes, 'part') })).id;
  const sendAll = (id: string) => Promise.all(PARTS.map((part) => send(id, part)));
  const stored = async () => storedBytes(await stack.store.getUse('default'));
  return { stack, root, clientOf, uploads, begin, send, sendAll, stored };
}

export const partId = (part: number) => `part_${String(part).padStart(26, '0')}`;

/** Checks that a call is refused with an error of the official client. */
export async function refused(t: Test, call: Promise<unknown>, wanted: object) {
  const error = (await call.then(
    () => null,
    (cause: unknown) => cause,
  )) as APIError | null;
  t.match(error, { type: 'invalid_request_error', ...wanted });
}
