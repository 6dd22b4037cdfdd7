import { type Signal, useSignal } from '@preact/signals';
import { Suspense } from 'preact/compat';
import { isFinal } from '../../../../contracts/job-states.js';
import type { Job } from '../../../../contracts/types.js';
import { client } from '../../app/connection.js';
import { lazily } from '../../app/lazily.js';
import { go, linkTo } from '../../app/router.js';
import { may } from '../../app/session.js';
import { ActionButton } from '../../parts/action.js';
import { ranks as ranksText } from '../../parts/format.js';
import type { LiveRun } from '../live-run.js';

/** Numbers of ranks that a run may have. */
function ranksOf({ spec }: Pick<Job, 'spec'>): number[] {
  const { min, max } = spec.resources.ranks;
  const step = spec.zero.expert_parallel_size;
  return Array.from({ length: Math.floor((max - min) / step) + 1 }, (_, index) => min + index * step);
}

/** The choice of a number of ranks; nothing if there is only one. */
export function RanksSelect({ job, ranks }: { job: Job; ranks: Signal<number> }) {
  const choice = ranksOf(job);
  if (choice.length === 1) return null;
  return (
    <select
      aria-label="Ranks"
      value={ranks.value}
      onChange={(event) => (ranks.value = Number(event.currentTarget.value))}
    >
      {choice.map((number) => (
        <option key={number} value={number}>
          {ranksText(number)}
        </option>
      ))}
    </select>
  );
}

const EditRun = lazily(() => import('./edit-run.js').then((module) => module.EditRun));

function Edit({ run, job }: { run: LiveRun; job: Job }) {
  const isOpen = useSignal(false);
  return (
    <>
      <button type="button" onClick={() => (isOpen.value = true)}>
        Edit
      </button>
      {isOpen.value && (
        <Suspense fallback={null}>
          <EditRun run={run} job={job} onClose={() => (isOpen.value = false)} />
        </Suspense>
      )}
    </>
  );
}

/** The actions that make sense in the state of the run, and that the key of the session may do. */
export function RunActions({ run, job }: { run: LiveRun; job: Job }) {
  const ranks = useSignal(job.requested_ranks);
  if (!may('jobs:write')) return null;
  const { id, state } = job;
  const act = (does: () => Promise<Job>) => async () => run.set(await does());
  if (isFinal(state))
    return (
      <>
        {state === 'failed' && (
          <ActionButton label="Retry" kind="primary" act={act(() => client.jobs.retry(id))} />
        )}
        {job.latest_checkpoint && (
          <a class="button" href={linkTo(['new'], { fork: id })}>
            Fork
          </a>
        )}
        <Edit run={run} job={job} />
        <ActionButton
          label="Delete"
          kind="danger"
          confirm="Delete this run with its checkpoints and exports for good?"
          act={async () => {
            await client.jobs.delete(id, { artifacts: true });
            go(linkTo(['runs']));
          }}
        />
      </>
    );
  const isPaused = state === 'paused';
  return (
    <>
      {state !== 'cancelling' && <RanksSelect job={job} ranks={ranks} />}
      {isPaused && (
        <ActionButton
          label="Resume"
          kind="primary"
          act={act(() => client.jobs.resume(id, { ranks: ranks.value }))}
        />
      )}
      {!isPaused && ranks.value !== job.requested_ranks && state !== 'cancelling' && (
        <ActionButton label="Resize" act={act(() => client.jobs.resize(id, ranks.value))} />
      )}
      <Edit run={run} job={job} />
      {state === 'running' && <ActionButton label="Checkpoint" act={act(() => client.jobs.checkpoint(id))} />}
      {!isPaused && !['pausing', 'cancelling'].includes(state) && (
        <ActionButton label="Pause" act={act(() => client.jobs.pause(id))} />
      )}
      {state !== 'cancelling' && (
        <ActionButton
          label="Cancel"
          kind="danger"
          confirm="Its checkpoints stay. Cancel this run?"
          act={act(() => client.jobs.cancel(id))}
        />
      )}
    </>
  );
}
