import type { Worker } from '../../../contracts/types.js';
import { linkTo } from '../app/router.js';
import { ago, bytes, clock } from '../parts/format.js';
import { gpuKinds, slotsOf } from './fleet.js';

export function Workers({ workers }: { workers: readonly Worker[] }) {
  return (
    <section class="card" aria-label="Workers">
      <div class="title">
        <h2>Workers</h2>
        <span class="spring" />
        <Legend />
      </div>
      <ul class="workers">
        {workers.map((worker) => (
          <WorkerCard key={worker.id} worker={worker} />
        ))}
      </ul>
    </section>
  );
}

function Legend() {
  return (
    <ul class="legend muted small">
      {(['used', 'free', 'draining', 'problem'] as const).map((state) => (
        <li key={state}>
          <i class={`slot ${state}`} />
          {state}
        </li>
      ))}
    </ul>
  );
}

function WorkerCard({ worker }: { worker: Worker }) {
  const { id, pool, host, slots, used_slots, draining, problem, numerics, machine } = worker;
  return (
    <li class="worker" aria-label={`Worker ${id}`}>
      <div class="title">
        <strong title={id}>{host}</strong>
        {draining && <span class="badge warn">draining</span>}
        {problem !== null && <span class="badge bad">problem</span>}
        <span class="spring" />
        <span class="muted small">{pool}</span>
      </div>
      <div class="slots" role="img" aria-label={`${used_slots} of ${slots} slots used`}>
        {slotsOf(worker).map((state, index) => (
          <i key={index} class={`slot ${state}`} />
        ))}
      </div>
      {problem !== null && <p class="notice bad">{problem}</p>}
      <Gpus gpus={worker.gpus} />
      <Gpus gpus={worker.answer_gpus} use="answers on " />
      <p class="muted small">
        {used_slots} of {slots} used · {bytes(worker.memory_bytes)} memory
        {numerics !== null && ` · ${numerics}`}
        {machine !== null && ` · ${machine}`} · seen {ago(worker.last_seen)}
      </p>
      {worker.avoided.map(({ worker_id, job_id, until }) => (
        <p key={worker_id + job_id} class="small">
          Not together with {worker_id} for <a href={linkTo(['runs', job_id])}>a run</a> until {clock(until)}:
          their connection failed.
        </p>
      ))}
    </li>
  );
}

function Gpus({ gpus, use = '' }: Pick<Worker, 'gpus'> & { use?: string }) {
  return (
    <>
      {gpuKinds(gpus).map(({ name, memory_bytes, count, problems }) => (
        <div key={name + memory_bytes} class="small">
          {use}
          {count} × {name}, {bytes(memory_bytes)} each
          {problems.map(({ uuid, problem }) => (
            <p key={uuid} class="notice bad">
              <code>{uuid}</code> {problem}
            </p>
          ))}
        </div>
      ))}
    </>
  );
}
