/** Limits and usage of a job in the form of its Redis hash; core/commands/state.lua does the accounting. */
import type { Job, ResolvedJobSpec } from '../../contracts/index.js';

/** An empty text means no limit. */
export function limitFields({ limits, retry }: ResolvedJobSpec) {
  const ms = (seconds: number | undefined) => (seconds === undefined ? '' : String(1000 * seconds));
  return {
    max_run_ms: ms(limits.max_runtime),
    max_wait_ms: ms(limits.max_wait),
    max_cost: limits.max_cost === undefined ? '' : String(limits.max_cost),
    on_limit: limits.on_limit,
    max_preemptions: retry.preemptions === null ? '' : String(retry.preemptions),
  };
}

/** Returns the usage of a record; jobs that never ran have no usage fields. */
export function usageOf(flat: readonly string[]): Job['usage'] {
  const number = (name: string) => {
    const at = flat.findIndex((text, i) => i % 2 === 0 && text === name);
    return at < 0 ? 0 : Number(flat[at + 1]);
  };
  return {
    run_seconds: number('run_ms') / 1000,
    rank_seconds: number('rank_ms') / 1000,
    cost: number('cost'),
  };
}
