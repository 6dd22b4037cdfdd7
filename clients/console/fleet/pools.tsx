import type { Pool, PoolPod } from '../../../contracts/types.js';
import { bytes, count, words } from '../parts/format.js';
import { TableHead } from '../parts/table-head.js';

export function Pools({ pools }: { pools: readonly Pool[] }) {
  return (
    <div class="columns">
      {pools.map((pool) => (
        <PoolCard key={pool.name} pool={pool} />
      ))}
    </div>
  );
}

function PoolCard({ pool }: { pool: Pool }) {
  const { name, workers, slots, used_slots, running, waiting, groups, machines } = pool;
  const figures: [string, string][] = [
    ['Slots used', `${count(used_slots)} / ${count(slots)}`],
    ['Workers', count(workers)],
    ['Running', count(running)],
    ['Waiting', count(waiting)],
  ];
  return (
    <section class="card pool" aria-label={`Pool ${name}`}>
      <h2>{name}</h2>
      <progress class="progress" max={Math.max(1, slots)} value={used_slots} aria-label={`Load of ${name}`} />
      <dl class="figures">
        {figures.map(([label, value]) => (
          <div key={label} class="figure">
            <dt class="muted small">{label}</dt>
            <dd class="value">{value}</dd>
          </div>
        ))}
      </dl>
      <ul class="facts">
        {groups.map((group) => (
          <li key={group.numerics}>
            <code>{group.numerics ?? 'unknown numerics'}</code>{' '}
            <span class="muted">
              {count(group.used_slots)} of {count(group.slots)} slots, {workersText(group.workers)}
              {group.gpus.map((gpu) => `, ${gpu.count} × ${gpu.name} ${bytes(gpu.memory_bytes)}`)}
            </span>{' '}
            {group.gpus.map(
              ({ name: gpu, unhealthy }) =>
                unhealthy > 0 && (
                  <span key={gpu} class="badge bad">
                    {unhealthy} faulty
                  </span>
                ),
            )}
          </li>
        ))}
      </ul>
      {machines && <Machines machines={machines} />}
    </section>
  );
}

const workersText = (num: number) => (num === 1 ? '1 worker' : `${count(num)} workers`);

/** Machines of an autoscaler, and why requested ones do not come. */
function Machines({ machines: { types, problems, pods } }: { machines: NonNullable<Pool['machines']> }) {
  return (
    <div class="machines scroll">
      <table>
        <caption class="hidden">Machines of the autoscaler</caption>
        <TableHead names={['Machines', 'Running', 'Starting', 'Requested', 'Terminating']} />
        <tbody>
          {types.map(({ type, running, starting, requested, terminating }) => (
            <tr key={type}>
              <th scope="row">{type}</th>
              <td>{running}</td>
              <td>{starting}</td>
              <td>{requested}</td>
              <td>{terminating}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {problems.map(({ type, code, message }) => (
        <p key={type + code} class="notice">
          No {type}: {words(code)}. {message}
        </p>
      ))}
      {pods.length > 0 && <Pods pods={pods} />}
    </div>
  );
}

/** Machines that are pods of Kubernetes. */
function Pods({ pods }: { pods: readonly PoolPod[] }) {
  return (
    <table>
      <caption class="hidden">Pods</caption>
      <TableHead names={['Pod', 'Node', 'Phase', 'Reason']} />
      <tbody>
        {pods.map((pod) => (
          <tr key={pod.name}>
            <th scope="row">{pod.name}</th>
            <td>{pod.node ?? '–'}</td>
            <td>{pod.phase}</td>
            <td>
              <PodReason pod={pod} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** The reason of a pod, which opens the cluster's explanation and the end of its log. */
function PodReason({ pod: { reason, message, log } }: { pod: PoolPod }) {
  if (message === null && log === null) return <>{reason}</>;
  return (
    <details>
      <summary>{reason ?? 'Log'}</summary>
      <p>{message}</p>
      {log !== null && <pre class="log">{log}</pre>}
    </details>
  );
}
