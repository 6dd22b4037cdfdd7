import type { JobState } from '../../../contracts/types.js';

const KINDS: Partial<Record<JobState, string>> = {
  running: 'good',
  succeeded: 'done',
  failed: 'bad',
  cancelled: 'off',
  paused: 'warn',
  recovering: 'warn',
};

export function StateBadge({ state }: { state: JobState }) {
  return <span class={`badge ${KINDS[state] ?? ''}`}>{state}</span>;
}

/** Share of the steps that are done. */
export function ProgressBar({ percent, label }: { percent: number | null; label: string }) {
  return <progress class="progress" max={100} value={percent ?? 0} aria-label={label} />;
}
