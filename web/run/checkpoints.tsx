import { useSignal } from '@preact/signals';
import type { Checkpoint, CheckpointVerdict } from '../../contracts/types.js';
import { client } from '../app/connection.js';
import { go, linkTo } from '../app/router.js';
import { may, share } from '../app/session.js';
import { ActionButton } from '../parts/action.js';
import { Empty } from '../parts/empty.js';
import { ago, bytes, count, loss } from '../parts/format.js';
import { TableHead } from '../parts/table-head.js';
import type { LiveRun } from './live-run.js';

export function Checkpoints({ run }: { run: LiveRun }) {
  const checkpoints = run.checkpoints.value;
  if (checkpoints === null) return <p class="muted">…</p>;
  if (checkpoints.length === 0)
    return (
      <Empty title="No checkpoint is committed yet.">
        <p>The document says when one is made; “Checkpoint” makes one at the next step.</p>
      </Empty>
    );
  return (
    <section class="card scroll" aria-label="Checkpoints">
      <Timeline checkpoints={checkpoints} total={run.job.value?.progress.total_steps ?? null} />
      <table>
        <TableHead names={['Step', 'Ranks', 'Size', 'Digest', 'Evaluation', 'Committed', 'Actions']} />
        <tbody>
          {checkpoints.map((checkpoint) => (
            <Row key={checkpoint.id} checkpoint={checkpoint} run={run} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** Positions of the checkpoints between the first and the last step. */
function Timeline({ checkpoints, total }: { checkpoints: readonly Checkpoint[]; total: number | null }) {
  const end = total ?? checkpoints[0]?.step ?? 1;
  return (
    <svg
      class="timeline"
      viewBox="0 0 1000 24"
      preserveAspectRatio="none"
      role="img"
      aria-label="Checkpoints by step"
    >
      <line x1="0" y1="12" x2="1000" y2="12" />
      {checkpoints.map(({ id, step, pinned, damaged }) => (
        <circle
          key={id}
          cx={Math.min(994, Math.max(6, (1000 * step) / end))}
          cy="12"
          r="5"
          class={damaged ? 'bad' : pinned ? 'pinned' : undefined}
        >
          <title>step {step}</title>
        </circle>
      ))}
    </svg>
  );
}

function Row({ checkpoint, run }: { checkpoint: Checkpoint; run: LiveRun }) {
  const { id, step, world_size, state_digest, eval_losses = {}, committed_at, pinned, damaged } = checkpoint;
  const verdict = useSignal<CheckpointVerdict | null>(null);
  const verify = async () => {
    verdict.value = await client.checkpoints.verify(id);
    run.reread('checkpoints');
  };
  const pin = async () => {
    await client.checkpoints.pin(id, !pinned);
    run.reread('checkpoints');
  };
  const fork = async () => {
    const job = await client.jobs.fork(checkpoint.job_id, { from_checkpoint: id });
    go(linkTo(['runs', job.id]));
  };
  return (
    <tr>
      <th scope="row">{count(step)}</th>
      <td>{world_size}</td>
      <td>{bytes(checkpoint.bytes)}</td>
      <td>
        <code title={state_digest}>{state_digest.slice(0, 12)}…</code>
        {damaged && <span class="badge bad">damaged</span>}
        {verdict.value && <span class="badge good">verified</span>}
      </td>
      <td>
        {Object.entries(eval_losses)
          .map(([name, value]) => `${name} ${loss(value)}`)
          .join(', ')}
      </td>
      <td class="muted">{ago(committed_at)}</td>
      <td class="actions">
        {share.value === null && (
          <>
            <a href={linkTo(['playground'], { model: id })}>Try it</a>
            <ActionButton label="Verify" kind="quiet" act={verify} />
          </>
        )}
        {may('jobs:write') && (
          <>
            <ActionButton label={pinned ? 'Unpin' : 'Pin'} kind="quiet" act={pin} />
            <ActionButton label="Fork from here" kind="quiet" act={fork} />
          </>
        )}
      </td>
    </tr>
  );
}
