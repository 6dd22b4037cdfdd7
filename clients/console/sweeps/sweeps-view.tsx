import { client } from '../app/connection.js';
import { useList } from '../app/list.js';
import { linkTo } from '../app/router.js';
import { Empty } from '../parts/empty.js';
import { ago, loss } from '../parts/format.js';
import { Notice } from '../parts/notice.js';
import { TableHead } from '../parts/table-head.js';
import { SweepBadge } from './badges.js';
import { ENDED, lastValue } from './sweep.js';

export function SweepsView() {
  const { list, more } = useList(() => client.sweeps.list({ limit: 50 }), []);
  const sweeps = list.value.value?.items;
  return (
    <>
      <h1>Sweeps</h1>
      {list.fault.value && <Notice fault={list.fault.value} />}
      {sweeps?.length === 0 && (
        <Empty title="No sweep yet.">
          <p>
            A sweep trains one document with different values and finds the best ones. Write the document of a{' '}
            <a href="#/new">new run</a>, then choose <strong>Sweep</strong> there, or use{' '}
            <code>zerofleet sweep</code>.
          </p>
        </Empty>
      )}
      {sweeps !== undefined && sweeps.length > 0 && (
        <section class="card scroll" aria-label="Sweeps">
          <table class="runs">
            <TableHead names={['Name', 'State', 'Method', 'Ended', 'Best', 'Created']} />
            <tbody>
              {sweeps.map(({ id, name, state, method, runs, best, created_at }) => {
                const winner = runs.find(({ job_id }) => job_id === best);
                return (
                  <tr key={id}>
                    <th scope="row">
                      <a class="name" href={linkTo(['sweeps', id])}>
                        {name}
                      </a>
                    </th>
                    <td>
                      <SweepBadge state={state} />
                    </td>
                    <td>{method.replaceAll('_', ' ')}</td>
                    <td>
                      {runs.filter((run) => ENDED.includes(run.state)).length} of {runs.length}
                    </td>
                    <td>{winner === undefined ? '–' : loss(lastValue(winner) ?? null)}</td>
                    <td class="muted">{ago(created_at)}</td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        </section>
      )}
      {list.value.value?.hasMore && (
        <button type="button" onClick={() => void more()}>
          Load older sweeps
        </button>
      )}
    </>
  );
}
