import { useMemo } from 'preact/hooks';
import type { Checkpoint, Job } from '../../../contracts/types.js';
import { collect } from '../../typescript/index.js';
import { client } from '../app/connection.js';
import { useLoaded } from '../app/loaded.js';
import { route } from '../app/router.js';
import { Chart } from '../parts/chart.js';
import { Empty } from '../parts/empty.js';
import { count, short, words } from '../parts/format.js';
import { Notice } from '../parts/notice.js';
import { ParallelPlot } from '../parts/parallel-plot.js';
import { useStored } from '../parts/stored.js';
import { TableHead } from '../parts/table-head.js';
import { formatOf } from '../run/charts/chart-groups.js';
import { type CurvePoint, extremesOf, namesIn, pointOf } from '../run/charts/curve.js';
import { agreement, type Difference, differences, shortNames } from './documents.js';
import { overlaid } from './overlay.js';
import { bestOf, isIdentity, isScalar, resultOf } from './results.js';
import { Results } from './results-table.js';

const POINTS = 1_000;
/** Axes of settings that fit beside each other. */
const MAX_AXES = 8;
/** Characters of a value before it is folded. */
const FOLDED = 40;
const RESULT = 'best evaluation';
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
          <Outcome runs={runs} />
          <Curves runs={runs} />
          <Digests runs={runs} />
          <Differences runs={runs} />
        </>
      )}
    </>
  );
}

/** Results first, then the settings that may have made the difference. */
function Outcome({ runs }: { runs: readonly Compared[] }) {
  const results = useMemo(() => runs.map(({ job, points }) => resultOf(job, points)), [runs]);
  const settings = useMemo(
    () =>
      differences(runs.map(({ job }) => withoutNames(job.spec)))
        .filter(isScalar)
        .filter((one) => !isIdentity(one)),
    [runs],
  ).slice(0, MAX_AXES);
  const fields = shortNames(settings.map(({ pointer }) => pointer));
  const winner = bestOf(results, ({ best }) => best);
  const rows = results.map(({ job, best }, index) => ({
    id: job.id,
    name: job.name || job.id,
    values: {
      ...Object.fromEntries(settings.map(({ values }, at) => [fields[at], values[index]])),
      [RESULT]: best,
    },
    isBest: best !== null && best === winner,
  }));
  return (
    <>
      <Results results={results} />
      {settings.length > 0 && winner !== null && (
        <section class="card">
          <h2>Settings and result</h2>
          <ParallelPlot
            label="Settings and best evaluation of each run"
            axes={[...fields, RESULT]}
            rows={rows}
          />
        </section>
      )}
    </>
  );
}

/** Names and labels decide nothing. */
const withoutNames = ({ name: _, labels: __, ...spec }: Job['spec']) => spec;

/** One value of all runs, which the reader chooses. */
function Curves({ runs }: { runs: readonly Compared[] }) {
  const chosen = useStored('compare.curve', 'loss');
  const curves = runs.map(({ points }) => points);
  const names = useMemo(() => namesIn(curves.flat()), [runs]);
  const name = names.includes(chosen.value) ? chosen.value : 'loss';
  const data = useMemo(() => overlaid(curves, name), [runs, name]);
  // Metrics that a loss of Redis has taken leave nothing to draw.
  if (names.length === 0) return null;
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
  const all = differences(runs.map(({ job }) => job.spec)).filter(({ pointer }) => pointer !== '/name');
  const found = all.filter((one) => !isIdentity(one));
  const names = all.filter(isIdentity);
  return (
    <section class="card scroll">
      <h2>Documents</h2>
      {found.length === 0 ? <p>All fields are equal.</p> : <Fields fields={found} runs={runs} />}
      {names.length > 0 && (
        <details>
          <summary>Ids and storage prefixes ({names.length})</summary>
          <Fields fields={names} runs={runs} />
        </details>
      )}
    </section>
  );
}

function Fields({ fields, runs }: { fields: readonly Difference[]; runs: readonly Compared[] }) {
  return (
    <table>
      <TableHead names={['Field', ...runs.map(({ job }, index) => `${index + 1} ${job.name || job.id}`)]} />
      <tbody>
        {fields.map(({ pointer, values }) => (
          <tr key={pointer}>
            <th scope="row" class="mono small">
              {pointer}
            </th>
            {values.map((value, index) => (
              <td key={runs[index]?.job.id}>
                <Folded text={short(value)} />
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** A long text begins folded. */
function Folded({ text }: { text: string }) {
  if (text.length <= FOLDED) return <>{text}</>;
  return (
    <details class="folded">
      <summary>{text.slice(0, FOLDED)}…</summary>
      {text}
    </details>
  );
}
