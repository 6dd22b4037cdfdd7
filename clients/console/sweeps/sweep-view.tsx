import { useEffect } from 'preact/hooks';
import type { Sweep, SweepRun } from '../../../contracts/types.js';
import { client } from '../app/connection.js';
import { type Loaded, useLoaded } from '../app/loaded.js';
import { go, linkTo } from '../app/router.js';
import { may } from '../app/session.js';
import { setTitle } from '../app/title.js';
import { ActionButton } from '../parts/action.js';
import { loss, short } from '../parts/format.js';
import { Notice } from '../parts/notice.js';
import { ParallelPlot } from '../parts/parallel-plot.js';
import { TableHead } from '../parts/table-head.js';
import { SweepBadge } from './badges.js';
import { BestRun } from './best-run.js';
import { fieldLabel, lastValue, progressText, ranked } from './sweep.js';

const REFRESH_MS = 3_000;
/** Runs that can be compared at once: the colours of curves. */
const MAX_COMPARED = 8;

export function SweepView({ id }: { id: string }) {
  const loaded: Loaded<Sweep> = useLoaded((signal) => client.sweeps.get(id, { signal }), [id], {
    every_ms: REFRESH_MS,
  });
  const sweep = loaded.value.value;
  useEffect(() => {
    if (sweep !== null) setTitle(sweep.name);
  }, [sweep?.name]);
  if (sweep === null) return loaded.fault.value && <Notice fault={loaded.fault.value} />;
  const { name, state, problem, method, metric, seed, best } = sweep;
  const begun = ranked(sweep).filter((run) => run.state !== 'waiting' || run.rung > 0);
  const compared = begun.slice(0, MAX_COMPARED).map(({ job_id }) => job_id);
  const winner = sweep.runs.find(({ job_id }) => job_id === best);
  return (
    <>
      <div class="title">
        <h1>{name}</h1>
        <SweepBadge state={state} />
        <span class="spring" />
        {compared.length > 1 && (
          <a class="button" href={linkTo(['compare'], { run: compared })}>
            {begun.length > MAX_COMPARED ? `Compare the best ${MAX_COMPARED}` : 'Compare the runs'}
          </a>
        )}
        <Actions sweep={sweep} loaded={loaded} />
      </div>
      {loaded.fault.value && <Notice fault={loaded.fault.value} />}
      {problem !== null && <p class="notice">No run can begin at present: {problem.message}</p>}
      <p class="muted">
        {method.replaceAll('_', ' ')}
        {method !== 'grid' && `, seed ${seed}`}, compared by {metric} · {progressText(sweep)}
      </p>
      {winner !== undefined && <BestRun key={winner.job_id} run={winner} isFinal={sweep.ended_at !== null} />}
      <Settings sweep={sweep} />
      <Runs sweep={sweep} />
    </>
  );
}

function Actions({ sweep, loaded }: { sweep: Sweep; loaded: Loaded<Sweep> }) {
  if (!may('jobs:write')) return null;
  const { id, state, ended_at } = sweep;
  const act = (does: () => Promise<Sweep>) => async () => loaded.set(await does());
  if (ended_at !== null)
    return (
      <ActionButton
        label="Delete"
        kind="danger"
        confirm="Delete this sweep? Its runs stay."
        act={async () => {
          await client.sweeps.delete(id);
          go(linkTo(['sweeps']));
        }}
      />
    );
  return (
    <>
      {state === 'paused' ? (
        <ActionButton label="Resume" kind="primary" act={act(() => client.sweeps.resume(id))} />
      ) : (
        <ActionButton label="Pause" act={act(() => client.sweeps.pause(id))} />
      )}
      <ActionButton
        label="Cancel"
        kind="danger"
        confirm="Cancel the runs that have not ended?"
        act={act(() => client.sweeps.cancel(id))}
      />
    </>
  );
}

/** Values and results of the runs that have one. */
function Settings({ sweep }: { sweep: Sweep }) {
  const { space, runs, metric, best } = sweep;
  const fields = Object.keys(space);
  const evaluated = runs.filter((run) => typeof lastValue(run) === 'number');
  if (evaluated.length < 2) return null;
  const rows = evaluated.map((run) => ({
    id: run.job_id,
    name: run.name,
    values: {
      ...Object.fromEntries(fields.map((field) => [fieldLabel(field), run.values[field]])),
      [metric]: lastValue(run),
    },
    isBest: run.job_id === best,
  }));
  return (
    <section class="card">
      <h2>Values and result</h2>
      <ParallelPlot
        label={`Values and ${metric} of each run`}
        axes={[...fields.map(fieldLabel), metric]}
        rows={rows}
      />
    </section>
  );
}

function Runs({ sweep }: { sweep: Sweep }) {
  const { space, metric, best } = sweep;
  const fields = Object.keys(space);
  return (
    <section class="card scroll">
      <h2>Runs</h2>
      <table>
        <TableHead names={['Run', ...fields.map(fieldLabel), 'State', 'Step', metric]} />
        <tbody>
          {ranked(sweep).map((run) => (
            <tr key={run.job_id}>
              <th scope="row">
                {run.state === 'waiting' && run.rung === 0 ? (
                  run.name
                ) : (
                  <a href={linkTo(['runs', run.job_id])}>{run.name}</a>
                )}
                {run.job_id === best && (
                  <>
                    {' '}
                    <span class="badge good">best</span>
                  </>
                )}
              </th>
              {fields.map((field) => (
                <td key={field}>{short(run.values[field])}</td>
              ))}
              <td>
                <SweepBadge state={run.state} />
                {run.failure !== null && <span class="small muted"> {run.failure.code}</span>}
              </td>
              <td>{run.evaluations.at(-1)?.step ?? '–'}</td>
              <td>{evaluationText(run)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function evaluationText(run: SweepRun): string {
  const value = lastValue(run);
  return value === null ? 'NaN' : loss(value ?? null);
}
