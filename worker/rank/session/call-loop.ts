import { STEP_FLAGS } from '../../../contracts/rank-protocol.js';
import type { TrainLoopEnd } from '../train-loop.js';
import { SessionCalls, type SessionOptions } from './session-calls.js';

/**
 * Runs a session's calls until `finish` or until the agent stops it. The agent's messages and the log have one order,
 * and nothing else decides, so all ranks run, save and stop alike.
 */
export async function callLoop(options: SessionOptions): Promise<TrainLoopEnd> {
  const { inbox } = options;
  const calls = new SessionCalls(options);
  for (;;) {
    const { until, answered, flags, save_request } = await inbox.calls.take();
    if (await calls.runUntil(until, answered)) return { step: calls.step, flags: 0 };
    if (flags & STEP_FLAGS.cancel) return { step: calls.step, flags };
    const isLast = (flags & STEP_FLAGS.pause) !== 0;
    if (flags !== 0) await calls.save(isLast ? 'final' : 'periodic', save_request);
    if (isLast) return { step: calls.step, flags };
  }
}
