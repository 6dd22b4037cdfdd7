import type { Sweep } from '../../../contracts/types.js';
import { client } from '../app/connection.js';
import { useList } from '../app/list.js';
import { Empty } from '../parts/empty.js';
import { loss } from '../parts/format.js';
import { Notice } from '../parts/notice.js';
import { type Columns, LoadOlder, RecordsTable } from '../parts/records-table.js';
import { SweepBadge } from './badges.js';
import { ENDED, lastValue } from './sweep.js';

const COLUMNS: Columns<Sweep> = [
  ['State', ({ state }) => <SweepBadge state={state} />],
  ['Method', ({ method }) => method.replaceAll('_', ' ')],
  ['Ended', ({ runs }) => `${runs.filter((run) => ENDED.includes(run.state)).length} of ${runs.length}`],
  ['Best', bestValue],
];

function bestValue({ runs, best }: Sweep): string {
  const winner = runs.find(({ job_id }) => job_id === best);
  return winner === undefined ? '–' : loss(lastValue(winner) ?? null);
}

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
        <RecordsTable title="Sweeps" page="sweeps" records={sweeps} columns={COLUMNS} />
      )}
      <LoadOlder name="sweeps" list={list.value.value} more={more} />
    </>
  );
}
