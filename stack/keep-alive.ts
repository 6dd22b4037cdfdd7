import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../platform/logging/logging.js';

/** A process that serves until it is stopped. */
export interface Part {
  /** Resolves when it is gone, for whatever reason. */
  readonly exited: Promise<unknown>;
  /** Ends it. Idempotent. */
  stop(): Promise<void>;
}

export interface KeepAliveOptions {
  /** Pause before the first restart in a row; it doubles with each. */
  min_delay_ms?: number;
  max_delay_ms?: number;
  /** A part that lived this long starts with the shortest pause again. */
  healthy_ms?: number;
}

/**
 * Starts a part and starts it again whenever it ends by itself. Jobs live in Redis and in the object store, so a part that
 * comes back goes on where it was. The result's `stop` ends it for good, also while it is being restarted.
 * @throws what `start` throws the first time; later failures are logged and tried again
 */
export async function keepAlive(
  name: string,
  start: () => Promise<Part>,
  log: Logger,
  { min_delay_ms = 100, max_delay_ms = 10_000, healthy_ms = 30_000 }: KeepAliveOptions = {},
): Promise<{ stop(): Promise<void> }> {
  const stopping = new AbortController();
  let part: Part | null = await start();

  const restart = async (): Promise<Part | null> => {
    try {
      return await start();
    } catch (error) {
      log.error({ err: error }, `${name} could not be started again`);
      return null;
    }
  };

  const watch = async () => {
    let delay = min_delay_ms;
    while (!stopping.signal.aborted) {
      const since = Date.now();
      await part?.exited;
      if (stopping.signal.aborted) return;
      if (Date.now() - since > healthy_ms) delay = min_delay_ms;
      log.warn(`${name} ended unexpectedly; starting it again`);
      await sleep(delay, undefined, { signal: stopping.signal }).catch(() => undefined);
      delay = Math.min(2 * delay, max_delay_ms);
      if (!stopping.signal.aborted) part = await restart();
    }
  };
  const watching = watch();

  return {
    async stop() {
      stopping.abort();
      await part?.stop();
      await watching;
      // A restart may have been under way; what it brought up ends here.
      await part?.stop();
    },
  };
}
