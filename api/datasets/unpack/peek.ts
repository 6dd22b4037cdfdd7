/**
 * Returns the first bytes of a body, fewer if it has fewer, and the whole body. The body is read to its end, or left
 * early, like the given one.
 * @param isEnough called with the bytes so far
 */
export async function peek(
  body: AsyncIterable<Uint8Array>,
  isEnough: (head: Buffer) => boolean,
): Promise<{ head: Buffer; body: AsyncGenerator<Uint8Array> }> {
  const pieces = body[Symbol.asyncIterator]();
  let head = Buffer.alloc(0);
  let hasEnded = false;
  while (!hasEnded && !isEnough(head)) {
    const next = await pieces.next();
    if (next.done) hasEnded = true;
    else head = Buffer.concat([head, next.value]);
  }
  return { head, body: whole(head, hasEnded ? null : pieces) };
}

async function* whole(head: Buffer, rest: AsyncIterator<Uint8Array> | null): AsyncGenerator<Uint8Array> {
  try {
    if (head.length > 0) yield head;
    if (rest !== null) yield* { [Symbol.asyncIterator]: () => rest };
  } finally {
    // Also if the reader leaves at the head.
    await rest?.return?.();
  }
}
