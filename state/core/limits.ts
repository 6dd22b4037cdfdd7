/** What a job may use and has used, as its hash has it; commands/include/state.lua does the sums. */
import type { Job, ResolvedJobSpec } from '../../contracts/index.js';

/** Empty: there is no such limit. */
export interface LimitFields {
  max_run_ms: string;
  max_wait_ms: string;
  max_cost: string;
  on_limit: string;
  max_preemptions: string;
}

export function limitFields({ limits, retry }: ResolvedJobSpec): LimitFields {
  const ms = (seconds: number | undefined) => (seconds === undefined ? '' : String(1000 * seconds));
  return {
    max_run_ms: ms(limits.max_runtime),
    max_wait_ms: ms(limits.max_wait),
    max_cost: limits.max_cost === undefined ? '' : String(limits.max_cost),
    on_limit: limits.on_limit,
    max_preemptions: retry.preemptions === null ? '' : String(retry.preemptions),
  };
}

/** Of a record; those of jobs that never ran have no such fields. */
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
