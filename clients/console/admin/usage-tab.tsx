import type { DayUsage, ProjectUsage } from '../../../contracts/types.js';
import { client } from '../app/connection.js';
import { useLoaded } from '../app/loaded.js';
import { go, linkTo, route } from '../app/router.js';
import { may } from '../app/session.js';
import { Empty } from '../parts/empty.js';
import { bytes, words } from '../parts/format.js';
import { Notice } from '../parts/notice.js';
import { TableHead } from '../parts/table-head.js';
import { Projects } from './projects.js';
import {
  firstDay,
  heightsOf,
  MEASURES,
  type Measure,
  PERIODS,
  periodOf,
  projectOf,
  sharesOf,
  usedDays,
} from './usage.js';

export function UsageTab() {
  const period = periodOf(route.value.query);
  const { value, fault } = useLoaded(
    () => client.projects.usage({ from: firstDay(period, Date.now()) }),
    [period],
  );
  const usage = value.value;
  return (
    <>
      <div class="filters">
        <label>
          Period
          <select
            value={period}
            onChange={({ currentTarget: { value: days } }) =>
              go(linkTo(['admin'], { tab: 'usage', days }), { replace: true })
            }
          >
            {PERIODS.map((days) => (
              <option key={days} value={days}>
                last {days} days
              </option>
            ))}
          </select>
        </label>
        <span class="muted small">Days are those of UTC.</span>
      </div>
      {fault.value && <Notice fault={fault.value} />}
      {usage && (
        <>
          <Quota usage={usage} />
          <Days usage={usage} />
        </>
      )}
      {may('operator') && <Projects />}
    </>
  );
}

/** Current use of the session's project, and its limits. */
function Quota({ usage }: { usage: ProjectUsage }) {
  const { project, storage } = usage;
  const parts = Object.entries(storage).filter(([name, size]) => name !== 'total_bytes' && size > 0);
  return (
    <section class="card" aria-label="Quota">
      <h2>{project} now</h2>
      <ul class="shares">
        {sharesOf(projectOf(usage)).map(({ label, used, limit, text }) => (
          <li key={label}>
            <span class="muted small">{label}</span>
            <span class="value">{text}</span>
            {limit !== null && (
              <progress class="progress" max={Math.max(1, limit)} value={used} aria-label={`${label} used`} />
            )}
          </li>
        ))}
      </ul>
      {parts.length > 0 && (
        <p class="muted small">
          Storage:{' '}
          {parts.map(([name, size]) => `${words(name.replace('_bytes', 's'))} ${bytes(size)}`).join(', ')}
        </p>
      )}
    </section>
  );
}

function Days({ usage: { days, total } }: { usage: ProjectUsage }) {
  const used = usedDays(days);
  if (used.length === 0)
    return (
      <Empty title="Nothing was used in these days.">
        <p>Choose a longer period, or begin a run.</p>
      </Empty>
    );
  return (
    <>
      <div class="measures">
        {MEASURES.map((measure) => (
          <section key={measure.name} class="card" aria-label={measure.label}>
            <h2>{measure.label}</h2>
            <p class="value">{measure.text(total[measure.name])}</p>
            <Bars measure={measure} days={days} />
          </section>
        ))}
      </div>
      <section class="card scroll" aria-label="Days">
        <table>
          <TableHead names={['Day', ...MEASURES.map(({ label }) => label)]} />
          <tbody>
            {used.map((day) => (
              <tr key={day.date}>
                <th scope="row">{day.date}</th>
                {MEASURES.map(({ name, text }) => (
                  <td key={name}>{text(day[name])}</td>
                ))}
              </tr>
            ))}
            <tr>
              <th scope="row">All days</th>
              {MEASURES.map(({ name, text }) => (
                <td key={name}>{text(total[name])}</td>
              ))}
            </tr>
          </tbody>
        </table>
      </section>
    </>
  );
}

/** A bar for each day, oldest first. The table has the same figures. */
function Bars({ measure: { name, label, text }, days }: { measure: Measure; days: readonly DayUsage[] }) {
  return (
    <svg
      class="bars"
      viewBox={`0 0 ${days.length} 100`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`${label} by day`}
    >
      {heightsOf(days.map((day) => day[name])).map((height, index) => (
        <rect key={days[index]?.date} x={index + 0.1} y={100 - height} width={0.8} height={height}>
          <title>
            {days[index]?.date}: {text(days[index]?.[name] ?? 0)}
          </title>
        </rect>
      ))}
    </svg>
  );
}
