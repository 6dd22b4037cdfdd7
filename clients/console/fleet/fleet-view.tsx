import { collect } from '../../typescript/index.js';
import { client } from '../app/connection.js';
import { useLoaded } from '../app/loaded.js';
import { Empty } from '../parts/empty.js';
import { Notice } from '../parts/notice.js';
import '../style/fleet.css';
import { inOrder } from './fleet.js';
import { Pools } from './pools.js';
import { Queue } from './queue.js';
import { Workers } from './workers.js';

const REFRESH_MS = 10_000;
/** Waiting jobs that are read at most. */
const MAX_WAITING = 500;

async function readFleet() {
  const [pools, workers, waiting] = await Promise.all([
    client.pools(),
    client.workers(),
    collect(client.jobs.list({ state: ['queued', 'provisioning'], limit: 100 }), MAX_WAITING),
  ]);
  return { pools, workers, waiting: inOrder(waiting) };
}

export function FleetView() {
  const { value, fault } = useLoaded(readFleet, [], { every_ms: REFRESH_MS });
  const fleet = value.value;
  return (
    <>
      <h1>Fleet</h1>
      {fault.value && <Notice fault={fault.value} />}
      {fleet && (
        <>
          {fleet.pools.length === 0 ? (
            <Empty title="No workers yet.">
              <p>
                Start one on any machine that reaches Redis and the object store with{' '}
                <code>node dist/worker/agent/main.js</code>, or let an autoscaler do it.
              </p>
            </Empty>
          ) : (
            <Pools pools={fleet.pools} />
          )}
          {fleet.workers.length > 0 && <Workers workers={fleet.workers} />}
          <Queue jobs={fleet.waiting} pools={fleet.pools} isCut={fleet.waiting.length === MAX_WAITING} />
        </>
      )}
    </>
  );
}
