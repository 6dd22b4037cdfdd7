/** Helpers for tests of uploaded models. */
import type { Readable } from 'node:stream';
import type { startTestStack } from './stack.js';

export const TAR = { 'content-type': 'application/x-tar' };

type Stack = Awaited<ReturnType<typeof startTestStack>>;

export const upload = (stack: Stack, payload: Buffer | Readable, query = 'name=a%20model') =>
  stack.request({ method: 'POST', url: `/v1/models?${query}`, headers: TAR, payload });

export async function storedKeys({ objects }: Stack, prefix = ''): Promise<string[]> {
  const keys: string[] = [];
  for await (const object of objects.list(prefix)) keys.push(object.key);
  return keys;
}
