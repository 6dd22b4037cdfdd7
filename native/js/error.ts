/** An error of the native core. `code` is stable and made in C++ (`core/error.h`) or in this folder. */
export class NativeError extends Error {
  override readonly name = 'NativeError';

  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
  }

  /** Wraps an exception of the addon; one without a code is an internal fault and becomes `internal`. */
  static from(thrown: unknown): NativeError {
    if (thrown instanceof NativeError) return thrown;
    const { code, message } = (thrown ?? {}) as { code?: unknown; message?: unknown };
    return new NativeError(typeof code === 'string' ? code : 'internal', String(message ?? thrown));
  }
}

/** Runs a call into the addon so that whatever it throws is a NativeError. */
export function native<T>(call: () => T): T {
  try {
    return call();
  } catch (thrown) {
    throw NativeError.from(thrown);
  }
}

/** The same for an operation that settles later. */
export async function nativeAsync<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (thrown) {
    throw NativeError.from(thrown);
  }
}
