import { Fragment } from 'preact';
import type { Job } from '../../../contracts/types.js';
import { linkTo } from '../app/router.js';
import { StateBadge } from '../parts/badge.js';
import { compact, count, duration, lossOf, loss as lossText } from '../parts/format.js';
import { useStored } from '../parts/stored.js';
import { TableHead } from '../parts/table-head.js';
import { bestOf, groupsOf, labelsOf, type Result } from './results.js';

const COLUMNS: readonly [
  label: string,
  value: (result: Result) => number | null,
  text: (value: number | null) => string,
][] = [
  ['Best evaluation', ({ best }) => best, lossText],
  ['Last evaluation', ({ final }) => final, lossText],
];

const PLAIN: readonly [label: string, text: (job: Job) => string][] = [
  ['Loss', ({ progress }) => lossOf(progress)],
  ['Steps', ({ progress }) => count(progress.step)],
  ['Duration', ({ usage }) => duration(usage.run_seconds)],
  ['Tokens', ({ progress }) => compact(progress.tokens)],
  ['Cost', ({ usage }) => usage.cost.toFixed(2)],
];

/** Results of runs, in groups by a label that the reader chooses. */
export function Results({ results }: { results: readonly Result[] }) {
  const chosen = useStored('compare.group', '');
  const labels = labelsOf(results.map(({ job }) => job));
  const label = labels.includes(chosen.value) ? chosen.value : '';
  const best = COLUMNS.map(([, value]) => bestOf(results, value));
  return (
    <section class="card scroll">
      <h2>Results</h2>
      {labels.length > 0 && (
        <div class="filters">
          <label>
            Group by{' '}
            <select value={label} onChange={(event) => (chosen.value = event.currentTarget.value)}>
              <option value="">nothing</option>
              {labels.map((one) => (
                <option key={one}>{one}</option>
              ))}
            </select>
          </label>
        </div>
      )}
      <table>
        <TableHead names={['Run', 'State', ...[...COLUMNS, ...PLAIN].map(([title]) => title)]} />
        <tbody>
          {groupsOf(results, label).map((group) => (
            <Fragment key={group.value ?? ''}>
              {label !== '' && (
                <tr>
                  <th scope="rowgroup">
                    {label}: {group.value ?? 'none'} <span class="muted">mean of {group.results.length}</span>
                  </th>
                  <td />
                  <td class="muted">{lossText(group.best)}</td>
                  <td class="muted">{lossText(group.final)}</td>
                  <td colSpan={PLAIN.length} />
                </tr>
              )}
              {group.results.map((result) => (
                <Row key={result.job.id} result={result} number={results.indexOf(result) + 1} best={best} />
              ))}
            </Fragment>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Row({ result, number, best }: { result: Result; number: number; best: readonly (number | null)[] }) {
  const { job } = result;
  return (
    <tr>
      <th scope="row">
        <a href={linkTo(['runs', job.id])}>
          {number} {job.name || job.id}
        </a>
      </th>
      <td>
        <StateBadge state={job.state} />
      </td>
      {COLUMNS.map(([title, value, text], index) => (
        <td key={title}>
          {value(result) !== null && value(result) === best[index] ? (
            <strong>{text(value(result))}</strong>
          ) : (
            text(value(result))
          )}
        </td>
      ))}
      {PLAIN.map(([title, text]) => (
        <td key={title}>{text(job)}</td>
      ))}
    </tr>
  );
}
