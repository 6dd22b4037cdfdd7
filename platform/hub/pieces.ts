/** Reads bodies with a bound on the silence between two pieces. */

/** Rejects if `work` takes longer than `limitMs`. */
export async function within<T>(work: Promise<T>, limitMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(Object.assign(new Error('silence'), { code: `no answer for ${limitMs / 1000} s` })),
      limitMs,
    );
  });
  // The loser of the race may fail later.
  work.catch(() => undefined);
  try {
    return await Promise.race([work, silence]);
  } finally {
    clearTimeout(timer);
  }
}

/** Yields the pieces of a body, and cancels it if the consumer stops. Only the server's silence counts. */
export async function* piecesOf(
  body: ReadableStream<Uint8Array> | null,
  silenceMs: number,
): AsyncGenerator<Uint8Array> {
  const reader = body?.getReader();
  if (reader === undefined) return;
  try {
    for (;;) {
      const { done, value } = await within(reader.read(), silenceMs);
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
