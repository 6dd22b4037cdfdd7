import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../../platform/logging/logging.js';

/** A process that serves until it is stopped. */
export interface Part {
  /** Resolves when it has exited for any reason. */
  readonly exited: Promise<unknown>;
  /** Stops it. Idempotent. */
  stop(): Promise<void>;
}

interface KeepAliveOptions {
  /** Backoff before the first restart; doubles with each consecutive one. */
  min_delay_ms?: number;
  max_delay_ms?: number;
  /** Uptime after which the backoff is reset. */
  healthy_ms?: number;
}

/**
 * Starts a part and restarts it whenever it exits by itself. Jobs are stored in Redis and in the object store, so a
 * restarted part continues. `stop` of the result ends it permanently, also during a restart.
 * @throws the error of the first `start`; later failures are logged and retried
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
      log.error({ err: error }, `${name} could not be restarted`);
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
      log.warn(`${name} exited unexpectedly; restarting it`);
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
      // A restart may have been in progress; its result is stopped here.
      await part?.stop();
    },
  };
}
