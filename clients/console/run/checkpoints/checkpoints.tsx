import { useSignal } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { Checkpoint, CheckpointVerdict, Job } from '../../../../contracts/types.js';
import { client } from '../../app/connection.js';
import { linkTo } from '../../app/router.js';
import { may, share } from '../../app/session.js';
import { ActionButton } from '../../parts/action.js';
import { Empty } from '../../parts/empty.js';
import { ago, bytes, count, loss } from '../../parts/format.js';
import { TableHead } from '../../parts/table-head.js';
import { RanksSelect } from '../actions/run-actions.js';
import { type Mark, marksOf } from '../charts/marks.js';
import { Timeline } from '../charts/timeline.js';
import type { LiveRun } from '../live-run.js';
import { CheckpointFiles } from './checkpoint-files.js';

export function Checkpoints({ run }: { run: LiveRun }) {
  const checkpoints = run.checkpoints.value;
  const job = run.job.value;
  const chosen = useSignal<string | null>(null);
  const opened = useSignal<Checkpoint | null>(null);
  const marks = useMemo(() => job && marksOf(checkpoints ?? [], job.spec), [checkpoints, job?.spec]);
  if (checkpoints === null || job === null || marks === null) return <p class="muted">…</p>;
  if (checkpoints.length === 0)
    return (
      <Empty title="No checkpoint is committed yet.">
        <p>The document says when one is made; “Checkpoint” makes one at the next step.</p>
      </Empty>
    );
  return (
    <>
      <section class="card">
        <Timeline
          checkpoints={checkpoints}
          marks={marks}
          total_steps={job.progress.total_steps}
          chosen={chosen}
        />
      </section>
      <section class="card scroll" aria-label="Checkpoints">
        <table>
          <TableHead names={['Step', 'Ranks', 'Size', 'Digest', 'Evaluation', 'Committed', 'Actions']} />
          <tbody>
            {checkpoints.map((checkpoint) => (
              <Row
                key={checkpoint.id}
                run={run}
                job={job}
                checkpoint={checkpoint}
                marks={marks.get(checkpoint.id) ?? []}
                isChosen={checkpoint.id === chosen.value}
                onOpen={() => (opened.value = checkpoint)}
              />
            ))}
          </tbody>
        </table>
      </section>
      {opened.value && (
        <CheckpointFiles job={job} checkpoint={opened.value} onClose={() => (opened.value = null)} />
      )}
    </>
  );
}

interface RowProps {
  run: LiveRun;
  job: Job;
  checkpoint: Checkpoint;
  marks: readonly Mark[];
  /** Chosen in the time line: the row is scrolled to. */
  isChosen: boolean;
  /** Opens its files. */
  onOpen: () => void;
}

const BADGES: Readonly<Record<Mark, string>> = { newest: '', best: 'done', pinned: 'warn', damaged: 'bad' };

function Row({ run, job, checkpoint, marks, isChosen, onOpen }: RowProps) {
  const { id, step, world_size, state_digest, eval_losses = {}, committed_at, pinned } = checkpoint;
  const verdict = useSignal<CheckpointVerdict | null>(null);
  const row = useRef<HTMLTableRowElement>(null);
  useEffect(() => {
    if (isChosen) row.current?.scrollIntoView({ block: 'nearest' });
  }, [isChosen]);
  const verify = async () => {
    verdict.value = await client.checkpoints.verify(id);
    run.reread('checkpoints');
  };
  const pin = async () => {
    await client.checkpoints.pin(id, !pinned);
    run.reread('checkpoints');
  };
  return (
    <tr ref={row} class={isChosen ? 'chosen' : undefined}>
      <th scope="row">
        {count(step)}{' '}
        {marks.map((mark) => (
          <span key={mark} class={`badge ${BADGES[mark]}`}>
            {mark}
          </span>
        ))}
      </th>
      <td>{world_size}</td>
      <td>{bytes(checkpoint.bytes)}</td>
      <td>
        <code title={state_digest}>{state_digest.slice(0, 12)}…</code>
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
            <button type="button" class="quiet" onClick={onOpen}>
              Files and exports
            </button>
            <ActionButton label="Verify" kind="quiet" act={verify} />
          </>
        )}
        {may('jobs:write') && (
          <>
            <a href={linkTo(['playground'], { model: id })}>Try it</a>
            <ActionButton label={pinned ? 'Unpin' : 'Pin'} kind="quiet" act={pin} />
            <a href={linkTo(['new'], { fork: id })}>Fork from here</a>
            {job.state === 'paused' && marks.includes('newest') && <Resume run={run} job={job} />}
          </>
        )}
      </td>
    </tr>
  );
}

/** A paused run continues from its newest checkpoint, on any number of its ranks. */
function Resume({ run, job }: { run: LiveRun; job: Job }) {
  const ranks = useSignal(job.requested_ranks);
  const resume = async () => run.set(await client.jobs.resume(job.id, { ranks: ranks.value }));
  return (
    <>
      <RanksSelect job={job} ranks={ranks} />
      <ActionButton label="Resume from here" kind="quiet" act={resume} />
    </>
  );
}
