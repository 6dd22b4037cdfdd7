import { useMemo } from 'preact/hooks';
import type { Checkpoint, Job } from '../../../contracts/types.js';
import { collect } from '../../typescript/index.js';
import { client } from '../app/connection.js';
import { useLoaded } from '../app/loaded.js';
import { linkTo, route } from '../app/router.js';
import { Chart } from '../parts/chart.js';
import { Empty } from '../parts/empty.js';
import { count, short, words } from '../parts/format.js';
import { Notice } from '../parts/notice.js';
import { useStored } from '../parts/stored.js';
import { formatOf } from '../run/chart-groups.js';
import { type CurvePoint, extremesOf, namesIn, pointOf } from '../run/curve.js';
import { agreement, differences } from './documents.js';
import { overlaid } from './overlay.js';

const POINTS = 1_000;
const REFRESH_MS = 10_000;

interface Compared {
  job: Job;
  points: CurvePoint[];
  checkpoints: Checkpoint[];
}

async function readRun(id: string, signal: AbortSignal): Promise<Compared> {
  const job = await client.jobs.get(id, { signal });
  const [curve, checkpoints] = await Promise.all([
    client.jobs.curve(id, POINTS, { names: extremesOf(job.spec) }),
    collect(client.jobs.checkpoints(id)),
  ]);
  return { job, points: curve.map(pointOf), checkpoints };
}

export function CompareView() {
  const ids = route.value.query.getAll('run');
  const { value, fault } = useLoaded(
    (signal) => Promise.all(ids.map((id) => readRun(id, signal))),
    [ids.join()],
    { every_ms: REFRESH_MS },
  );
  const runs = value.value;
  if (ids.length < 2)
    return (
      <>
        <h1>Comparison</h1>
        <Empty title="Choose runs to compare.">
          <p>
            Mark two or more in the <a href="#/runs">list of runs</a>.
          </p>
        </Empty>
      </>
    );
  return (
    <>
      <h1>Comparison</h1>
      {fault.value && <Notice fault={fault.value} />}
      {runs && (
        <>
          <Curves runs={runs} />
          <Digests runs={runs} />
          <Differences runs={runs} />
        </>
      )}
    </>
  );
}

/** One value of all runs, which the reader chooses. */
function Curves({ runs }: { runs: readonly Compared[] }) {
  const chosen = useStored('compare.curve', 'loss');
  const curves = runs.map(({ points }) => points);
  const names = useMemo(() => namesIn(curves.flat()), [runs]);
  const name = names.includes(chosen.value) ? chosen.value : 'loss';
  const data = useMemo(() => overlaid(curves, name), [runs, name]);
  return (
    <section class="card">
      <h2>Curves</h2>
      <div class="filters">
        <label>
          Value{' '}
          <select value={name} onChange={(event) => (chosen.value = event.currentTarget.value)}>
            {names.map((one) => (
              <option key={one} value={one}>
                {words(one)}
              </option>
            ))}
          </select>
        </label>
      </div>
      <Chart
        key={name}
        label={`${words(name)} by step`}
        names={runs.map(({ job }, index) => `${index + 1} ${job.name || job.id}`)}
        data={data}
        {...formatOf(name)}
      />
    </section>
  );
}

function Digests({ runs }: { runs: readonly Compared[] }) {
  const { equal_until, differs_at } = agreement(runs.map(({ checkpoints }) => checkpoints));
  return (
    <section class="card proof">
      <h2>Digests</h2>
      {equal_until === null && differs_at === null && <p>No step has a checkpoint of each of them.</p>}
      {equal_until !== null && (
        <p>
          <strong>Equal until step {count(equal_until)}</strong>: bit for bit the same training.
        </p>
      )}
      {differs_at !== null && <p>Different at step {count(differs_at)}.</p>}
    </section>
  );
}

function Differences({ runs }: { runs: readonly Compared[] }) {
  const found = differences(runs.map(({ job }) => job.spec)).filter(({ pointer }) => pointer !== '/name');
  return (
    <section class="card scroll">
      <h2>Documents</h2>
      {found.length === 0 ? (
        <p>All fields are equal.</p>
      ) : (
        <table>
          <thead>
            <tr>
              <th scope="col">Field</th>
              {runs.map(({ job }, index) => (
                <th key={job.id} scope="col">
                  <a href={linkTo(['runs', job.id])}>
                    {index + 1} {job.name || job.id}
                  </a>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {found.map(({ pointer, values }) => (
              <tr key={pointer}>
                <th scope="row" class="mono small">
                  {pointer}
                </th>
                {values.map((value, index) => (
                  <td key={runs[index]?.job.id}>{short(value)}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}
