import type { SweepRun, SweepState } from '../../../contracts/types.js';

const KINDS: Readonly<Record<SweepState | SweepRun['state'], string>> = {
  waiting: '',
  running: 'good',
  held: 'warn',
  paused: 'warn',
  stopped: 'off',
  succeeded: 'done',
  failed: 'bad',
  cancelled: 'off',
};

/** State of a sweep or of one of its runs. */
export function SweepBadge({ state }: { state: SweepState | SweepRun['state'] }) {
  return <span class={`badge ${KINDS[state]}`}>{state}</span>;
}
